"""Backward simulation against exact smoothers: Rauch-Tung-Striebel, Gaussian conditioning, and a grid."""

import numpy as np
from helpers import filterpy_filter, kalman, plane
from numpy.testing import assert_allclose, assert_array_equal

import herdfilter as hf

PLANE = plane(R=[[0.7]])


def smoothed(model, z, n, seed=0, **options):
    pf = hf.ParticleFilter(model, n, rng=seed)
    result = pf.run(z, keep_particles=True, **options)
    return hf.backward_simulation(
        model, result, n, np.random.default_rng([1, seed]), **options
    ), result


def statistics(x):
    """Means, covariances and lag-one covariances of trajectories (m, T, d), in one vector."""
    centred = x - x.mean(axis=0)
    joint = np.einsum("mti,msj->tsij", centred, centred) / len(x)
    t = np.arange(x.shape[1])
    return x.mean(axis=0), joint[t, t], joint[t[:-1], t[1:]]


def rts(model, observations):
    means, covariances, gain, _ = filterpy_filter(model).rts_smoother(
        *kalman(model, observations)[:2]
    )
    return means, covariances, gain[:-1] @ covariances[1:]


def errors(model, z, exact, n, runs):
    square = [
        [np.mean((a - b) ** 2) for a, b in zip(statistics(trajectories.x), exact, strict=True)]
        for trajectories, _ in (smoothed(model, z, n, seed) for seed in range(runs))
    ]
    return np.sqrt(np.mean(square, axis=0))


def series():
    z = hf.simulate(PLANE, 8, rng=5)[1]
    z[[2, 5]] = np.nan
    return z


def test_linear_gaussian_moments_approach_rauch_tung_striebel_as_one_over_root_n():
    z = series()
    exact = rts(PLANE, z)
    sizes = np.array([40, 160, 640])
    found = np.array([errors(PLANE, z, exact, n, runs=8) for n in sizes])
    slopes = np.polyfit(np.log(sizes), np.log(found), 1)[0]
    assert (slopes < -0.35).all(), slopes
    assert (slopes > -0.65).all(), slopes
    assert (found[-1] < 0.1).all(), found[-1]


def test_time_steps_and_controls_lead_to_the_step_of_their_index(driven, exact):
    """Against conditioning of the joint Gaussian of all states on all observations."""
    dt = np.array([1.0, 0.1, 3.0, 0.2, 0.5])
    controls = np.array([[0.0, 1.0], [2.0, 0.0], [-4.0, 1.0], [1.5, 0.5], [2.0, 2.0]])
    z = np.array([[2.0], [3.5], [np.nan], [-4.0], [1.0]])
    means, covariances = exact(driven, z, dt, controls)
    drawn = np.concatenate(
        [smoothed(driven, z, 500, seed, dt=dt, controls=controls)[0].x for seed in range(4)]
    )
    spread = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
    assert_allclose((drawn.mean(axis=0) - means) / spread, 0, atol=0.2)
    assert_allclose(statistics(drawn)[1], covariances, atol=0.2 * covariances.max())


def grid_statistics(x, marginal, joint):
    mean = marginal @ x
    return (
        mean[:, None],
        (marginal @ x**2 - mean**2)[:, None, None],
        (np.einsum("tij,i,j->t", joint, x, x) - mean[1:] * mean[:-1])[:, None, None],
    )


def test_the_growth_model_is_smoothed_as_on_a_grid(growth):
    model, x, z, marginal, joint = growth
    exact = grid_statistics(x, marginal, joint)
    two_modes = np.minimum(marginal[:, x < 0].sum(axis=1), marginal[:, x > 0].sum(axis=1))
    assert two_modes[7:].min() > 0.08  # not at the last step only
    few, many = (errors(model, z, exact, n, runs=6) for n in (50, 500))
    assert (many < 0.5 * few).all(), (few, many)
    drawn = np.vstack([smoothed(model, z, 500, seed)[0].x[..., 0] for seed in range(6)])
    assert_allclose((drawn > 0).mean(axis=0), marginal[:, x > 0].sum(axis=1), atol=0.05)
    assert_allclose(drawn.mean(axis=0), exact[0][:, 0], atol=0.5)


def test_a_seed_decides_and_the_chunks_do_not(monkeypatch):
    _, result = smoothed(PLANE, series(), 50)
    first = hf.backward_simulation(PLANE, result, 70, 3)
    again = hf.backward_simulation(PLANE, result, 70, np.random.default_rng(3))
    other = hf.backward_simulation(PLANE, result, 70, 4)
    monkeypatch.setattr("herdfilter.smoothing.particles.CHUNK_SIZE", 7 * 50 * 2)
    chunks = hf.backward_simulation(PLANE, result, 70, 3)
    assert_array_equal(first.x, again.x)
    assert_array_equal(first.x, chunks.x)
    assert (first.x != other.x).any()
