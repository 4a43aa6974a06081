"""Exact association against enumeration of all assignments."""

import math
from fractions import Fraction

import numpy as np
import pytest

from herdfilter import association
from herdfilter.association import BeliefPropagation, Exact, KBest
from herdfilter.association.exact import _greedy_order, _plan_of, plan

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
    np.testing.assert_allclose(association.marginals([[0, 1, 3], [0, 1, 1]]), [[0, 0.25, 0.75], [0, 0.75, 0.25]])


def test_a_cluster_that_is_too_large_is_refused_with_its_cost():
    """Sets of at most 0, 1, 2 of 12 tracks, and for each the 13 alternatives of the next measurement."""
    ways = (1 + (1 + 12) + (1 + 12 + 66)) * 13
    with pytest.raises(
        ValueError, match=rf"max_ways = 1,000 ways, got 12 tracks with 13 .* need {ways:,} ways .* step 3 of 13; take Bel"
    ):
        association.Exact(max_ways=1000).marginals(np.ones((12, 14)))


def test_clusters_that_are_too_large_may_have_another_method():
    ratios = np.zeros((5, 6))
    ratios[:, 0] = 1
    ratios[:2, 1:3] = ratios[2:, 3:] = 1
    both = association.Exact(max_ways=12, otherwise=association.KBest(1)).marginals(ratios)
    np.testing.assert_allclose(both[:2], association.marginals(ratios)[:2])
    assert set(both[2:].ravel()) == {0, 1}


def graph(seed, rows, columns, band):
    rng = np.random.default_rng(seed)
    place = np.abs(np.arange(rows)[:, None] * columns / rows - np.arange(columns)) < band
    gated = place & (rng.random((rows, columns)) < 0.8)
    gated[np.arange(rows), (np.arange(rows) * columns) // rows] = True
    return gated[rng.permutation(rows)][:, rng.permutation(columns)]


@pytest.mark.parametrize(("rows", "columns", "band"), [(5, 4, 3), (12, 12, 3), (25, 20, 4), (8, 80, 30)])
def test_a_plan_opens_and_closes_every_column_once_and_counts_the_ways(rows, columns, band):
    """No two open columns share a bit; sets are of at most as many open columns as rows before; greedy is the bound."""
    for seed in range(3):
        gated = graph(seed, rows, columns, band)
        found = plan(gated)
        assert sorted(found.order) == list(range(rows))
        ways, most_open, begun = 0, 0, set()
        for i, row in enumerate(found.order):
            own = set(np.flatnonzero(gated[row]).tolist())
            left = {c for r in found.order[i:] for c in np.flatnonzero(gated[r]).tolist()}
            later = {c for r in found.order[i + 1 :] for c in np.flatnonzero(gated[r]).tolist()}
            still = begun & left
            ways += sum(math.comb(len(still), k) for k in range(i + 1)) * (1 + len(own))
            begun |= own
            most_open = max(most_open, len(still | own))
            slots = [found.slot[c] for c in still | own]
            assert len(set(slots)) == len(slots)
            assert found.columns[i].tolist() == sorted(own)
            assert set(found.closing[i].tolist()) == own - later
        assert np.exp(found.log_cost) == pytest.approx(ways, rel=1e-9)
        assert found.slot.max() < most_open
        assert found.words == max(1, -(-most_open // 62))
        assert found.log_cost <= _plan_of(gated, _greedy_order(gated)).log_cost


def test_the_greedy_order_leaves_the_fewest_columns_open_at_every_row():
    for seed in range(5):
        gated = graph(seed, 10, 9, 3)
        for first in (None, 4):
            order = _greedy_order(gated, first).tolist()
            assert first is None or order[0] == first

            def opened(rows, gated=gated):
                rest = [r for r in range(10) if r not in rows]
                return (gated[rows].any(axis=0) & gated[rest].any(axis=0)).sum()

            for i in range(0 if first is None else 1, 10):
                waiting = [r for r in range(10) if r not in order[:i]]
                assert opened(order[: i + 1]) == min(opened([*order[:i], r]) for r in waiting)


def test_a_long_band_in_any_order_costs_hardly_more_than_in_its_own():
    """Greedy from the first row that comes costs up to a thousand times as much, the best of several orders does not."""
    places = np.arange(40)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        band = (np.abs(places[:, None] - places) < 7) & (rng.random((40, 40)) < 0.9)
        shuffled = band[rng.permutation(40)][:, rng.permutation(40)]
        assert plan(shuffled).log_cost < _plan_of(band, places).log_cost + np.log(4)


def test_as_many_ways_as_are_allowed_are_taken():
    ratios = np.ones((3, 4))
    ways = 1 * 4 + 4 * 4 + 7 * 4
    found = association.marginals(ratios, Exact(max_ways=ways))
    np.testing.assert_allclose(found, association.marginals(ratios), atol=1e-12)
    with pytest.raises(ValueError, match=f"need {ways} ways"):
        association.marginals(ratios, Exact(max_ways=ways - 1))


@pytest.mark.parametrize("shape", [(3, 4), (4, 3)])
@pytest.mark.parametrize("orders", [20, 150, 300])
def test_weights_over_hundreds_of_orders_of_magnitude_are_those_of_fractions(brute, shape, orders):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        ratios = 10.0 ** (rng.uniform(-1, 1, (shape[0], 1)) * orders + rng.uniform(-2, 2, shape))
        every = brute.assignments(*shape)
        weights = [math.prod(Fraction(ratios[t, c]) for t, c in enumerate(one)) for one in every.tolist()]
        total = sum(weights)
        expected = np.zeros(shape)
        for one, weight in zip(every, weights, strict=True):
            expected[np.arange(shape[0]), one] += float(weight / total)
        log_total = math.log(total.numerator) - math.log(total.denominator)
        for method in (Exact(), KBest(1000)):
            found = association.associate(ratios, method)
            np.testing.assert_allclose(found.marginals, expected, atol=1e-9)
            assert found.log_evidence == pytest.approx(log_total, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("method", [Exact(), KBest(), BeliefPropagation()])
def test_a_method_refuses_a_cluster_without_an_assignment_by_itself(method):
    with pytest.raises(ValueError, match="ratios: expected an assignment of positive weight, got none"):
        method.cluster(np.array([[0.0, 1.0], [0.0, 1.0]]))
