"""The evidence, p(z_1 .. z_T), that particle filters estimate: unbiased at random, convergent without."""

import numpy as np
import pytest
from helpers import kalman, plane

import herdfilter as hf

LINE = hf.models.LinearGaussian(F=[[0.9]], H=[[1.0]], Q=[[1.0]], R=[[0.5]], initial_mean=[1.0], initial_covariance=[[2.0]])
PLANE = plane()
SCHEMES = [
    hf.MultinomialResampling(),
    hf.StratifiedResampling(),
    hf.SystematicResampling(),
    hf.ResidualResampling(),
    hf.SSPResampling(),
]
KALMAN_MIXTURE = hf.KalmanMixtureProposal(hf.RandomSampling())
UNBIASED = {
    **{f"{type(s).__name__}, half": (LINE, {"resampling": s, "resample_below": 0.5}) for s in SCHEMES},
    **{f"{type(s).__name__}, always": (LINE, {"resampling": s, "resample_below": 1.0}) for s in SCHEMES},
    "no resampling": (PLANE, {"resample_below": 0.0}),
    "random, no defence": (LINE, {"proposal": hf.HerdedProposal(hf.RandomSampling(), 0.0)}),  # else weights are normalised
    **{f"auxiliary, {type(s).__name__}": (PLANE, {"proposal": hf.AuxiliaryProposal(s)}) for s in SCHEMES[:3]},
    "sqmc": (LINE, {"proposal": hf.SequentialQuasiMonteCarlo()}),
    "sqmc, plane": (PLANE, {"proposal": hf.SequentialQuasiMonteCarlo()}),
    "Kalman mixture": (PLANE, {"proposal": KALMAN_MIXTURE}),
    "Kalman mixture, no defence": (PLANE, {"proposal": hf.KalmanMixtureProposal(hf.RandomSampling(), defensive_share=0.0)}),
    "Kalman mixture, cubature": (PLANE, {"proposal": hf.KalmanMixtureProposal(hf.RandomSampling(), "cubature")}),
    **{f"guided, {below}": (PLANE, {"proposal": hf.GuidedProposal(), "resample_below": below}) for below in (0, 0.5, 1)},
    "guided, extended": (PLANE, {"proposal": hf.GuidedProposal("extended")}),
    "state and noise": (PLANE, {"proposal": hf.GuidedAugmentedProposal(hf.GaussianFit(), hf.RandomSampling())}),
}


def series(model, steps, seed):
    z = hf.simulate(model, steps, rng=seed)[1]
    z[2] = np.nan
    return z


def errors(model, z, n, runs, **options):
    found = [hf.ParticleFilter(model, n, rng=seed, **options).run(z).log_likelihood for seed in range(runs)]
    return np.array(found) - kalman(model, z)[2].sum()


@pytest.mark.parametrize(("model", "options"), UNBIASED.values(), ids=UNBIASED)
def test_the_estimate_of_the_evidence_is_unbiased(model, options):
    """However the observation guides the points, whenever particle i has n w_i copies in the mean (Del Moral 2004)."""
    ratio = np.exp(errors(model, series(model, 5, 7), 60, 150, **options))
    tolerance = 4.5 * ratio.std() / np.sqrt(len(ratio))
    assert tolerance < 0.15
    assert abs(ratio.mean() - 1) < tolerance, (ratio.mean(), tolerance)


def test_the_logarithm_is_low_by_half_its_variance():
    error = errors(LINE, series(LINE, 10, 3), 60, 400)
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
    found = np.array([[errors(LINE, series(LINE, 8, k), n, 1, proposal=proposal())[0] for k in range(10)] for n in sizes])
    rms = np.sqrt(np.mean(found**2, axis=1))
    assert np.polyfit(np.log(sizes), np.log(rms), 1)[0] < -0.6, rms
