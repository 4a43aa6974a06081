"""What holds for every method of association, and what is refused."""

import operator

import numpy as np
import pytest
from helpers import cases, refusal, refuses
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.csgraph import connected_components

from herdfilter import association
from herdfilter.association import BeliefPropagation, Exact, HerdedGibbs, KBest, RandomGibbs

METHODS = ["exact", "auto", "belief-propagation", "k-best", "random-gibbs", "herded-gibbs"]


@cases("method", *METHODS)
class TestEveryMethod:
    def test_rows_are_probabilities_and_nothing_is_used_twice(self, method):
        ratios = default_rng(0).exponential(size=(5, 5))
        ratios[:, 2] *= 50  # all want it
        found = association.marginals(ratios, method, rng=0)
        assert (found >= 0).all()
        assert_allclose(found.sum(axis=1), 1)
        assert (found[:, 1:].sum(axis=0) < 1 + 1e-6).all() or method == "random-gibbs"
        assert found[:, 1:].sum(axis=0)[1] > 0.8

    def test_tracks_that_do_not_compete_are_exact(self, method):
        ratios = np.array([[1, 2, 0, 0, 0], [3, 0, 1, 1, 0], [2, 0, 0, 0, 0.0]])
        exact = [[1 / 3, 2 / 3, 0, 0, 0], [0.6, 0, 0.2, 0.2, 0], [1, 0, 0, 0, 0]]
        found = association.associate(ratios, method, rng=0)
        assert_allclose(found.marginals, exact, rtol=1e-14)
        assert found.log_evidence == pytest.approx(np.log(3 * 5 * 2))

    def test_rows_may_have_any_scale(self, method):
        ratios = default_rng(2).exponential(size=(3, 4))
        scale = np.array([[1e-300], [1.0], [1e300]])
        found = association.marginals(scale * ratios, method, rng=0)
        assert_allclose(found, association.marginals(ratios, method, rng=0), atol=1e-8)

    def test_nothing_to_associate(self, method):
        assert association.marginals(np.empty((0, 4)), method).shape == (0, 4)
        assert_array_equal(association.marginals([[0.3], [5.0]], method), [[1.0], [1.0]])
        # a measurement that is nobody's
        found = association.marginals([[1, 0, 1], [1, 0, 1.0]], method, rng=0)
        assert_array_equal(found[:, 1], 0)


test_bad_ratios_are_named = refuses(
    association.marginals,
    ([1.0, 2.0], r"ratios: expected shape \(\*, \*\), got \(2,\)"),
    (np.empty((2, 0)), r"ratios: expected a first column .* got \(2, 0\)"),
    ([[1, np.inf]], "ratios: expected finite numbers, got 1 non-finite"),
    (
        [[0.1, 0.2, 0.3], [0.1, -2.0, 0.5], [-3.0, 1, -4]],
        "ratios: expected no negative entry, got -2 in row 1, column 1",
    ),
    ([[1, 2], [0, 0]], "ratios: expected rows with a positive finite sum, got 0 in row 1"),
    ([[1e308, 1e308]], "ratios: expected rows with a positive finite sum, got inf in row 0"),
)


@cases("method", *METHODS)
@cases(
    "ratios",
    [[0, 1.0], [0, 2.0]],
    [[0, 1.0, 1.0], [0, 2.0, 1.0], [0, 1.0, 1.0]],
    [[0, 1.0, 1.0, 0], [0, 1.0, 1.0, 0], [0, 1.0, 1.0, 0], [1.0, 0, 1.0, 1.0], [0, 0, 0, 1.0]],
    ids=["a column", "a loop", "beside others"],
)
def test_more_tracks_in_need_than_measurements_are_refused_in_the_same_words(method, ratios):
    with refusal(r"^ratios: expected an assignment of positive weight, got none: more tracks"):
        association.marginals(ratios, method)


def test_tracks_in_need_that_find_a_measurement_each_are_no_hindrance():
    ratios = [[0, 1.0, 1.0], [0, 0, 2.0], [0.5, 1.0, 0]]
    exact = association.marginals(ratios)
    assert_allclose(exact, [[0, 1, 0], [0, 0, 1], [1, 0, 0]], atol=1e-12)
    assert_allclose(association.marginals(ratios, "belief-propagation"), exact, atol=1e-6)


class Recording(Exact):
    """Exact, and a list of the clusters that it solved."""

    clusters: list

    def cluster(self, ratios, rng=None):
        self.clusters.append(ratios)
        return super().cluster(ratios, rng)


def test_a_method_gets_the_tracks_that_compete_even_indirectly_and_their_shared_measurements():
    """First columns tell tracks apart; components by scipy."""
    for seed in range(50):
        rng = default_rng(seed)
        gated = rng.random((12, 15)) < rng.choice([0.03, 0.08, 0.15, 0.4])
        ratios = np.column_stack([100.0 + np.arange(12), 1e-3 * gated])
        method = Recording()
        object.__setattr__(method, "clusters", [])
        association.marginals(ratios, method)
        n, labels = connected_components(gated.astype(int) @ gated.T)
        expected = [
            np.flatnonzero(labels == k).tolist() for k in range(n) if np.sum(labels == k) > 1
        ]
        assert [
            np.floor(found[:, 0] - 100).astype(int).tolist() for found in method.clusters
        ] == sorted(expected)
        for tracks, found in zip(sorted(expected), method.clusters, strict=True):
            own = gated[tracks]
            assert_array_equal(found[:, 1:] > 0, own[:, own.sum(axis=0) > 1])


test_wrong_options_are_named = refuses(
    operator.call,
    (
        lambda: association.marginals([[1.0]], "exakt"),
        "method: unknown 'exakt'; did you mean 'exact'",
    ),
    (
        lambda: association.marginals([[1.0]], Exact),
        "method: expected an association method such as Exact.., got",
    ),
    (lambda: Exact(0), "max_ways: expected an integer of at least 1, got 0"),
    (
        lambda: Exact(otherwise="exact"),
        "otherwise: expected an association method such as Exact.., got 'exact'",
    ),
    (lambda: BeliefPropagation(tolerance=0), "tolerance: expected a positive"),
    (lambda: KBest(0), "k: expected an integer"),
    (lambda: RandomGibbs(estimate="count"), "estimate: unknown 'count'; did you mean 'counts'"),
    (lambda: HerdedGibbs(neglect=-1), "neglect: expected a positive"),
)
