"""Histories of modes and associations: Gaussians as in the mixture Kalman filter, and particles where these are refused."""

import numpy as np
import pytest
from helpers import assert_same

import herdfilter as hf

SCANS = [[[0.3], [2.0]], [], None, [[1.1], [-4.0], [0.2]], [[-0.4]]]
BENT = hf.models.UNGM()


class Shifted:
    """The model of Kitagawa, shifted: its observation, a square, leaves two modes of the state."""

    dim, initial = BENT.dim, BENT.initial
    observation_mean, observation_covariance = BENT.observation_mean, BENT.observation_covariance
    transition_covariance = BENT.transition_covariance

    def transition_mean(self, x, dt, control, step):
        return BENT.transition_mean(x, dt, control, step) + 8.0


SQUARES = hf.models.JumpMarkov([BENT, Shifted()], [[0.8, 0.2], [0.2, 0.8]])


def radar(bearing_sd):
    """Three motions of an aircraft, straight and turning, seen by range and bearing."""
    modes = []
    for w in (1e-9, 0.15, -0.15):
        s, c = np.sin(w) / w, (1 - np.cos(w)) / w
        F = np.array([[1, s, 0, -c], [0, np.cos(w), 0, -np.sin(w)], [0, c, 1, s], [0, np.sin(w), 0, np.cos(w)]])
        modes.append(
            hf.models.from_functions(
                f=lambda x, F=F: x @ F.T,
                h=lambda x: np.column_stack([np.hypot(x[:, 0], x[:, 2]), np.arctan2(x[:, 2], x[:, 0])]),
                Q=4.0 * np.kron(np.eye(2), [[0.25, 0.5], [0.5, 1.0]]),
                R=np.diag([400.0, bearing_sd**2]),
                initial_mean=[800, -100, 500, 50],
                initial_covariance=np.diag([1e4, 400, 1e4, 400]),
                observation_circular=[1],
            )
        )
    return hf.models.JumpMarkov(modes, 0.05 + 0.85 * np.eye(3))


@pytest.mark.parametrize("clutter", [False, True])
def test_on_linear_modes_and_scans_it_is_the_mixture_kalman_filter(linear_modes, clutter):
    for seed in range(3):
        model = linear_modes(seed, count=2 + seed % 2)
        z = SCANS if clutter else hf.simulate(model, 6, rng=seed)[1]
        model = hf.models.WithClutter(model, 0.9, 0.05) if clutter else model
        # room for all: of too many, ties between equal weights are decided by the last bit
        auto, mkf = (hf.make_filter(name, model, 1000).run(z) for name in ("auto", "mkf"))
        assert_same(auto, mkf, "means", "covariances", "log_likelihoods", "mode_probabilities", atol=1e-8, rtol=1e-7)


def test_scans_of_one_linear_model_are_the_mixture_kalman_filter_too(linear_modes):
    model = hf.models.WithClutter(linear_modes(1, count=1).models[0], 0.9, 0.05)
    auto, mkf = (hf.make_filter(name, model, 40).run(SCANS) for name in ("auto", "mkf"))
    assert_same(auto, mkf, "means", "covariances", "log_likelihoods", atol=1e-8, rtol=1e-7)


def errors(model, names, seeds, reference_of=4000):
    """Median error of the mean against many particles, in posterior standard deviations."""
    found = {name: [] for name in names}
    for seed in seeds:
        _, z = hf.simulate(model, 15, rng=[seed, 3])
        runs = [hf.make_filter("sqmc", model, reference_of, rng=[seed, k]).run(z) for k in (0, 1)]
        mean = 0.5 * (runs[0].means + runs[1].means)
        sd = np.sqrt(np.diagonal(runs[0].covariances, axis1=1, axis2=2))
        for name in names:
            result = hf.make_filter(name, model, 100, rng=seed).run(z)
            found[name].append(np.sqrt(np.mean(((result.means - mean) / sd) ** 2)))
    return {name: np.median(values) for name, values in found.items()}


def test_particles_follow_two_modes_that_no_gaussian_of_a_history_has():
    found = errors(SQUARES, ("auto", "mkf"), range(5))
    assert found["auto"] < 0.25 * found["mkf"]


def test_exact_weights_beat_kalman_where_a_sensor_bends():
    found = errors(radar(np.radians(5)), ("auto", "mkf"), range(5), 2**15)
    assert found["auto"] < found["mkf"]


def test_no_random_number_is_used():
    _, z = hf.simulate(SQUARES, 8, rng=1)
    assert_same(*(hf.make_filter("auto", SQUARES, 30, rng=seed).run(z) for seed in (1, 2)), "means", "log_likelihoods")


@pytest.mark.parametrize("model", [SQUARES, hf.models.WithClutter(SQUARES, 0.9, 0.02)], ids=["modes", "scans"])
@pytest.mark.parametrize("waiting", [False, True])
def test_its_state_goes_on_to_the_last_bit(model, waiting):
    pf, other = (hf.make_filter("auto", model, 30) for _ in range(2))
    scan = hasattr(model, "detection_probability")
    for z in ([4.0], [9.0], [1.0]):
        pf.predict()
        pf.update([z, [15.0]] if scan else z)
    if waiting:
        pf.predict()
    other.restore(pf.state)
    for one in (pf, other):
        if not waiting:
            one.predict()
        one.update([[2.0]] if scan else [2.0])
    np.testing.assert_array_equal(pf.mean, other.mean)
    np.testing.assert_array_equal(pf.particles, other.particles)
    assert pf.log_likelihood == other.log_likelihood


def test_a_second_sensor_updates_the_gaussians(linear_modes):
    model = linear_modes(2, count=2)
    sensor = hf.Sensor(lambda x: x[:, 1:], [[0.3]])
    scanning = hf.Sensor(lambda x: x[:, :1], [[0.5]], detection_probability=0.8, clutter_density=0.1)
    auto, mkf = (hf.make_filter(name, model, 60) for name in ("auto", "mkf"))
    for z in ([0.4], [1.1]):
        for pf in (auto, mkf):
            pf.predict()
            pf.update(z)
            pf.update([0.7], sensor)
            pf.update([[0.1], [2.0]], scanning)
        np.testing.assert_allclose(auto.mean, mkf.mean, atol=1e-8)
        np.testing.assert_allclose(auto.log_likelihood, mkf.log_likelihood, atol=1e-8)
        np.testing.assert_allclose(auto.predicted_observation()[1], mkf.predicted_observation()[1], atol=1e-8)


def test_particles_are_points_of_the_histories(linear_modes):
    model = linear_modes(3, count=2)
    result = hf.make_filter("auto", model, 200).run([[0.3], [1.1], [-0.4]], keep_particles=True)
    assert result.particles.shape == (3, 200, model.dim)
    np.testing.assert_allclose(result.particles[-1].mean(axis=0), result.means[-1], atol=0.2)
    assert (result.ess > 20).all()


def test_the_union_of_hypotheses_is_a_mixture(linear_modes):
    alone = linear_modes(0, count=1).models[0]
    filters = [hf.ParticleFilter(alone, 50, hf.HistoryProposal()) for _ in range(2)]
    for pf, z in zip(filters, ([0.0], [4.0]), strict=True):
        pf.predict()
        pf.update(z)
    union = filters[0].combine(filters, np.array([0.3, 0.7]))
    np.testing.assert_allclose(union.mean, 0.3 * filters[0].mean + 0.7 * filters[1].mean)
    union.predict()
    assert np.isfinite(union.update([2.0]).log_likelihood)


def test_only_auto_is_wrapped():
    with pytest.raises(TypeError, match="proposal: expected an AutomaticProposal"):
        hf.HistoryProposal(hf.RankedProposal())
