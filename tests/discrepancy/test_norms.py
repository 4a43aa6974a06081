"""Expected norms of Gaussian vectors, against the closed forms that special cases have."""

import numpy as np
import pytest
from helpers import EYE, cases
from numpy.testing import assert_allclose
from scipy.special import ellipe, erf, i0e, i1e
from scipy.stats import ortho_group

from herdfilter.discrepancy.energy import expected_norms

STATED = 1e-9
ratios = cases("ratio", 0.0, 1e-6, 1.0, 30.0, 1e8)


def both_ways(mean, covariance):
    means = np.stack([mean, mean, 0.5 * mean])
    shared = expected_norms(means, covariance[None])
    own = expected_norms(means, np.stack([covariance] * 3))
    assert_allclose(own, shared, rtol=2 * STATED)
    return shared[0]


def turned(values, mean, seed=0):
    axes = ortho_group.rvs(len(values), random_state=seed)
    return axes @ mean, (axes * values) @ axes.T


@ratios
def test_one_dimension_is_the_folded_normal(ratio):
    sd = 1.7
    expected = sd * (np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2) + ratio * erf(ratio / np.sqrt(2)))
    for sign in (-1, 1):
        assert both_ways(np.array([sign * ratio * sd]), np.array([[sd**2]])) == pytest.approx(
            expected, rel=1e-14
        )


@ratios
def test_two_dimensions_are_the_rice_distribution(ratio):
    v = ratio**2 / 2
    laguerre = (1 + v) * i0e(v / 2) + v * i1e(v / 2)
    mean = ratio * np.array([0.6, 0.8])
    assert both_ways(mean, EYE) == pytest.approx(np.sqrt(np.pi / 2) * laguerre, rel=STATED)


@ratios
def test_three_dimensions_are_the_maxwell_distribution_off_its_centre(ratio):
    if ratio < 1e-3:
        expected = 2 * np.sqrt(2 / np.pi) * (1 + ratio**2 / 6)
    else:
        expected = np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2)
        expected += (ratio + 1 / ratio) * erf(ratio / np.sqrt(2))
    mean = ratio * np.array([2.0, -1.0, 2.0]) / 3
    assert both_ways(mean, np.eye(3)) == pytest.approx(expected, rel=STATED)


@cases("axis", 0.5, 1e-5, 1e-10)
def test_an_ellipse_about_the_origin_is_an_elliptic_integral(axis):
    mean, covariance = turned(np.array([1.0, axis**2]), np.zeros(2))
    assert both_ways(mean, covariance) == pytest.approx(
        np.sqrt(2 / np.pi) * ellipe(1 - axis**2), rel=STATED
    )


def test_norms_of_very_different_size_share_a_covariance():
    """They fall into groups of nodes: each must be as exact as alone."""
    rng = np.random.default_rng(1)
    means = rng.standard_normal((60, 4)) * 10.0 ** rng.uniform(-8, 8, (60, 1))
    covariance = turned(np.array([1.0, 0.3, 1e-4, 1e-9]), np.zeros(4))[1]
    together = expected_norms(means, covariance[None])
    alone = [expected_norms(mean[None], covariance[None])[0] for mean in means]
    assert_allclose(together, alone, rtol=STATED)
