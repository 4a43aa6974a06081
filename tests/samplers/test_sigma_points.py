"""Sigma points: exact moments, and no other number of points than theirs."""

from itertools import product

import numpy as np
import pytest
from helpers import fixture_of

from herdfilter.mixture import GaussianMixture
from herdfilter.samplers import SigmaPoints

KINDS = {
    "unscented": SigmaPoints(),
    "unscented, negative weight": SigmaPoints(kappa=-0.5),
    "cubature": SigmaPoints("cubature"),
}


sigma = fixture_of(KINDS)


def points_of(sampler, mixture):
    return sampler.sample(mixture, sampler.size(mixture))


def test_mean_and_covariance_are_exact(sigma, random_mixture):
    for d, components in product((1, 10), (1, 5)):
        case, mixture = f"{components} in {d} dimensions", random_mixture(50, d, components)
        points = points_of(sigma, mixture)
        np.testing.assert_allclose(points.mean, mixture.mean, atol=1e-12, err_msg=case)
        np.testing.assert_allclose(points.covariance, mixture.covariance, atol=1e-11, err_msg=case)


@pytest.mark.parametrize("d", [1, 3])
def test_kappa_of_three_less_d_makes_fourth_moments_along_the_axes_exact(d):
    """E[z^4] = 3 (Julier and Uhlmann 1997); in one dimension these are the nodes of Gauss and Hermite."""
    normal = GaussianMixture([1.0], [np.zeros(d)], np.eye(d))
    points = points_of(SigmaPoints(kappa=3.0 - d), normal)
    np.testing.assert_allclose(points.weights @ points.x**4, 3.0, rtol=1e-12)
    if d == 1:
        nodes, weights = np.polynomial.hermite_e.hermegauss(3)
        order = np.argsort(points.x[:, 0])
        np.testing.assert_allclose(points.x[order, 0], nodes, atol=1e-12)
        np.testing.assert_allclose(points.weights[order], weights / weights.sum(), rtol=1e-12)


def test_another_number_of_points_is_refused_and_the_right_one_named(random_mixture):
    with pytest.raises(
        ValueError, match="n: expected 5, the number of sigma points for this mixture, got 4"
    ):
        SigmaPoints().sample(random_mixture(53, 2, 3), 4)


def test_a_kappa_too_low_for_the_dimension_is_refused(random_mixture):
    sampler = SigmaPoints(kappa=-2.0)
    assert len(sampler.sample(random_mixture(54, 3), 7)) == 7
    with pytest.raises(
        ValueError, match="kappa: expected a number above -2 in 2 dimensions, got -2"
    ):
        sampler.sample(random_mixture(54, 2), 5)
