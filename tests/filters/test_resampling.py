"""Every resampling scheme, run through what any scheme must do.

What concerns schemes that copy particles is in test_resampling_copies.py, optimal transport in test_resampling_transport.py,
draws from a fitted mixture in test_resampling_mixture.py.
"""

import operator

import numpy as np
import pytest
from helpers import refuses

from herdfilter.filters import (
    AuxiliaryProposal,
    MixtureResampling,
    MultinomialResampling,
    OptimalTransportResampling,
    ParticleFilter,
    Particles,
    RegularisedResampling,
    Resampling,
    ResidualResampling,
    SSPResampling,
    StratifiedResampling,
    SystematicResampling,
    UnscentedKalmanFilter,
)
from herdfilter.fitting import GaussianFit, KernelDensityFit
from herdfilter.samplers import (
    ContinuousHerdedGibbs,
    KernelHerding,
    LCDSampling,
    MappedSampling,
    RandomSampling,
    SobolSampling,
)

RANDOM = {
    "multinomial": MultinomialResampling(),
    "stratified": StratifiedResampling(),
    "residual": ResidualResampling(),
    "residual, systematic": ResidualResampling(rest="systematic"),
    "ssp": SSPResampling(),
    "systematic": SystematicResampling(),
    "kernel density, random": MixtureResampling(KernelDensityFit(), RandomSampling()),
    "gaussian, random": MixtureResampling(GaussianFit(), RandomSampling()),
}
HERDED = {
    "kernel density, kernel herding": MixtureResampling(KernelDensityFit(), KernelHerding()),
    "kernel density, herded Gibbs": MixtureResampling(KernelDensityFit(), ContinuousHerdedGibbs()),
    "gaussian, mapped": MixtureResampling(GaussianFit(), MappedSampling(KernelHerding())),
    "kernel density, Sobol": MixtureResampling(KernelDensityFit(), SobolSampling()),
}
TRANSPORT = {"transport": OptimalTransportResampling()}
SCHEMES = RANDOM | TRANSPORT | HERDED
every_scheme = pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)


def particles(seed, n=40, d=2, concentration=0.3):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) * [3.0, 0.1][:d] + 1.0, rng.dirichlet(np.full(n, concentration))


def moments(x, weights):
    centred = x - weights @ x
    return weights @ x, (centred.T * weights) @ centred


@every_scheme
def test_as_many_particles_with_weights_that_sum_to_one(scheme):
    x, weights = particles(0)
    before = x.copy(), weights.copy()
    weighted = scheme.resample(Particles.weighted(x, weights), np.random.default_rng(0))
    new, log_weights = weighted.x, weighted.log_weights
    assert isinstance(scheme, Resampling)
    assert new.shape == x.shape
    assert np.isfinite(new).all()
    assert np.exp(log_weights).sum() == pytest.approx(1, abs=1e-12)
    assert 1 / np.exp(2 * log_weights).sum() > 2 / (weights**2).sum()  # far more even than before
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(weights, before[1])


@pytest.mark.parametrize("scheme", RANDOM.values(), ids=RANDOM)
def test_random_schemes_are_unbiased(scheme):
    x, weights = particles(1)
    mean, covariance = moments(x, weights)
    runs = 1000
    means, products = np.empty((runs, 2)), np.empty((runs, 2, 2))
    for seed in range(runs):
        weighted = scheme.resample(Particles.weighted(x, weights), np.random.default_rng(seed))
        new, log_weights = weighted.x, weighted.log_weights
        w, centred = np.exp(log_weights), new - mean
        means[seed], products[seed] = w @ new, (centred.T * w) @ centred
    for drawn, expected in ((means, mean), (products, covariance)):
        error = np.abs(drawn.mean(axis=0) - expected) / (drawn.std(axis=0) / np.sqrt(runs))
        assert error.max() < 4.5


@pytest.mark.parametrize("scheme", HERDED.values(), ids=HERDED)
def test_herded_schemes_come_close_to_the_moments_at_once(scheme):
    x, weights = particles(2, n=100)
    mean, covariance = moments(x, weights)
    weighted = scheme.resample(Particles.weighted(x, weights), np.random.default_rng(0))
    new, log_weights = weighted.x, weighted.log_weights
    offset = np.linalg.solve(np.linalg.cholesky(covariance), np.exp(log_weights) @ new - mean)
    assert np.linalg.norm(offset) < 0.05  # against sqrt(2 / 100) = 0.14


@every_scheme
def test_all_weight_on_one_particle_keeps_the_others_away(scheme):
    x, weights = particles(3)
    weights = np.zeros(40)
    weights[7] = 1.0
    new = scheme.resample(Particles.weighted(x, weights), np.random.default_rng(0)).x
    assert np.abs(new - x[7]).max() < 1e-2


LCD = {"kernel density, LCD": MixtureResampling(KernelDensityFit(), LCDSampling(iterations=40))}


@pytest.mark.parametrize("scheme", (SCHEMES | LCD).values(), ids=SCHEMES | LCD)
def test_angles_stay_at_the_seam(scheme):
    angles = np.random.default_rng(4).normal(np.pi, 0.2, (60, 1))
    x, weights = np.mod(angles + np.pi, 2 * np.pi) - np.pi, np.full(60, 1 / 60)
    new = scheme.resample(Particles.weighted(x, weights), np.random.default_rng(0), circular=(0,)).x
    assert (np.abs(new) > np.pi - 1.2).all()
    assert (np.abs(new) <= np.pi).all()
    assert 0.2 < (new > 0).mean() < 0.8


@pytest.mark.parametrize("scheme", (RANDOM | TRANSPORT).values(), ids=RANDOM | TRANSPORT)
def test_every_scheme_serves_a_filter(scheme, walk):
    observations = np.random.default_rng(5).normal(size=(20, 1))
    pf = ParticleFilter(walk, 400, resampling=scheme, resample_below=0.9, rng=0)
    result = pf.run(observations)
    exact = UnscentedKalmanFilter(walk).run(observations)
    assert result.resampled.sum() >= 10
    assert np.sqrt(np.mean((result.means - exact.means) ** 2)) < 0.15


# Parts


test_bad_parts_are_named = refuses(
    operator.call,
    (TypeError, lambda: MixtureResampling(GaussianFit(), "kh"), r"sampler: .* sample\(mixture, n, rng\), got 'kh'"),
    (TypeError, lambda: MixtureResampling("em", KernelHerding()), r"fit: .* fit\(particles, weights, circular\), got 'em'"),
    (TypeError, lambda: MixtureResampling(KernelHerding(), GaussianFit()), "sampler: expected an object with sample"),
    (lambda: OptimalTransportResampling(distance="manhattan"), "distance: unknown 'manhattan'"),
    (lambda: OptimalTransportResampling(largest=0), "largest: expected an integer of at least 1, got 0"),
    (lambda: RegularisedResampling(0.0), "scale: expected a positive"),
    (lambda: RegularisedResampling(-1.0), "scale: expected a positive"),
    (lambda: RegularisedResampling(np.nan), "scale: expected a positive"),
    (lambda: ResidualResampling(rest="sistematic"), "unknown 'sistematic'; did you mean 'systematic'"),
    (
        TypeError,
        lambda: AuxiliaryProposal(MixtureResampling(GaussianFit(), RandomSampling())),
        "resampling: expected a scheme that copies particles",
    ),
)
