"""Every resampling scheme, run through what any scheme must do; then each for itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from herdfilter.filters import MixtureResampling, Resampling, SystematicResampling
from herdfilter.fitting import GaussianFit, KernelDensityFit
from herdfilter.samplers import ContinuousHerdedGibbs, KernelHerding, MappedSampling, RandomSampling

RANDOM = {
    "systematic": SystematicResampling(),
    "kernel density, random": MixtureResampling(KernelDensityFit(), RandomSampling()),
    "gaussian, random": MixtureResampling(GaussianFit(), RandomSampling()),
}
HERDED = {
    "kernel density, kernel herding": MixtureResampling(KernelDensityFit(), KernelHerding()),
    "kernel density, herded Gibbs": MixtureResampling(KernelDensityFit(), ContinuousHerdedGibbs()),
    "gaussian, mapped": MixtureResampling(GaussianFit(), MappedSampling(KernelHerding())),
}
SCHEMES = RANDOM | HERDED
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
    new, log_weights = scheme.resample(x, weights, np.random.default_rng(0))
    assert isinstance(scheme, Resampling)
    assert new.shape == x.shape
    assert np.isfinite(new).all()
    assert np.exp(log_weights).sum() == pytest.approx(1, abs=1e-12)
    assert 1 / np.exp(2 * log_weights).sum() > 2 / (weights**2).sum()  # far more even than before
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(weights, before[1])


@pytest.mark.parametrize("scheme", RANDOM.values(), ids=RANDOM)
def test_random_schemes_are_unbiased(scheme):
    """Mean and second moments, over many seeds, are those of the weighted particles."""
    x, weights = particles(1)
    mean, covariance = moments(x, weights)
    runs = 2000
    means, products = np.empty((runs, 2)), np.empty((runs, 2, 2))
    for seed in range(runs):
        new, log_weights = scheme.resample(x, weights, np.random.default_rng(seed))
        w, centred = np.exp(log_weights), new - mean
        means[seed], products[seed] = w @ new, (centred.T * w) @ centred
    for drawn, expected in ((means, mean), (products, covariance)):
        error = np.abs(drawn.mean(axis=0) - expected) / (drawn.std(axis=0) / np.sqrt(runs))
        assert error.max() < 4.5


@pytest.mark.parametrize("scheme", HERDED.values(), ids=HERDED)
def test_herded_schemes_come_close_to_the_moments_at_once(scheme):
    """One herded resampling errs less in the mean than random ones do on average."""
    x, weights = particles(2, n=100)
    mean, covariance = moments(x, weights)
    new, log_weights = scheme.resample(x, weights, np.random.default_rng(0))
    offset = np.linalg.solve(np.linalg.cholesky(covariance), np.exp(log_weights) @ new - mean)
    assert np.linalg.norm(offset) < 0.05  # against sqrt(2 / 100) = 0.14


@every_scheme
def test_all_weight_on_one_particle_keeps_the_others_away(scheme):
    x, weights = particles(3)
    weights = np.zeros(40)
    weights[7] = 1.0
    new, _ = scheme.resample(x, weights, np.random.default_rng(0))
    assert np.abs(new - x[7]).max() < 1e-2


@every_scheme
def test_angles_stay_at_the_seam(scheme):
    angles = np.random.default_rng(4).normal(np.pi, 0.2, (60, 1))
    x, weights = np.mod(angles + np.pi, 2 * np.pi) - np.pi, np.full(60, 1 / 60)
    new, _ = scheme.resample(x, weights, np.random.default_rng(0), circular=(0,))
    assert (np.abs(new) > np.pi - 1.2).all()
    assert (np.abs(new) <= np.pi).all()
    assert 0.2 < (new > 0).mean() < 0.8


# Systematic resampling


def offspring(weights, seed):
    n = len(weights)
    new, _ = SystematicResampling().resample(np.arange(n)[:, None], weights, np.random.default_rng(seed))
    return np.bincount(new[:, 0], minlength=n)


def test_expected_offspring_is_n_times_the_weight():
    weights, runs = particles(5, n=15)[1], 4000
    counts = np.array([offspring(weights, seed) for seed in range(runs)])
    exact = 15 * weights
    share = exact - np.floor(exact)
    error = np.abs(counts.mean(axis=0) - exact) / np.sqrt(np.maximum(share * (1 - share), 1e-3) / runs)
    assert error.max() < 4.5


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(1, 200), st.floats(0.01, 10))
def test_offspring_is_floor_or_ceiling_of_n_times_the_weight(seed, n, concentration):
    weights = np.random.default_rng(seed).dirichlet(np.full(n, concentration))
    counts, exact = offspring(weights, seed), n * weights
    assert counts.sum() == n
    assert (counts >= np.floor(exact - 1e-9)).all()
    assert (counts <= np.ceil(exact + 1e-9)).all()


def test_whole_numbers_of_offspring_are_met_exactly():
    np.testing.assert_array_equal(offspring(np.array([0.5, 0.0, 0.25, 0.25]), 0), [2, 0, 1, 1])
    np.testing.assert_array_equal(offspring(np.full(7, 1 / 7), 1), np.ones(7))


def test_a_particle_without_weight_has_no_offspring_even_at_the_end_of_the_comb():
    class Last:
        def random(self):
            return 1 - 2.0**-53  # the largest that a generator returns

    weights = np.array([0.5, 0.25, 0.25, 0.0])
    new, _ = SystematicResampling().resample(np.arange(4)[:, None], weights, Last())
    assert 3 not in new


# Parts


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((GaussianFit(), "kh"), r"sampler: expected an object with sample\(mixture, n, rng\), got 'kh'"),
        (
            ("em", KernelHerding()),
            r"fit: expected an object with fit\(particles, weights, circular\), got 'em'",
        ),
        ((KernelHerding(), GaussianFit()), "sampler: expected an object with sample"),
    ],
)
def test_parts_of_the_wrong_kind_are_named(arguments, message):
    with pytest.raises(TypeError, match=message):
        MixtureResampling(*arguments)
