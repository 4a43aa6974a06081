"""Exact association against enumeration of all assignments."""

import math
import re
from fractions import Fraction

import numpy as np
import pytest
from helpers import cases, in_python, refusal
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from herdfilter import association
from herdfilter.association import Exact, KBest, belief_propagation, exact
from herdfilter.association.exact import elimination_order


def test_a_long_chain_of_tracks_is_a_matter_of_two_open_measurements():
    """Each track gates its own measurement and the next: what it counts are the matchings of a path (Fibonacci)."""
    n = 60
    ratios = np.zeros((n, n + 2))
    ratios[:, 0] = 1
    ratios[np.arange(n), 1 + np.arange(n)] = ratios[np.arange(n), 2 + np.arange(n)] = 1
    matchings = [1, 1]
    while len(matchings) < 2 * n + 2:
        matchings.append(matchings[-1] + matchings[-2])
    found = association.associate(ratios, association.Exact(max_ways=1000))
    assert found.log_evidence == pytest.approx(math.log(matchings[-1]), rel=1e-14)


def test_ratios_of_any_magnitude():
    """Two tracks want one measurement, and the weights of neither alternative can be squared."""
    assert_allclose(association.marginals([[1e-200, 1e200]] * 2), 0.5, rtol=1e-12)
    assert_allclose(association.marginals([[3e-320, 3e-320, 0], [1e300, 0, 1e300]])[:, 0], 0.5)


def test_a_cluster_that_is_too_large_is_refused_with_its_cost():
    """At most as if each measurement has its turn: the first opens 12 tracks, which are closed after the last."""
    ratios = np.ones((12, 14))
    most = 13 + 12 * 2**12 * 13 + (2**13 - 2)
    ways = int(elimination_order(linked_vertices(ratios[:, 1:] > 0), np.inf)[1])
    assert most / 2 < ways <= most
    allowed = Exact(max_ways=ways).marginals(ratios)
    assert_allclose(allowed, association.marginals(ratios), atol=1e-12)
    cost = re.escape(
        f"max_ways = {ways - 1:,} ways, got 12 tracks with 13 shared measurements, which need {ways:.3g} ways; take "
    )
    with refusal("^ratios: expected clusters with up to " + cost):
        Exact(max_ways=ways - 1).marginals(ratios)


def test_clusters_that_are_too_large_may_have_another_method():
    ratios = np.zeros((5, 6))
    ratios[:, 0] = 1
    ratios[:2, 1:3] = ratios[2:, 3:] = 1
    both = association.Exact(max_ways=20, otherwise=association.KBest(1)).marginals(ratios)
    assert_allclose(both[:2], association.marginals(ratios)[:2])
    assert set(both[2:].ravel()) == {0, 1}


def graph(seed, rows, columns, band):
    rng = default_rng(seed)
    place = np.abs(np.arange(rows)[:, None] * columns / rows - np.arange(columns)) < band
    gated = place & (rng.random((rows, columns)) < 0.8)
    gated[np.arange(rows), (np.arange(rows) * columns) // rows] = True
    return gated[rng.permutation(rows)][:, rng.permutation(columns)]


def linked_vertices(gated):
    rows, columns = gated.shape
    return np.block(
        [[np.zeros((rows, rows), bool), gated], [gated.T, np.zeros((columns, columns), bool)]]
    )


def ways_of(linked, order):
    """Sets of open vertices before each step, and from each the alternatives of the next vertex; written with sets."""
    ways = 0
    opened = set()
    eliminated = set()
    for v in order:
        left = set(np.flatnonzero(linked[v]).tolist()) - eliminated
        ways += (
            2 ** len(opened) * (1 + len(left))
            if v not in opened
            else 2 ** (len(opened) - 1) * (2 + len(left))
        )
        eliminated.add(v)
        opened = (opened | left) - eliminated
    return ways


@cases("rows columns band", (5, 4, 3), (12, 12, 3), (25, 20, 4), (8, 80, 30))
def test_an_order_has_every_vertex_once_and_its_ways_are_counted(rows, columns, band):
    for seed in range(3):
        linked = linked_vertices(graph(seed, rows, columns, band))
        order, ways = elimination_order(linked, np.inf)
        assert sorted(order) == list(range(rows + columns))
        assert ways == ways_of(linked, order.tolist())
        for most in (0.1 * ways, ways - 1, ways, 10 * ways):
            order, found = elimination_order(linked, most)
            assert found == np.inf or found == ways_of(linked, order.tolist()) <= most
        assert elimination_order(linked, 5)[1] == np.inf


def test_where_tracks_are_few_here_and_measurements_there_sets_are_small_in_both():
    """Three tracks with 100 measurements, three measurements with 100 tracks, and one link; one track with all."""
    both = np.zeros((103, 103), dtype=bool)
    both[:3, :100] = both[3:, 100:] = both[0, 100] = True
    star = np.vstack([np.eye(100, dtype=bool), np.ones(100, dtype=bool)])
    assert elimination_order(linked_vertices(both), np.inf)[1] < 2 * 200 * 2**3 * 4
    assert elimination_order(linked_vertices(star), np.inf)[1] < 200 * 2 * 3
    found = association.associate(np.column_stack([np.ones(103), both]))
    assert found.log_evidence == pytest.approx(
        math.log(1 + 300 + 3 * 100 * 99 + 100 * 99 * 98) * 2, rel=1e-2
    )


@cases("shape", (1, 0), (1, 2), (4, 1), (4, 4), (3, 6), (5, 3))
def test_zeros_anywhere_and_rows_of_any_scale_equal_brute_force(brute, shape):
    """Measurements that nobody has, tracks that are never missed; those without an assignment are refused."""
    refused = 0
    for seed in range(100):
        rng = default_rng(seed)
        ratios = brute.ratios(seed, shape[0], shape[1])
        ratios[rng.random(shape[0]) < 0.4, 0] = 0
        ratios[:, 1:][:, rng.random(shape[1]) < 0.2] = 0
        if (ratios.sum(axis=1) == 0).any() or brute.weights(ratios).sum() == 0:
            refused += 1
            with refusal("ratios: expected"):
                association.associate(ratios)
            continue
        scale = np.exp(rng.uniform(-300, 300, (shape[0], 1)))
        found = association.associate(scale * ratios)
        assert_allclose(found.marginals, brute.marginals(ratios), rtol=0, atol=1e-12)
        assert found.log_evidence == pytest.approx(
            math.log(brute.total(ratios)) + np.log(scale).sum(), abs=1e-11
        )
    assert 0 < refused < 70


def test_all_clusters_at_once_are_what_each_is_alone():
    """And what a cluster of all tracks gives that is not split."""
    for seed in range(20):
        rng = default_rng(seed)
        gated = graph(seed, 15, 25, 2) & (rng.random((15, 25)) < 0.6)
        ratios = np.column_stack([rng.exponential(size=15), rng.exponential(size=(15, 25)) * gated])
        split = association.associate(ratios)
        whole, log_evidence = Exact().cluster(ratios)
        assert_allclose(split.marginals, whole, rtol=0, atol=1e-13)
        assert split.log_evidence == pytest.approx(log_evidence, abs=1e-12)
        rows = rng.permutation(15)
        columns = np.append(0, 1 + rng.permutation(25))
        turned = association.marginals(ratios[np.ix_(rows, columns)])
        assert_allclose(turned, split.marginals[np.ix_(rows, columns)], rtol=0, atol=1e-13)


@cases(
    "gated method",
    (np.ones((12, 12)), "exact"),
    (np.ones((6, 100)), "exact"),
    (graph(0, 60, 60, 4), "exact"),
    (np.ones((30, 30)), "belief-propagation"),
    (graph(0, 60, 60, 12), "belief-propagation"),
)
def test_auto_is_exact_where_sets_are_few_and_else_belief_propagation(gated, method):
    rng = default_rng(0)
    ratios = np.column_stack(
        [rng.exponential(size=len(gated)), rng.exponential(size=gated.shape) * gated]
    )
    assert_array_equal(association.marginals(ratios, "auto"), association.marginals(ratios, method))


@cases("shape", (3, 4), (4, 3))
@cases("orders", 150, 300)
def test_weights_over_hundreds_of_orders_of_magnitude_are_those_of_fractions(brute, shape, orders):
    for seed in range(8):
        rng = default_rng(seed)
        ratios = 10.0 ** (rng.uniform(-1, 1, (shape[0], 1)) * orders + rng.uniform(-2, 2, shape))
        every = brute.assignments(*shape)
        weights = [
            math.prod(Fraction(ratios[t, c]) for t, c in enumerate(one)) for one in every.tolist()
        ]
        total = sum(weights)
        expected = np.zeros(shape)
        for one, weight in zip(every, weights, strict=True):
            expected[np.arange(shape[0]), one] += float(weight / total)
        log_total = math.log(total.numerator) - math.log(total.denominator)
        for method in (Exact(), KBest(1000)):
            found = association.associate(ratios, method)
            assert_allclose(found.marginals, expected, atol=1e-9)
            assert found.log_evidence == pytest.approx(log_total, rel=1e-9, abs=1e-9)


@cases("method", "exact", "belief-propagation")
@cases("shape", (1, 2), (3, 2), (3, 4))
def test_compiled_code_stays_inside_its_arrays(method, shape, brute, monkeypatch):
    ratios = brute.ratios(3, *shape)
    compiled = association.associate(ratios, method)
    in_python(monkeypatch, exact, belief_propagation)
    found = association.associate(ratios, method)
    assert_allclose(found.marginals, compiled.marginals, rtol=1e-12)
    assert found.log_evidence == pytest.approx(compiled.log_evidence, abs=1e-12)
