"""Systematic resampling with noise on the copies."""

import numpy as np
import pytest

import herdfilter as hf
from herdfilter.filters import Particles, RegularisedResampling


def test_a_particle_copied_once_stays():
    x = np.arange(10.0)[:, None]
    weights = np.array([0.1] * 8 + [0.2, 0.0])
    new = RegularisedResampling().resample(Particles.weighted(x, weights), np.random.default_rng(0)).x
    np.testing.assert_array_equal(new[:8], x[:8])
    assert (new[8:] != 8.0).all()
    assert new[8] != new[9]


def test_copies_have_the_kernels_covariance():
    """All weight on copies of a few particles: their spread about them is h^2 C, by Scott's rule and the unbiased C."""
    rng = np.random.default_rng(1)
    n, d = 40_000, 2
    x = np.vstack([[[0.0, 0.0], [6.0, 2.0], [3.0, 5.0]], rng.standard_normal((n - 3, d))])
    weights = np.append([0.5, 0.3, 0.2], np.zeros(n - 3))
    new = RegularisedResampling(scale=0.05).resample(Particles.weighted(x, weights), rng).x
    h = 0.05 * n ** (-1 / 6)
    centred = x[:3] - weights[:3] @ x[:3]
    expected = h**2 * (centred.T * weights[:3]) @ centred / (1 - 0.38)
    nearest = ((new[:, None] - x[:3]) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_allclose(np.cov((new - x[nearest]).T), expected, rtol=0.05, atol=0.02 * expected.max())


def test_one_particle_with_all_weight_is_spread_as_widely_as_all_were():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((2000, 1)) * 3.0
    weights = np.zeros(2000)
    weights[7] = 1.0
    new = RegularisedResampling().resample(Particles.weighted(x, weights), rng).x
    assert np.std(new - x[7]) == pytest.approx(3.0 * 2000 ** (-1 / 5), rel=0.1)


def test_headings_on_both_sides_of_the_seam_are_close():
    x = np.array([[3.1], [-3.1]] * 500)
    before = Particles.weighted(x, np.random.default_rng(3).dirichlet(np.full(1000, 0.3)))
    new = RegularisedResampling().resample(before, np.random.default_rng(4), circular=(0,)).x
    assert np.abs(new).max() <= np.pi
    assert np.abs(new).min() > 3.0


def test_a_system_without_noise_is_followed():
    model = hf.models.Lorenz63(noise_rate=1e-10)
    truth, observations = hf.simulate(model, 200, 0, dt=0.25)
    errors = {}
    for resampling in (RegularisedResampling(2.4), hf.SystematicResampling()):
        pf = hf.ParticleFilter(model, n_particles=100, resampling=resampling, resample_below=0.3, rng=0)
        means = pf.run(observations, dt=0.25).means
        errors[type(resampling)] = np.sqrt(((means - truth) ** 2).mean(axis=1))[50:].mean()
    assert errors[RegularisedResampling] < 0.6
    assert errors[hf.SystematicResampling] > 2
