import numpy as np
import pytest

import herdfilter as hf
from herdfilter.evaluation.recording import Recording, record
from herdfilter.evaluation.reference import compute_reference
from herdfilter.evaluation.scenario import Scenario, load_scenario


@pytest.fixture
def plane():
    """Two dimensions, one of them seen."""
    return Scenario(
        name="plane",
        title="Plane",
        model={
            "type": "LinearGaussian",
            "F": [[1.0, 1.0], [0.0, 0.9]],
            "H": [[1.0, 0.5]],
            "Q": [[0.2, 0.1], [0.1, 0.3]],
            "R": [[0.7]],
            "initial_mean": [1.0, -1.0],
            "initial_covariance": [[2.0, 0.3], [0.3, 1.0]],
        },
        steps=6,
        reference={"type": "kalman"},
    )


def joint_gaussian(model, steps):
    """Mean and covariance of all states, by unrolling the recursion; shapes (T d,) and (T d, T d)."""
    d = model.dim
    mean, covariance = model.initial.mean, model.initial.covariance
    means, blocks = [], np.zeros((steps, steps, d, d))
    for i in range(steps):
        mean = model.F @ mean
        covariance = model.F @ covariance @ model.F.T + model.Q
        means.append(mean)
        block = covariance
        for j in range(i, steps):
            blocks[j, i], blocks[i, j] = block, block.T
            block = model.F @ block
    return np.concatenate(means), blocks.transpose(0, 2, 1, 3).reshape(steps * d, steps * d)


def test_kalman_reference_is_the_conditional_of_the_joint_gaussian(plane):
    model = plane.build_model()
    recording = record(plane, model, None, np.random.default_rng(3))
    recording.observations[2] = np.nan  # a missing one
    reference = compute_reference(plane, model, recording, np.random.default_rng(0))

    steps, d = recording.truth.shape
    mean, covariance = joint_gaussian(model, steps)
    H = np.kron(np.eye(steps), model.H)
    for t in range(steps):
        seen = [s for s in range(t + 1) if s != 2]
        S = H[seen] @ covariance @ H[seen].T + 0.7 * np.eye(len(seen))
        residual = recording.observations[seen, 0] - H[seen] @ mean
        expected = mean + covariance @ H[seen].T @ np.linalg.solve(S, residual)
        np.testing.assert_allclose(reference.means[t], expected[t * d : (t + 1) * d], atol=1e-10)
    evidence = -0.5 * (residual @ np.linalg.solve(S, residual) + np.linalg.slogdet(2 * np.pi * S)[1])
    assert reference.log_likelihood == pytest.approx(evidence)


def test_kalman_reference_refuses_a_nonlinear_model():
    scenario = Scenario(
        name="x",
        title="x",
        model={"type": "UNGM"},
        steps=3,
        reference={"type": "kalman"},
        filters=("bootstrap",),
    )
    with pytest.raises(ValueError, match="expected a linear model"):
        hf.compare(scenario, particles=[5], runs=1)


def test_grid_and_many_particles_agree_with_kalman(scenario):
    model = scenario.build_model()
    recording = record(scenario, model, None, np.random.default_rng(1))

    def by(**table):
        other = Scenario(name="x", title="x", model=scenario.model, reference=table)
        return compute_reference(other, model, recording, np.random.default_rng(2))

    exact, grid = by(type="kalman"), by(type="grid", lower=-15.0, upper=15.0, points=601)
    np.testing.assert_allclose(grid.means, exact.means, atol=1e-5)
    assert grid.log_likelihood == pytest.approx(exact.log_likelihood, abs=1e-4)
    large = by(type="large", n=20000)
    np.testing.assert_allclose(large.means, exact.means, atol=0.05)
    assert large.log_likelihood == pytest.approx(exact.log_likelihood, abs=0.1)


def test_recording_of_irregular_steps():
    recording = Recording(np.zeros((4, 1)), np.zeros((4, 2)), np.array([1.0, 0.5, 2.0, 1.0]), np.ones((4, 3)))
    np.testing.assert_array_equal(recording.times, [1.0, 1.5, 3.5, 4.5])
    start = recording.first(2)
    assert (len(start), start.dt.tolist(), start.controls.shape) == (2, [1.0, 0.5], (2, 3))


def test_without_a_reference_there_is_none(scenario):
    ungm = load_scenario("ungm")
    bare = Scenario(name="x", title="x", model=ungm.model, steps=5)
    model = bare.build_model()
    recording = record(bare, model, None, np.random.default_rng(1))
    assert compute_reference(bare, model, recording, np.random.default_rng(2)) is None
