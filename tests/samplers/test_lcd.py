"""Optimal Gaussian points by localized cumulative distributions."""

from functools import cache

import numpy as np
from helpers import cases, normal, refuses
from numpy.testing import assert_allclose, assert_array_equal

from herdfilter.bandwidths import Whitened
from herdfilter.discrepancy import energy_distance, herding_error
from herdfilter.kernels import LocalizedCumulative
from herdfilter.samplers import KernelHerding, LCDSampling, MappedSampling


def standard(d):
    return normal(np.zeros(d))


sizes = cases("d n", (1, 9), (3, 30))


@cache
def optimal(d, n):
    return LCDSampling().sample(standard(d), n)


@sizes
def test_points_are_symmetric_with_the_moments_of_the_gaussian(d, n):
    points = optimal(d, n)
    # of each mirror image to a point
    distance = np.abs(points.x[:, None] + points.x).sum(-1).min(axis=1)
    assert distance.max() < 1e-8
    assert_allclose(points.mean, 0, atol=1e-12)
    assert_allclose(points.covariance, np.eye(d), atol=1e-9)
    assert_array_equal(points.weights, np.full(n, 1 / n))


@sizes
def test_points_are_closer_to_the_gaussian_than_herded_ones(d, n):
    target = standard(d)
    herded = MappedSampling(KernelHerding(Whitened())).sample(target, n)
    for distance in (
        lambda p: herding_error(p, target, 1.0, LocalizedCumulative()),
        lambda p: energy_distance(p, target),
    ):
        assert distance(optimal(d, n)) < 0.85 * distance(herded)


def test_twice_as_many_points_as_dimensions_lie_on_rectangular_axes():
    """At a distance that gives them the covariance: the points of the cubature rule."""
    x = optimal(3, 6).x
    assert_allclose(np.linalg.norm(x, axis=1), np.sqrt(3), rtol=1e-5)
    assert_allclose(np.sort(np.abs(x @ x.T), axis=1)[:, :4], 0, atol=1e-4)


test_bad_arguments_are_named = refuses(
    lambda given: LCDSampling(**given),
    ({"largest": 0.0}, "largest: expected"),
    ({"iterations": 0}, "iterations: expected"),
)
