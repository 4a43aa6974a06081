"""The evidence, p(z_1 .. z_T), that particle filters estimate: unbiased at random, convergent without."""

import numpy as np
from helpers import cases, kalman, on_a_line, plane

import herdfilter as hf

LINE = on_a_line(F=0.9, R=0.5, mean=1.0, variance=2.0)
PLANE = plane()
SCHEMES = [
    hf.MultinomialResampling(),
    hf.StratifiedResampling(),
    hf.SystematicResampling(),
    hf.ResidualResampling(),
    hf.SSPResampling(),
]
UNBIASED = {
    "SystematicResampling, half": (
        LINE,
        {"resampling": hf.SystematicResampling(), "resample_below": 0.5},
    ),
    **{
        f"{type(s).__name__}, always": (LINE, {"resampling": s, "resample_below": 1.0})
        for s in SCHEMES
    },
    "no resampling": (PLANE, {"resample_below": 0.0}),
    # else weights are normalised
    "random, no defence": (LINE, {"proposal": hf.HerdedProposal(hf.RandomSampling(), 0.0)}),
    "auxiliary": (PLANE, {"proposal": hf.AuxiliaryProposal(hf.StratifiedResampling())}),
    "sqmc": (PLANE, {"proposal": hf.SequentialQuasiMonteCarlo()}),
    "sqmc, guided": (PLANE, {"proposal": hf.SequentialQuasiMonteCarlo(guided=True)}),
    "Kalman mixture": (PLANE, {"proposal": hf.KalmanMixtureProposal(hf.RandomSampling())}),
    "Kalman mixture, no defence": (
        PLANE,
        {"proposal": hf.KalmanMixtureProposal(hf.RandomSampling(), "cubature", 0.0)},
    ),
    **{
        f"guided, {below}": (PLANE, {"proposal": hf.GuidedProposal(), "resample_below": below})
        for below in (0, 1)
    },
    "state and noise": (
        PLANE,
        {"proposal": hf.GuidedAugmentedProposal(hf.GaussianFit(), hf.RandomSampling())},
    ),
}


def series(model, steps, seed):
    z = hf.simulate(model, steps, rng=seed)[1]
    z[2] = np.nan
    return z


def errors(model, z, n, runs, **options):
    found = [
        hf.ParticleFilter(model, n, rng=seed, **options).run(z).log_likelihood
        for seed in range(runs)
    ]
    return np.array(found) - kalman(model, z)[2].sum()


@cases("model options", *UNBIASED.values(), ids=UNBIASED)
def test_the_estimate_of_the_evidence_is_unbiased(model, options):
    """However the observation guides the points, whenever particle i has n w_i copies in the mean (Del Moral 2004)."""
    ratio = np.exp(errors(model, series(model, 4, 7), 60, 60, **options))
    tolerance = 4.5 * ratio.std() / np.sqrt(len(ratio))
    assert tolerance < 0.15
    assert abs(ratio.mean() - 1) < tolerance, (ratio.mean(), tolerance)
