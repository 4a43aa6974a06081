"""Angle-valued dimensions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from herdfilter.angles import moments, unwrap_angles, wrap_angles

few = settings(max_examples=60, deadline=None, derandomize=True)
TURN = 2 * np.pi


@few
@given(st.floats(-1e4, 1e4, allow_subnormal=False))
def test_wrapping_keeps_the_direction(angle):
    wrapped = wrap_angles(np.array([[angle]]), [0])[0, 0]
    assert -np.pi <= wrapped <= np.pi
    assert np.exp(1j * wrapped) == pytest.approx(np.exp(1j * angle), abs=1e-11)


def test_wrapping_leaves_the_other_dimensions_and_the_argument_alone():
    x = np.array([[10.0, 10.0, -10.0]])
    wrapped = wrap_angles(x, (1,))
    assert_allclose(wrapped, [[10.0, 10.0 - 2 * TURN, -10.0]])
    assert_array_equal(x, [[10.0, 10.0, -10.0]])
    assert_array_equal(wrap_angles(np.array([np.pi, -np.pi]), (0, 1)), [-np.pi, -np.pi])


def test_unwrapping_brings_a_cluster_across_the_seam_together():
    x = np.array([[3.1], [-3.1], [3.0]])
    unwrapped = unwrap_angles(x, np.full(3, 1 / 3), [0])
    assert np.ptp(unwrapped) == pytest.approx(TURN - 6.1, rel=1e-12)
    assert_allclose(wrap_angles(unwrapped, [0]), x, rtol=1e-12)
    assert_array_equal(x, [[3.1], [-3.1], [3.0]])


def test_moments_without_angles_are_the_ordinary_ones():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((30, 3)) * 5
    weights = rng.dirichlet(np.ones(30))
    mean, covariance = moments(x, weights)
    assert_allclose(mean, np.average(x, axis=0, weights=weights), rtol=1e-12)
    assert_allclose(covariance, np.cov(x.T, aweights=weights, bias=True), rtol=1e-12)


def test_moments_at_the_seam_by_hand():
    x = np.array([[np.pi - 0.1, 1.0], [-np.pi + 0.3, 3.0]])
    mean, covariance = moments(x, np.array([0.5, 0.5]), [0])
    assert_allclose(mean, [-np.pi + 0.1, 2.0], rtol=1e-12)
    assert_allclose(covariance, [[0.04, 0.2], [0.2, 1.0]], rtol=1e-12)


@few
@given(st.floats(-20, 20, allow_subnormal=False), st.integers(0, 2**32 - 1))
def test_moments_turn_with_the_points(turn, seed):
    """Where zero lies on the circle does not matter."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((20, 2)) * [0.7, 3.0]
    weights = rng.dirichlet(np.ones(20))
    mean, covariance = moments(x, weights, (0,))
    shift = np.array([turn, 0.0])
    turned_mean, turned_covariance = moments(wrap_angles(x + shift, (0,)), weights, (0,))
    expected = mean + shift
    assert_allclose(np.exp(1j * turned_mean[0]), np.exp(1j * expected[0]), atol=1e-12)
    assert turned_mean[1] == pytest.approx(expected[1], abs=1e-12)
    assert_allclose(turned_covariance, covariance, atol=1e-11)
