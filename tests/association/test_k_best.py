"""The k best assignments against the order of all of them."""

import math

import numpy as np
import pytest
from helpers import cases
from numpy.testing import assert_allclose

from herdfilter import association


@cases("shape", (0, 2), (1, 3), (3, 0), (2, 4), (3, 3), (4, 2))
def test_assignments_come_in_the_order_of_their_weights(brute, shape):
    for seed in range(5):
        ratios = brute.ratios(seed, *shape)
        weights = brute.weights(ratios)
        possible = np.sort(weights[weights > 0])[::-1]
        for k in (1, 7, len(possible) + 1):
            assignments, log_weights = association.k_best_assignments(ratios, k)
            assert_allclose(np.exp(log_weights), possible[:k], rtol=1e-12)
            products = ratios[np.arange(shape[0]), assignments].prod(axis=1)
            assert_allclose(products, possible[:k], rtol=1e-12)
            assert len(np.unique(assignments, axis=0)) == len(assignments)


def test_the_evidence_of_some_is_a_lower_bound_that_grows(brute):
    ratios = brute.ratios(4, 4, 4)
    bounds = [
        association.associate(ratios, association.KBest(k)).log_evidence for k in (1, 3, 10, 30)
    ]
    assert bounds == sorted(bounds)
    assert bounds[-1] < math.log(brute.total(ratios))
    weights = brute.weights(ratios)
    assert bounds[0] == pytest.approx(math.log(weights.max()))
