"""Herding on a finite set: the error of every prefix falls as 1/t."""

from fractions import Fraction

import numpy as np
import pytest
from helpers import cases, refusal, refuses
from numpy.random import default_rng
from numpy.testing import assert_array_equal

from herdfilter.discrete import herding
from herdfilter.discrete.herding import herded_labels


def excess(states, p):
    return np.cumsum(np.eye(len(p))[states], axis=0) - np.arange(1, len(states) + 1)[:, None] * p


@cases("size concentration", (2, 10.0), (10, 0.2), (100, 1.0))
def test_counts_stay_close_to_the_probabilities_at_every_length(size, concentration):
    """Over by less than 1; short by at most the harmonic number, the known bound on always emptying the fullest cup."""
    rng = default_rng(size)
    harmonic = (1 / np.arange(1, size + 1)).sum()
    for _ in range(3):
        p = rng.dirichlet(np.full(size, concentration))
        e = excess(herding(p, 3000), p)
        assert e.max() < 1
        assert e.min() > -harmonic
    random = excess(rng.choice(size, 3000, p=p), p)
    assert np.abs(random).max() > 3 * np.abs(e).max()  # grows as the square root of t


def test_probabilities_are_normalised_and_impossible_states_never_come():
    assert_array_equal(herding([3, 0, 1], 40), herding([0.75, 0, 0.25], 40))
    assert np.bincount(herding([3, 0, 1], 40), minlength=3).tolist() == [30, 0, 10]


@cases("shares", [1, 1, 1], [5, 3, 1, 3, 2], ids=str)
def test_ties_are_those_of_exact_arithmetic(shares):
    """Herding with fractions; numbers that are rounded differ from them in the last digit, and every few steps tie."""
    p = [Fraction(share, sum(shares)) for share in shares]
    lack = [Fraction()] * len(shares)
    expected = []
    for _ in range(500):
        lack = [a + b for a, b in zip(lack, p, strict=True)]
        expected.append(lack.index(max(lack)))
        lack[expected[-1]] -= 1
    for change in (-1e-15, 0.0, 1e-15):
        changed = np.array(shares) / sum(shares) * (1 + change * np.arange(len(shares)))
        assert_array_equal(herding(changed, 500), expected)
        assert_array_equal(herded_labels(changed, 500), expected)
        assert_array_equal(herding(changed, 500, np.eye(len(shares))), expected)


@cases("size k", (10, 3), (200, 10))
def test_moments_are_matched_at_the_rate_of_one_over_the_length(size, k):
    rng = default_rng(size)
    phi = rng.standard_normal((size, k))
    moments = rng.dirichlet(np.ones(size)) @ phi
    states = herding(moments, 8_000, phi)
    t = np.arange(1, len(states) + 1)
    # t times the error
    gap = np.linalg.norm(np.cumsum(phi[states], axis=0) - t[:, None] * moments, axis=1)
    assert gap.max() < 2 * np.linalg.norm(phi, axis=1).max()
    assert gap[4_000:].max() < 1.5 * gap[:4_000].max()


def test_each_state_is_the_best_for_the_weights():
    rng = default_rng(5)
    phi = rng.standard_normal((30, 4))
    moments = rng.dirichlet(np.ones(30)) @ phi
    w = moments.copy()
    for x in herding(moments, 300, phi):
        assert (phi @ w)[x] == pytest.approx((phi @ w).max(), abs=1e-10)
        w += moments - phi[x]


def test_moments_outside_the_hull_are_refused():
    square = [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert len(herding([0.5, 0.999], 1000, square)) == 1000
    for outside in ([0.5, 1.01], [-0.2, -0.2], [3.0, 0.5]):
        with refusal("moments: expected a point in the convex hull of the features"):
            herding(outside, 1000, square)


test_bad_input_is_named = refuses(
    lambda moments, features, n=10: herding(moments, n, features),
    ([0.5, -0.1], None, "moments: expected non-negative"),
    ([0.0, 0.0], None, "moments: expected a positive finite sum"),
    ([0.5, 0.5], np.eye(3), r"moments: expected shape \(3,\), got \(2,\)"),
)
