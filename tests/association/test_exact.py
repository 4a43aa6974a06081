"""Exact association against enumeration of all assignments."""

import math

import numpy as np
import pytest

from herdfilter import association

SHAPES = [(t, m) for t in range(1, 5) for m in range(5)]


@pytest.mark.parametrize("shape", SHAPES)
def test_it_equals_brute_force(brute, shape):
    for seed in range(50):  # 1,000 matrices in all
        ratios = brute.ratios(seed, *shape)
        found = association.associate(ratios)
        np.testing.assert_allclose(found.marginals, brute.marginals(ratios), rtol=0, atol=1e-12)
        assert found.log_evidence == pytest.approx(math.log(brute.total(ratios)), abs=1e-12)


@pytest.mark.parametrize("shape", [(3, 90), (90, 3)])
def test_sets_of_more_members_than_a_word_has_bits(shape):
    """Tracks and measurements change places where no track is missed and no measurement is clutter but by weight 1."""
    rng = np.random.default_rng(1)
    pairs = rng.exponential(size=shape)
    few = pairs if shape[0] < shape[1] else pairs.T
    a, b, c = few
    pair_sums = [a.sum() * b.sum() - a @ b, a.sum() * c.sum() - a @ c, b.sum() * c.sum() - b @ c]
    triples = a.sum() * b.sum() * c.sum() - (a @ b) * c.sum() - (a @ c) * b.sum() - (b @ c) * a.sum()
    total = 1 + a.sum() + b.sum() + c.sum() + sum(pair_sums) + triples + 2 * (a * b * c).sum()
    found = association.associate(np.column_stack([np.ones(shape[0]), pairs]))
    assert found.log_evidence == pytest.approx(math.log(total), abs=1e-12)


def test_a_long_chain_of_tracks_is_a_matter_of_two_open_measurements():
    """Each track gates its own measurement and the next: what it counts are the matchings of a path (Fibonacci)."""
    n = 60
    ratios = np.zeros((n, n + 2))
    ratios[:, 0] = 1
    ratios[np.arange(n), 1 + np.arange(n)] = ratios[np.arange(n), 2 + np.arange(n)] = 1
    matchings = [1, 1]
    while len(matchings) < 2 * n + 2:
        matchings.append(matchings[-1] + matchings[-2])
    found = association.associate(ratios, association.Exact(max_ways=2000))
    assert found.log_evidence == pytest.approx(math.log(matchings[-1]), rel=1e-14)


def test_ratios_of_any_magnitude():
    """Two tracks want one measurement, and the weights of neither alternative can be squared."""
    np.testing.assert_allclose(association.marginals([[1e-200, 1e200]] * 2), 0.5, rtol=1e-12)
    np.testing.assert_allclose(association.marginals([[3e-320, 3e-320, 0], [1e300, 0, 1e300]])[:, 0], 0.5)


def test_tracks_that_are_never_missed_take_turns():
    np.testing.assert_allclose(
        association.marginals([[0, 1, 3], [0, 1, 1]]), [[0, 0.25, 0.75], [0, 0.75, 0.25]]
    )


def test_a_cluster_that_is_too_large_is_refused_with_its_cost():
    """Sets of at most 0, 1, 2 of 12 tracks, and for each the 13 alternatives of the next measurement."""
    ways = (1 + (1 + 12) + (1 + 12 + 66)) * 13
    with pytest.raises(
        ValueError,
        match=rf"12 tracks and 13 .* needs {ways:,} ways .* step 3 of 13 .* allows 1,000; take Bel",
    ):
        association.Exact(max_ways=1000).marginals(np.ones((12, 14)))


def test_clusters_that_are_too_large_may_have_another_method():
    ratios = np.zeros((5, 6))
    ratios[:, 0] = 1
    ratios[:2, 1:3] = ratios[2:, 3:] = 1
    both = association.Exact(max_ways=12, otherwise=association.KBest(1)).marginals(ratios)
    np.testing.assert_allclose(both[:2], association.marginals(ratios)[:2])
    assert set(both[2:].ravel()) == {0, 1}
