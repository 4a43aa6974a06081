"""Sigma points: exact moments, and no other number of points than theirs."""

from itertools import product

import numpy as np
from helpers import cases, fixture_of, normal, refuses
from numpy.testing import assert_allclose

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
        case = f"{components} in {d} dimensions"
        mixture = random_mixture(50, d, components)
        points = points_of(sigma, mixture)
        assert_allclose(points.mean, mixture.mean, atol=1e-12, err_msg=case)
        assert_allclose(points.covariance, mixture.covariance, atol=1e-11, err_msg=case)


@cases("d", 1, 3)
def test_kappa_of_three_less_d_makes_fourth_moments_along_the_axes_exact(d):
    """E[z^4] = 3 (Julier and Uhlmann 1997); in one dimension these are the nodes of Gauss and Hermite."""
    gaussian = normal(np.zeros(d))
    points = points_of(SigmaPoints(kappa=3.0 - d), gaussian)
    assert_allclose(points.weights @ points.x**4, 3.0, rtol=1e-12)
    if d == 1:
        nodes, weights = np.polynomial.hermite_e.hermegauss(3)
        order = np.argsort(points.x[:, 0])
        assert_allclose(points.x[order, 0], nodes, atol=1e-12)
        assert_allclose(points.weights[order], weights / weights.sum(), rtol=1e-12)


test_what_does_not_fit_the_dimension_is_named = refuses(
    lambda sampler, n: sampler.sample(normal([0.0, 0.0]), n),
    (SigmaPoints(), 4, "n: expected 5, the number of sigma points for this mixture, got 4"),
    (SigmaPoints(kappa=-2.0), 5, "kappa: expected a number above -2 in 2 dimensions, got -2"),
)
