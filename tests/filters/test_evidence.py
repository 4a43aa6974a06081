"""The evidence, p(z_1 .. z_T), that particle filters estimate: unbiased at random, convergent without."""

import numpy as np
import pytest
from helpers import kalman

import herdfilter as hf

LINE = hf.models.LinearGaussian(F=[[0.9]], H=[[1.0]], Q=[[1.0]], R=[[0.5]], initial_mean=[1.0], initial_covariance=[[2.0]])


def series(steps, seed):
    """Observations, of which the third is missing."""
    z = hf.simulate(LINE, steps, rng=seed)[1]
    z[2] = np.nan
    return z


def errors(z, n, runs, **options):
    """Errors of the log-likelihood over filter seeds."""
    found = [hf.ParticleFilter(LINE, n, rng=seed, **options).run(z).log_likelihood for seed in range(runs)]
    return np.array(found) - kalman(LINE, z)[2].sum()


def assert_unbiased(error):
    ratio = np.exp(error)
    tolerance = 4.5 * ratio.std() / np.sqrt(len(ratio))
    assert tolerance < 0.15
    assert abs(ratio.mean() - 1) < tolerance, (ratio.mean(), tolerance)


@pytest.mark.parametrize("threshold", [0.5, 1.0])
@pytest.mark.parametrize(
    "scheme",
    [
        hf.MultinomialResampling(),
        hf.StratifiedResampling(),
        hf.SystematicResampling(),
        hf.ResidualResampling(),
        hf.SSPResampling(),
    ],
    ids=lambda scheme: type(scheme).__name__,
)
def test_copying_by_chance_leaves_the_evidence_unbiased(scheme, threshold):
    """Whenever particle i has n w_i copies in the mean (Del Moral 2004)."""
    assert_unbiased(errors(series(5, 7), 60, 100, resampling=scheme, resample_below=threshold))


def test_random_draws_from_the_predictive_mixture_leave_the_evidence_unbiased():
    """Without a defensive share, whose importance weights are normalised."""
    assert_unbiased(errors(series(5, 7), 60, 100, proposal=hf.HerdedProposal(hf.RandomSampling(), 0.0)))


def test_the_logarithm_is_low_by_half_its_variance():
    """As for every unbiased estimate that is close to log-normal."""
    error = errors(series(10, 3), 60, 400)
    chance = error.std() / np.sqrt(len(error))
    assert error.mean() < -3 * chance
    assert abs(error.mean() + 0.5 * error.var()) < 4 * chance


@pytest.mark.parametrize(
    "proposal",
    [
        lambda: hf.HerdedProposal(hf.KernelHerding()),
        lambda: hf.HerdedProposal(hf.ContinuousHerdedGibbs()),
        lambda: hf.AugmentedProposal(hf.GaussianFit(), hf.MappedSampling(hf.KernelHerding())),
    ],
    ids=["herded, KH", "herded, CHG", "augmented, KH"],
)
def test_without_random_numbers_the_bias_goes_to_zero(proposal):
    """Root mean square over ten series, which bounds the bias: it falls faster than 1 / root n."""
    sizes = np.array([10, 40, 160])
    found = np.array([[errors(series(8, k), n, 1, proposal=proposal())[0] for k in range(10)] for n in sizes])
    rms = np.sqrt(np.mean(found**2, axis=1))
    assert np.polyfit(np.log(sizes), np.log(rms), 1)[0] < -0.6, rms
