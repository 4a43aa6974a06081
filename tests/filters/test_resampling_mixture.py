"""Resampling from a fitted mixture, with samplers of every kind."""

import numpy as np
import pytest
from helpers import cases, cloud
from numpy.testing import assert_allclose, assert_array_equal

import herdfilter as hf
from herdfilter.angles import moments
from herdfilter.filters import Particles

DETERMINISTIC = {
    "sobol": hf.SobolSampling(),
    "polished": hf.Polished(hf.SobolSampling()),
    "lcd": hf.LCDSampling(iterations=40),
    "mapped sobol": hf.MappedSampling(hf.SobolSampling()),
}
FITS = {"gaussian": hf.GaussianFit(), "kernel density": hf.KernelDensityFit()}


@cases(
    "sampler fit",
    ("sobol", "gaussian"),
    ("polished", "kernel density"),
    ("lcd", "gaussian"),
    ("mapped sobol", "kernel density"),
)
def test_deterministic_samplers_need_no_generator_and_keep_the_moments(sampler, fit):
    """In the median over clouds; of random draws the mean is 0.17 and the worst variance 0.28 off."""
    # of two thirds of the components, mapped points come one by one: their variances are those of random draws
    largest = 0.4 if (sampler, fit) == ("mapped sobol", "kernel density") else 0.2
    scheme = hf.MixtureResampling(FITS[fit], DETERMINISTIC[sampler])
    means = []
    variances = []
    for seed in range(5):
        x, weights = cloud(seed, n=48)
        new = scheme.resample(Particles.weighted(x, weights), None)
        assert_allclose(new.weights, 1 / 48, rtol=1e-12)
        mean, covariance = moments(x, weights)
        inverse = np.linalg.inv(np.linalg.cholesky(covariance))
        means.append(np.linalg.norm(inverse @ (new.x.mean(axis=0) - mean)))
        spread = np.linalg.eigvalsh(inverse @ np.cov(new.x.T) @ inverse.T)
        variances.append(np.abs(spread - 1).max())
    assert_array_equal(new.x, scheme.resample(Particles.weighted(x, weights), None).x)
    assert np.median(means) < 0.1
    assert np.median(variances) < largest


def test_random_samplers_draw_from_the_generator_given():
    x, weights = cloud(1, n=48)
    scheme = hf.MixtureResampling(hf.KernelDensityFit(), hf.SobolSampling(scramble=True))
    before = Particles.weighted(x, weights)
    first, again, other = (
        scheme.resample(before, np.random.default_rng(seed)).x for seed in (1, 1, 2)
    )
    assert_array_equal(first, again)
    assert (first != other).all()


def test_herded_points_keep_their_corrected_weights():
    x, weights = cloud(3, n=12)
    scheme = hf.MixtureResampling(hf.GaussianFit(), hf.SigmaPoints(kappa=8.0))
    few = Particles.weighted(x[:5], weights[:5] / weights[:5].sum())
    new = scheme.resample(few, None)
    assert new.weights.max() == pytest.approx(0.8)  # kappa / (d + kappa)
    assert_allclose(new.moments()[0], few.moments()[0], rtol=1e-9)
    assert_allclose(new.moments()[1], few.moments()[1], rtol=1e-6, atol=1e-9)
