"""Resampling schemes that copy particles: what any must do with the numbers of copies; a known wrong one is found out."""

import time
from functools import cache
from types import SimpleNamespace

import filterpy.monte_carlo.resampling as filterpy_resampling
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import herdfilter as hf
from herdfilter.filters import Particles

SCHEMES = {
    "multinomial": hf.MultinomialResampling(),
    "stratified": hf.StratifiedResampling(),
    "systematic": hf.SystematicResampling(),
    "residual": hf.ResidualResampling(),
    "residual, systematic": hf.ResidualResampling(rest="systematic"),
    "ssp": hf.SSPResampling(),
}


def only(*names):
    return pytest.mark.parametrize("scheme", [SCHEMES[name] for name in names], ids=names)


every_scheme = only(*SCHEMES)
every_even_scheme = only("systematic", "residual, systematic", "ssp")

RUNS = 2500
WEIGHTS = {
    "uneven": np.random.default_rng(5).dirichlet(np.full(15, 0.3)),
    "nearly even": np.random.default_rng(6).dirichlet(np.full(12, 30.0)),
    "whole numbers and halves": np.array([2.5, 0.5, 1.0, 0.0, 1.5, 0.5]) / 6,
    "over many decades": 10.0 ** -np.arange(10) / (10.0 ** -np.arange(10)).sum(),
    "light and heavy": np.tile([0.25, 0.75], 6) / 6,  # a comb takes all the light particles or none
}
every_weights = pytest.mark.parametrize("name", [name for name in WEIGHTS if name != "light and heavy"])


def copies(scheme, weights, rng):
    n = len(weights)
    new = scheme.resample(Particles.weighted(np.arange(n)[:, None], weights), rng).x.astype(int)
    return np.bincount(new[:, 0], minlength=n)


@cache
def many_copies(scheme, name):
    rng = np.random.default_rng(0)
    return np.array([copies(scheme, WEIGHTS[name], rng) for _ in range(RUNS)])


def bias(scheme, name):
    """Largest deviation of the mean number of copies from n w, in standard errors.

    No whole number of that mean varies less than one that is rounded up or down; 1e-9 stands for rounding.
    """
    weights = WEIGHTS[name]
    counts, expected = many_copies(scheme, name), len(weights) * weights
    share = expected - np.floor(expected)
    variance = np.maximum(counts.var(axis=0), share * (1 - share))
    return (np.abs(counts.mean(axis=0) - expected) / (np.sqrt(variance / RUNS) + 1e-9)).max()


@every_weights
@every_scheme
def test_expected_number_of_copies_is_n_times_the_weight(scheme, name):
    assert bias(scheme, name) < 4.5


class FilterpyResidual:
    """The residual resampling of filterpy 1.4.5, which leaves particles under an average weight without copies."""

    def resample(self, particles, rng, circular=()):
        filterpy_resampling.random = rng.random
        return Particles.equal(particles.x[filterpy_resampling.residual_resample(particles.weights)])


@pytest.mark.parametrize("name", ["uneven", "nearly even"])
def test_a_known_wrong_scheme_is_found_out(monkeypatch, name):
    monkeypatch.setattr(filterpy_resampling, "random", None)  # restored afterwards
    assert bias(FilterpyResidual(), name) > 20


@every_weights
@every_scheme
def test_number_of_copies_varies_no_more_than_in_multinomial_resampling(scheme, name):
    weights, counts = WEIGHTS[name], many_copies(scheme, name)
    squares = (counts - len(weights) * weights) ** 2
    multinomial = len(weights) * weights * (1 - weights)
    error = np.sqrt(np.maximum(squares.var(axis=0), multinomial) / RUNS)
    assert (squares.mean(axis=0) <= multinomial + 4.5 * error).all()
    if scheme != hf.MultinomialResampling():
        assert squares.mean(axis=0).sum() < 0.95 * multinomial.sum()


def test_multinomial_copies_have_the_multinomial_covariance():
    weights = WEIGHTS["nearly even"]
    n = len(weights)
    covariance = np.cov(many_copies(hf.MultinomialResampling(), "nearly even").T)
    exact = n * (np.diag(weights) - np.outer(weights, weights))
    assert np.abs(covariance - exact).max() < 4.5 * np.sqrt(2 / RUNS) * exact.max()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(1, 200), st.floats(0.01, 10))
@every_even_scheme
def test_even_schemes_round_n_times_the_weight_up_or_down(scheme, seed, n, concentration):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(n, concentration))
    counts, expected = copies(scheme, weights, rng), n * weights
    assert (counts >= np.floor(expected - 1e-9)).all()
    assert (counts <= np.ceil(expected + 1e-9)).all()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(1, 200), st.floats(0.01, 10))
def test_residual_keeps_the_whole_numbers_and_stratified_is_less_than_two_away(seed, n, concentration):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(n, concentration))
    assert (copies(hf.ResidualResampling(), weights, rng) >= np.floor(n * weights - 1e-9)).all()
    assert (np.abs(copies(hf.StratifiedResampling(), weights, rng) - n * weights) < 2 + 1e-9).all()


@only("stratified", "systematic", "residual", "residual, systematic", "ssp")
def test_equal_weights_return_each_particle_once(scheme):
    for n in (1, 2, 7, 49, 98, 1000):  # n (1 / n) < 1 in floating point for 49 and 98
        counts = copies(scheme, np.full(n, 1 / n), np.random.default_rng(1))
        np.testing.assert_array_equal(counts, np.ones(n))


class Constant:
    def __init__(self, u):
        self.u = u

    def random(self, size=None):
        return self.u if size is None else np.full(size, self.u)


@pytest.mark.parametrize("u", [0.0, 1 - 2.0**-53], ids=["least", "largest"])
@every_scheme
def test_a_particle_without_weight_has_no_copies_at_the_ends_of_the_unit_interval(scheme, u):
    for weights in ([0.0, 0.5, 0.3, 0.2, 0.0], [0.0, 0.1, 0.0, 0.9, 0.0], [0.0, 0.2, 0.2, 0.6, 0.0]):
        counts = copies(scheme, np.array(weights), Constant(u))
        assert not counts[np.array(weights) == 0].any()
    spread = np.random.default_rng(2).dirichlet(np.full(100_000, 0.01))  # most underflow
    spread[-1000:] = 0.0
    assert not copies(scheme, spread / spread.sum(), Constant(u))[spread == 0].any()


@every_scheme
def test_many_particles_are_quick_and_lose_nothing_to_rounding(scheme):
    n = 100_000
    rng = np.random.default_rng(4)
    weights = rng.dirichlet(np.full(n, 0.5))
    copies(scheme, np.ones(1), rng)  # compiles
    start = time.thread_time()
    counts = copies(scheme, weights, rng)
    assert time.thread_time() - start < 0.25  # a loop of the interpreter over the particles takes longer
    assert counts.sum() == n
    heavy = n * weights > 20
    assert heavy.sum() > 5 or n * weights.max() > 10
    assert np.abs(counts - n * weights).max() < 6 * np.sqrt(n * weights.max())


@every_scheme
def test_weights_that_sum_to_one_only_up_to_rounding_do_no_harm(scheme):
    weights = WEIGHTS["uneven"]
    for factor in (1 - 1e-9, 1 + 1e-9):
        assert copies(scheme, factor * weights, np.random.default_rng(0)).sum() == len(weights)


@every_scheme
def test_copies_are_equally_weighted(scheme):
    for n in (1, 3, 20):
        particles = scheme.resample(Particles.weighted(np.eye(n), np.full(n, 1 / n)), np.random.default_rng(0))
        new, log_weights = particles.x, particles.log_weights
        assert new.shape == (n, n)
        assert np.ptp(log_weights) == 0
        np.testing.assert_allclose(log_weights, -np.log(n), atol=1e-14)


@every_scheme
def test_the_same_seed_gives_the_same_particles_and_input_stays_as_it_is(scheme):
    rng = np.random.default_rng(7)
    x, weights = rng.standard_normal((30, 3)), rng.dirichlet(np.full(30, 0.5))
    before = x.copy(), weights.copy()
    first, again, other = (scheme.resample(Particles.weighted(x, weights), np.random.default_rng(s)).x for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert not np.shares_memory(first, x)
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(weights, before[1])


@every_scheme
def test_copies_come_in_the_order_of_the_particles(scheme):
    """Neighbours stay neighbours, which stratified and systematic resampling at the next step live on."""
    new = scheme.resample(Particles.weighted(np.arange(15)[:, None], WEIGHTS["uneven"]), np.random.default_rng(8)).x
    assert (np.diff(new[:, 0]) >= 0).all()


def test_ssp_copies_are_negatively_correlated_where_systematic_ones_are_not():
    """Gerber, Chopin and Whiteley (2019): which particles systematic resampling keeps together depends on their order."""
    systematic, ssp = (
        np.cov(many_copies(scheme, "light and heavy")[:, ::2].T)
        for scheme in (hf.SystematicResampling(), hf.SSPResampling())
    )
    off = ~np.eye(6, dtype=bool)
    assert systematic[off].max() > 0.15
    assert ssp[off].max() < 4.5 * 0.25 / np.sqrt(RUNS)


def test_ssp_copies_are_in_the_mean_what_they_ought_to_be_over_a_grid_of_uniform_numbers():
    middles = (np.arange(60) + 0.5) / 60
    for weights in ([0.15, 0.5, 0.35], [0.0, 0.55, 0.45], [0.9, 0.06, 0.04], [0.3, 0.3, 0.4]):
        counts = []
        for u in np.stack(np.meshgrid([0.5], middles, middles), axis=-1).reshape(-1, 3):
            counts.append(copies(hf.SSPResampling(), np.array(weights), SimpleNamespace(random=lambda size, u=u: u)))
        assert (np.sum(counts, axis=1) == 3).all()
        np.testing.assert_allclose(np.mean(counts, axis=0), 3 * np.array(weights), atol=1 / 30)
