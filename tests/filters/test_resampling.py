"""Every resampling scheme, run through what any scheme must do.

What concerns schemes that copy particles is in test_resampling_copies.py, optimal transport in test_resampling_transport.py,
draws from a fitted mixture in test_resampling_mixture.py.
"""

import operator

import numpy as np
import pytest
from helpers import cases, cloud, refuses
from numpy.testing import assert_array_equal

from herdfilter.filters import (
    AuxiliaryProposal,
    MixtureResampling,
    MultinomialResampling,
    OptimalTransportResampling,
    Particles,
    RegularisedResampling,
    Resampling,
    ResidualResampling,
    SSPResampling,
    SystematicResampling,
)
from herdfilter.fitting import GaussianFit, KernelDensityFit
from herdfilter.samplers import ContinuousHerdedGibbs, KernelHerding, MappedSampling, RandomSampling

RANDOM = {
    "multinomial": MultinomialResampling(),
    "residual": ResidualResampling(),
    "ssp": SSPResampling(),
    "systematic": SystematicResampling(),
    "kernel density, random": MixtureResampling(KernelDensityFit(), RandomSampling()),
}
HERDED = {
    "kernel density, kernel herding": MixtureResampling(KernelDensityFit(), KernelHerding()),
    "kernel density, herded Gibbs": MixtureResampling(KernelDensityFit(), ContinuousHerdedGibbs()),
    "gaussian, mapped": MixtureResampling(GaussianFit(), MappedSampling(KernelHerding())),
}
TRANSPORT = {"transport": OptimalTransportResampling()}
SCHEMES = RANDOM | TRANSPORT | HERDED
every_scheme = cases("scheme", *SCHEMES.values(), ids=SCHEMES)


def resampled(scheme, x, weights, **options):
    return scheme.resample(Particles.weighted(x, weights), np.random.default_rng(0), **options)


@every_scheme
def test_as_many_particles_with_weights_that_sum_to_one(scheme):
    x, weights = cloud(0)
    before = x.copy(), weights.copy()
    weighted = resampled(scheme, x, weights)
    new = weighted.x
    log_weights = weighted.log_weights
    assert isinstance(scheme, Resampling)
    assert new.shape == x.shape
    assert np.isfinite(new).all()
    assert np.exp(log_weights).sum() == pytest.approx(1, abs=1e-12)
    assert 1 / np.exp(2 * log_weights).sum() > 2 / (weights**2).sum()  # far more even than before
    assert_array_equal(x, before[0])
    assert_array_equal(weights, before[1])


@every_scheme
def test_all_weight_on_one_particle_keeps_the_others_away(scheme):
    x, weights = cloud(3)
    weights = np.zeros(40)
    weights[7] = 1.0
    new = resampled(scheme, x, weights).x
    assert np.abs(new - x[7]).max() < 1e-2


@cases("scheme", *SCHEMES.values(), RegularisedResampling(), ids=[*SCHEMES, "regularised"])
def test_angles_stay_at_the_seam(scheme):
    angles = np.random.default_rng(4).normal(np.pi, 0.2, (60, 1))
    x = np.mod(angles + np.pi, 2 * np.pi) - np.pi
    weights = np.full(60, 1 / 60)
    new = resampled(scheme, x, weights, circular=(0,)).x
    assert (np.abs(new) > np.pi - 1.2).all()
    assert (np.abs(new) <= np.pi).all()
    assert 0.2 < (new > 0).mean() < 0.8


# Parts


test_bad_parts_are_named = refuses(
    operator.call,
    (lambda: OptimalTransportResampling(distance="manhattan"), "distance: unknown 'manhattan'"),
    (
        TypeError,
        lambda: AuxiliaryProposal(MixtureResampling(GaussianFit(), RandomSampling())),
        "resampling: expected a scheme that copies particles",
    ),
)
