"""Resampling from a fitted mixture, with samplers of every kind."""

from dataclasses import dataclass

import numpy as np
import pytest

import herdfilter as hf
from herdfilter.angles import moments
from herdfilter.filters import Particles


def particles(seed, n=48, d=2):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) * [3.0, 0.1][:d] + 1.0, rng.dirichlet(np.full(n, 0.3))


@dataclass(frozen=True)
class ImportanceSampling:
    """Draws from a wider Gaussian, weighted by what they should have been drawn from."""

    def sample(self, mixture, n, rng=None):
        wide = hf.GaussianMixture([1.0], mixture.mean[None], 2.0 * mixture.covariance)
        x = wide.sample(n, rng)
        x = getattr(x, "x", x)
        return hf.Points(x, np.exp(mixture.log_density(x) - wide.log_density(x)))


DETERMINISTIC = {
    "sobol": hf.SobolSampling(),
    "polished": hf.Polished(hf.SobolSampling()),
    "lcd": hf.LCDSampling(iterations=40),
    "mapped sobol": hf.MappedSampling(hf.SobolSampling()),
}
RANDOM = {
    "random": hf.RandomSampling(),
    "scrambled sobol": hf.SobolSampling(scramble=True),
    "weighted": ImportanceSampling(),
}
FITS = {"gaussian": hf.GaussianFit(), "kernel density": hf.KernelDensityFit()}
every_fit = pytest.mark.parametrize("fit", FITS.values(), ids=FITS)


@pytest.mark.parametrize(
    ("sampler", "fit"),
    [(sampler, fit) for sampler in DETERMINISTIC for fit in FITS if (sampler, fit) != ("lcd", "kernel density")],
)  # LCD points are mapped: where components get less than a point each, they are no better than random
def test_deterministic_samplers_need_no_generator_and_keep_the_moments(sampler, fit):
    """In the median over clouds; of random draws the mean is 0.17 and the worst variance 0.28 off."""
    # of two thirds of the components, mapped points come one by one: their variances are those of random draws
    largest = 0.4 if (sampler, fit) == ("mapped sobol", "kernel density") else 0.2
    scheme = hf.MixtureResampling(FITS[fit], DETERMINISTIC[sampler])
    means, variances = [], []
    for seed in range(9):
        x, weights = particles(seed)
        new = scheme.resample(Particles.weighted(x, weights), None)
        np.testing.assert_allclose(new.weights, 1 / 48, rtol=1e-12)
        mean, covariance = moments(x, weights)
        inverse = np.linalg.inv(np.linalg.cholesky(covariance))
        means.append(np.linalg.norm(inverse @ (new.x.mean(axis=0) - mean)))
        spread = np.linalg.eigvalsh(inverse @ np.cov(new.x.T) @ inverse.T)
        variances.append(np.abs(spread - 1).max())
    np.testing.assert_array_equal(new.x, scheme.resample(Particles.weighted(x, weights), None).x)
    assert np.median(means) < 0.1
    assert np.median(variances) < largest


@every_fit
@pytest.mark.parametrize("sampler", RANDOM.values(), ids=RANDOM)
def test_random_samplers_draw_from_the_generator_given(sampler, fit):
    x, weights = particles(1)
    scheme = hf.MixtureResampling(fit, sampler)
    before = Particles.weighted(x, weights)
    first, again, other = (scheme.resample(before, np.random.default_rng(seed)).x for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()


def test_unequal_weights_of_the_sampler_go_into_the_log_weights():
    """Self-normalised importance weights: the estimate of the mean has no bias at this accuracy."""
    x, weights = particles(2, n=400)
    mean, covariance = moments(x, weights)
    scheme = hf.MixtureResampling(hf.GaussianFit(), ImportanceSampling())
    estimates = []
    for seed in range(200):
        weighted = scheme.resample(Particles.weighted(x, weights), np.random.default_rng(seed))
        new, log_weights = weighted.x, weighted.log_weights
        w = np.exp(log_weights)
        assert w.sum() == pytest.approx(1, abs=1e-12)
        assert w.max() > 1.5 * w.min()
        centred = new - mean
        estimates.append((centred.T * w) @ centred)
    error = np.std(estimates, axis=0) / np.sqrt(200)
    assert (np.abs(np.mean(estimates, axis=0) - covariance) < 4.5 * error + 0.02 * np.abs(covariance)).all()


def test_herded_points_keep_their_corrected_weights():
    x, weights = particles(3, n=12)
    scheme = hf.MixtureResampling(hf.GaussianFit(), hf.SigmaPoints(kappa=8.0, per_component=True))
    weighted = scheme.resample(Particles.weighted(x[:5], weights[:5] / weights[:5].sum()), None)
    new, log_weights = weighted.x, weighted.log_weights
    assert np.exp(log_weights).max() == pytest.approx(0.8)  # kappa / (d + kappa)
    mean, covariance = moments(x[:5], weights[:5] / weights[:5].sum())
    found = moments(new, np.exp(log_weights))
    np.testing.assert_allclose(found[0], mean, rtol=1e-9)
    np.testing.assert_allclose(found[1], covariance, rtol=1e-6, atol=1e-9)


def test_a_sampler_of_a_fixed_number_of_points_names_it():
    x, weights = particles(4)
    with pytest.raises(ValueError, match="n: expected 5, the number of sigma points for this mixture, got 48"):
        hf.MixtureResampling(hf.GaussianFit(), hf.SigmaPoints()).resample(Particles.weighted(x, weights), None)


def test_negative_weights_are_refused_with_the_name_of_the_sampler():
    x = particles(5)[0][:5]
    scheme = hf.MixtureResampling(hf.GaussianFit(), hf.SigmaPoints(kappa=-1.0))
    with pytest.raises(ValueError, match="sampler: expected non-negative weights from SigmaPoints, got -1"):
        scheme.resample(Particles.weighted(x, np.full(5, 0.2)), None)


def test_another_number_of_points_is_refused_with_the_name_of_the_sampler():
    class Few:
        def sample(self, mixture, n, rng=None):
            return hf.Points(np.zeros((n - 1, mixture.dim)))

    x, weights = particles(6)
    with pytest.raises(ValueError, match="sampler: expected 48 points from Few, got 47"):
        hf.MixtureResampling(hf.GaussianFit(), Few()).resample(Particles.weighted(x, weights), None)
