"""Resampling schemes that copy particles: what any must do with the numbers of copies; a known wrong one is found out."""

from functools import cache

import numpy as np
from helpers import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

import herdfilter as hf

SCHEMES = {
    "multinomial": hf.MultinomialResampling(),
    "stratified": hf.StratifiedResampling(),
    "systematic": hf.SystematicResampling(),
    "residual": hf.ResidualResampling(),
    "residual, systematic": hf.ResidualResampling(rest="systematic"),
    "ssp": hf.SSPResampling(),
}


def only(*names):
    return cases("scheme", *[SCHEMES[name] for name in names], ids=names)


every_scheme = only(*SCHEMES)
RUNS = 800
WEIGHTS = {
    "uneven": default_rng(5).dirichlet(np.full(15, 0.3)),
    "nearly even": default_rng(6).dirichlet(np.full(12, 30.0)),
    "whole numbers and halves": np.array([2.5, 0.5, 1.0, 0.0, 1.5, 0.5]) / 6,
    "over many decades": 10.0 ** -np.arange(10) / (10.0 ** -np.arange(10)).sum(),
    "light and heavy": np.tile([0.25, 0.75], 6) / 6,  # a comb takes all the light particles or none
}


def copies(scheme, weights, rng):
    n = len(weights)
    new = scheme.resample(hf.Particles.weighted(np.arange(n)[:, None], weights), rng).x.astype(int)
    return np.bincount(new[:, 0], minlength=n)


@cache
def many_copies(scheme, name):
    rng = default_rng(0)
    return np.array([copies(scheme, WEIGHTS[name], rng) for _ in range(RUNS)])


def bias(scheme, name):
    """Largest deviation of the mean number of copies from n w, in standard errors.

    No whole number of that mean varies less than one that is rounded up or down; 1e-9 stands for rounding.
    """
    weights = WEIGHTS[name]
    counts = many_copies(scheme, name)
    expected = len(weights) * weights
    share = expected - np.floor(expected)
    variance = np.maximum(counts.var(axis=0), share * (1 - share))
    return (np.abs(counts.mean(axis=0) - expected) / (np.sqrt(variance / RUNS) + 1e-9)).max()


@every_scheme
def test_copies_have_the_mean_n_times_the_weight_and_vary_no_more_than_in_multinomial_resampling(
    scheme,
):
    for name in ("uneven", "nearly even", "whole numbers and halves", "over many decades"):
        assert bias(scheme, name) < 4.5, name
        weights = WEIGHTS[name]
        counts = many_copies(scheme, name)
        squares = (counts - len(weights) * weights) ** 2
        multinomial = len(weights) * weights * (1 - weights)
        error = np.sqrt(np.maximum(squares.var(axis=0), multinomial) / RUNS)
        assert (squares.mean(axis=0) <= multinomial + 4.5 * error).all(), name
        if scheme != hf.MultinomialResampling():
            assert squares.mean(axis=0).sum() < 0.95 * multinomial.sum(), name


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(1, 200), st.floats(0.01, 10))
def test_numbers_of_copies_are_within_the_bounds_of_their_scheme(seed, n, concentration):
    """Even schemes round n w up or down; residual ones keep its whole part, stratified ones are less than two away."""
    rng = default_rng(seed)
    weights = rng.dirichlet(np.full(n, concentration))
    expected = n * weights
    for name in ("systematic", "residual, systematic", "ssp", "residual"):
        counts = copies(SCHEMES[name], weights, rng)
        assert (counts >= np.floor(expected - 1e-9)).all(), name
        assert (counts <= np.ceil(expected + 1e-9)).all() or name == "residual", name
    assert (np.abs(copies(hf.StratifiedResampling(), weights, rng) - expected) < 2 + 1e-9).all()


@only("stratified", "systematic", "residual", "residual, systematic", "ssp")
def test_equal_weights_return_each_particle_once(scheme):
    for n in (1, 2, 7, 49, 98, 1000):  # n (1 / n) < 1 in floating point for 49 and 98
        counts = copies(scheme, np.full(n, 1 / n), default_rng(1))
        assert_array_equal(counts, np.ones(n))


class Constant:
    def __init__(self, u):
        self.u = u

    def random(self, size=None):
        return self.u if size is None else np.full(size, self.u)


@every_scheme
def test_a_particle_without_weight_has_no_copies_at_the_ends_of_the_unit_interval(scheme):
    spread = default_rng(2).dirichlet(np.full(100_000, 0.01))  # most underflow
    spread[-1000:] = 0.0
    several = (
        [0.0, 0.5, 0.3, 0.2, 0.0],
        [0.0, 0.1, 0.0, 0.9, 0.0],
        [0.0, 0.2, 0.2, 0.6, 0.0],
        spread / spread.sum(),
    )
    for u in (0.0, 1 - 2.0**-53):
        for weights in several:
            assert not copies(scheme, np.array(weights), Constant(u))[np.array(weights) == 0].any()


@every_scheme
def test_many_particles_lose_nothing_to_rounding(scheme):
    n = 100_000
    rng = default_rng(4)
    weights = rng.dirichlet(np.full(n, 0.5))
    counts = copies(scheme, weights, rng)
    assert counts.sum() == n
    assert np.abs(counts - n * weights).max() < 6 * np.sqrt(n * weights.max())


@every_scheme
def test_copies_are_equally_weighted_in_the_order_of_the_particles_and_drawn_by_the_seed(scheme):
    """Neighbours stay neighbours, which stratified and systematic resampling at the next step live on."""
    x = np.arange(30.0)[:, None]
    weights = default_rng(7).dirichlet(np.full(30, 0.5))
    first, again, other = (
        scheme.resample(hf.Particles.weighted(x, weights), default_rng(s)) for s in (1, 1, 2)
    )
    assert_allclose(first.log_weights, -np.log(30), atol=1e-14)
    assert (np.diff(first.x[:, 0]) >= 0).all()
    assert_array_equal(first.x, again.x)
    assert (first.x != other.x).any()
    assert not np.shares_memory(first.x, x)


def test_ssp_copies_are_negatively_correlated_where_systematic_ones_are_not():
    """Gerber, Chopin and Whiteley (2019): which particles systematic resampling keeps together depends on their order."""
    systematic, ssp = (
        np.cov(many_copies(scheme, "light and heavy")[:, ::2].T)
        for scheme in (hf.SystematicResampling(), hf.SSPResampling())
    )
    off = ~np.eye(6, dtype=bool)
    assert systematic[off].max() > 0.15
    assert ssp[off].max() < 4.5 * 0.25 / np.sqrt(RUNS)
