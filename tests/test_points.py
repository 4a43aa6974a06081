"""Weighted points."""

import numpy as np
from helpers import refuses
from numpy.testing import assert_allclose, assert_array_equal

from herdfilter.points import Points


def test_moments_are_those_of_repeated_points():
    """Integer weights are multiplicities."""
    x = np.random.default_rng(0).standard_normal((4, 3))
    counts = [1, 4, 2, 3]
    points = Points(x, counts)
    repeated = np.repeat(x, counts, axis=0)
    assert_allclose(points.mean, repeated.mean(axis=0), rtol=1e-13)
    assert_allclose(points.covariance, np.cov(repeated.T, bias=True), rtol=1e-13)


def test_weights_are_equal_unless_given_and_always_sum_to_one():
    assert_array_equal(Points(np.zeros((4, 1))).weights, np.full(4, 0.25))
    for unit in (1.0, 2.5e307, 5e-324):
        assert_array_equal(
            Points(np.zeros((3, 1)), [2 * unit, 0, 6 * unit]).weights, [0.25, 0, 0.75]
        )


def test_the_callers_arrays_stay_the_callers():
    x = np.zeros((2, 1))
    points = Points(x)
    x[:] = 1.0
    assert_array_equal(points.x, [[0.0], [0.0]])


test_bad_points_are_named = refuses(
    lambda arguments: Points(*arguments),
    (([0.0, 1.0],), r"x: expected shape \(\*, \*\), got \(2,\)"),
    ((np.empty((0, 2)),), r"x: expected at least one point, got none"),
    (([[np.inf, 0.0]],), r"x: expected finite numbers, got 1 non-finite"),
    (([[0.0], [1.0]], [1.0]), r"weights: expected shape \(2,\), got \(1,\)"),
    (([[0.0], [1.0]], [1.0, -1.0]), r"weights: expected non-negative weights, got -1"),
    (([[0.0], [1.0]], [np.nan, 1.0]), r"weights: expected finite numbers, got 1 non-finite"),
    (([[0.0], [1.0]], [0.0, 0.0]), r"weights: expected a positive finite sum, got 0"),
    ((None,), r"x: expected"),
)
