"""Systematic resampling with noise on the copies."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from herdfilter.filters import Particles, RegularisedResampling


def test_a_particle_copied_once_stays():
    x = np.arange(10.0)[:, None]
    weights = np.array([0.1] * 8 + [0.2, 0.0])
    new = (
        RegularisedResampling().resample(Particles.weighted(x, weights), np.random.default_rng(0)).x
    )
    assert_array_equal(new[:8], x[:8])
    assert (new[8:] != 8.0).all()
    assert new[8] != new[9]


def test_copies_have_the_kernels_covariance():
    """All weight on copies of a few particles: their spread about them is h^2 C, by Scott's rule and the unbiased C."""
    rng = np.random.default_rng(1)
    n = 40_000
    d = 2
    x = np.vstack([[[0.0, 0.0], [6.0, 2.0], [3.0, 5.0]], rng.standard_normal((n - 3, d))])
    weights = np.append([0.5, 0.3, 0.2], np.zeros(n - 3))
    new = RegularisedResampling(scale=0.05).resample(Particles.weighted(x, weights), rng).x
    h = 0.05 * n ** (-1 / 6)
    centred = x[:3] - weights[:3] @ x[:3]
    expected = h**2 * (centred.T * weights[:3]) @ centred / (1 - 0.38)
    nearest = ((new[:, None] - x[:3]) ** 2).sum(axis=2).argmin(axis=1)
    assert_allclose(np.cov((new - x[nearest]).T), expected, rtol=0.05, atol=0.02 * expected.max())
