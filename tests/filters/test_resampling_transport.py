"""Optimal transport: the ensemble transform particle filter's resampling."""

from itertools import permutations

import numpy as np
from helpers import cases, refusal
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

import herdfilter as hf
from herdfilter.angles import wrap_angles

ETPF = hf.OptimalTransportResampling()


def posterior(seed, n=60, d=2, strength=2.0):
    """Particles of very different units per dimension, with weights that pull them to one side."""
    x = default_rng(seed).standard_normal((n, d))
    log_weights = -0.5 * strength * (x[:, 0] - 1.0) ** 2
    weights = np.exp(log_weights - log_weights.max())
    return x * 100.0 ** np.arange(d), weights / weights.sum()


def transported(scheme, x, weights, circular=()):
    # no generator: no random number
    particles = scheme.resample(hf.Particles.weighted(x, weights), None, circular)
    new = particles.x
    log_weights = particles.log_weights
    assert_allclose(np.exp(log_weights), 1 / len(x), rtol=1e-12)
    return new


@cases(
    "distance d strength",
    ("whitened", 1, 2.0),
    ("whitened", 4, 50.0),
    ("euclidean", 2, 0.1),
    ("whitened", 2, 5000.0),
)
def test_the_weighted_mean_is_kept(distance, d, strength):
    x, weights = posterior(0, d=d, strength=strength)
    new = transported(hf.OptimalTransportResampling(distance), x, weights)
    assert_allclose(new.mean(axis=0), weights @ x, rtol=0, atol=1e-12 * np.abs(x).max())
    rounding = 1e-9 * np.abs(x).max(axis=0)  # the linear programme meets the weights to 1e-10
    within = (new >= x.min(axis=0) - rounding) & (new <= x.max(axis=0) + rounding)
    assert within.all()  # averages


@cases("d", 1, 2)
def test_the_plan_is_the_best_of_all_assignments(d):
    """With weights that are multiples of 1/n a plan of least cost is an assignment; all of them are tried."""
    rng = default_rng(2)
    x = rng.standard_normal((6, d))
    counts = np.array([3, 0, 1, 0, 2, 0])
    copies = np.repeat(x, counts, axis=0)
    best = min(
        (copies[list(p)] for p in permutations(range(6))),
        key=lambda moved: ((moved - x) ** 2).sum(),
    )
    new = transported(hf.OptimalTransportResampling("euclidean"), x, counts / 6)
    assert_allclose(new, best, atol=1e-12)


def test_units_do_not_matter():
    x, weights = posterior(4, d=3)
    scale = np.array([1e-6, 3.0, 1e5])
    new = transported(ETPF, x, weights)
    rescaled = transported(ETPF, x * scale + 7.0, weights)
    assert_allclose((rescaled - 7.0) / scale, new, atol=1e-7 * np.abs(x).max())
    raw = transported(hf.OptimalTransportResampling("euclidean"), x, weights)
    assert np.abs(raw - new).max() > 0.01


def test_angles_are_averaged_across_the_seam():
    rng = default_rng(6)
    x = rng.normal([np.pi, 0.0], [0.3, 1.0], (80, 2))
    weights = rng.dirichlet(np.ones(80))
    for columns in (1, 2):
        new = transported(ETPF, wrap_angles(x[:, :columns], (0,)), weights, circular=(0,))
        assert (np.abs(new[:, 0]) <= np.pi).all()
        expected = transported(ETPF, x[:, :columns], weights)
        assert_allclose(np.mod(new[:, 0], 2 * np.pi), np.mod(expected[:, 0], 2 * np.pi), atol=1e-9)


def test_coinciding_and_degenerate_particles_are_allowed():
    x, weights = posterior(7, n=20)
    x[:10] = x[0]
    assert_allclose(transported(ETPF, x, weights).mean(axis=0), weights @ x, atol=1e-10)
    same = np.ones((5, 2))
    assert_allclose(transported(ETPF, same, np.array([0.4, 0.3, 0.2, 0.1, 0.0])), same, atol=1e-15)
    assert_array_equal(transported(ETPF, np.full((1, 2), 3.0), np.ones(1)), np.full((1, 2), 3.0))


@cases("seed n spread", (0, 50, 5.0), (0, 200, 30.0), (0, 100, 300.0), (1, 40, 30.0))
def test_weights_over_hundreds_of_decades_are_allowed(seed, n, spread):
    rng = default_rng(seed)
    x = rng.standard_normal((n, 4))
    log_weights = spread * rng.standard_normal(n)
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    assert_allclose(transported(ETPF, x, weights).mean(axis=0), weights @ x, rtol=0, atol=1e-13)


def test_too_many_particles_are_refused_except_on_a_line():
    x, weights = posterior(10, n=501)
    with refusal("particles: expected at most 500 for optimal transport in 2 dimensions, got 501"):
        transported(ETPF, x, weights)
    assert len(transported(ETPF, x[:, :1], weights)) == 501
    assert (
        len(transported(hf.OptimalTransportResampling(largest=10), x[:10], np.full(10, 0.1))) == 10
    )
