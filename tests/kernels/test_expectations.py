"""Expectations of the Gaussian kernel under mixtures, in closed form."""

import numpy as np
import pytest

from herdfilter.kernels import expected_kernel, expected_kernel_pair, log_normaliser
from herdfilter.mixture import GaussianMixture


def test_expectations_have_the_square_root_that_the_published_ones_lack():
    """At its own mean a Gaussian has E[N(X; m, K)] = 1 / sqrt((2 pi)^d |S + K|); published: without the root."""
    S = np.array([[2.0, 0.5], [0.5, 1.0]])
    K = np.array([[0.7, 0.3], [0.3, 0.5]])
    d = 2
    gaussian = GaussianMixture([1.0], [[3.0, -1.0]], S)
    constant = np.exp(log_normaliser(K))
    alone = constant * expected_kernel(gaussian, gaussian.means, K)[0]
    pair = constant * expected_kernel_pair(gaussian, K)
    single_det, pair_det = ((2 * np.pi) ** d * np.linalg.det(C) for C in (S + K, 2 * S + K))
    assert alone == pytest.approx(1 / np.sqrt(single_det), rel=1e-12)
    assert pair == pytest.approx(1 / np.sqrt(pair_det), rel=1e-12)
    assert abs(alone * single_det - 1) > 10  # the published forms would make these 1
    assert abs(pair * pair_det - 1) > 10


def test_the_kernel_peaks_at_one_whatever_its_width():
    """A point mass against the kernel at its own place, in ten dimensions where the normalised kernel is near 1e6."""
    for sigma in (1e-8, 0.1, 1e8):
        point = GaussianMixture([1.0], np.ones((1, 10)), np.zeros((10, 10)))
        np.testing.assert_allclose(
            expected_kernel(point, np.ones((1, 10)), sigma**2 * np.eye(10)), 1, rtol=1e-9
        )
