"""Every fit, run through what any fit must do; then each for itself."""

import numpy as np
import pytest
from helpers import assert_same, cases, refuses
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from herdfilter.angles import wrap_angles
from herdfilter.fitting import EMFit, Fit, GaussianFit, KernelDensityFit
from herdfilter.mixture import GaussianMixture

KEEPING_MOMENTS = {
    "gaussian": GaussianFit(),
    "kernel density": KernelDensityFit(),
    "kernels of one width": KernelDensityFit(modes=1),
    "EM, 3": EMFit(3),
    "EM, number by BIC": EMFit("bic"),
    "EM, one covariance": EMFit(3, shared=True),
}
FITS = KEEPING_MOMENTS | {"ensemble Gaussian mixture": KernelDensityFit(shrink=False, modes=1)}
every_fit = cases("fit", *FITS.values(), ids=FITS)
every_fit_that_keeps_moments = cases("fit", *KEEPING_MOMENTS.values(), ids=KEEPING_MOMENTS)
few = settings(max_examples=6, deadline=None, derandomize=True)


def particles(seed, n, d):
    rng = default_rng(seed)
    x = rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) * 10.0 ** rng.integers(-4, 5, d)
    weights = rng.dirichlet(np.full(n, 0.5))
    if n > 4:
        weights[rng.integers(n)] = 0.0
    return x + rng.standard_normal(d), weights / weights.sum()


def moments(x, weights):
    centred = x - weights @ x
    return weights @ x, (centred.T * weights) @ centred


@every_fit
def test_fits_follow_the_contract(fit):
    assert isinstance(fit, Fit)
    x, weights = particles(0, 30, 2)
    before = x.copy(), weights.copy()
    first = fit.fit(x, weights)
    assert isinstance(first, GaussianMixture)
    assert_array_equal(x, before[0])
    assert_array_equal(weights, before[1])
    assert_same(fit.fit(x), fit.fit(x, np.full(30, 1 / 30)), "means", "covariances")
    assert_same(fit.fit(x, weights), first, "weights", "means", "covariances")
    order = default_rng(11).permutation(30)
    shuffled = fit.fit(x[order], weights[order])
    assert_allclose(shuffled.log_density(x), first.log_density(x), rtol=1e-9)


@every_fit_that_keeps_moments
@few
@given(st.integers(0, 2**32 - 1), st.integers(10, 60), st.integers(1, 6))
def test_mean_and_covariance_are_those_of_the_particles(fit, seed, n, d):
    x, weights = particles(seed, n, d)
    mixture = fit.fit(x, weights)
    mean, covariance = moments(x, weights)
    sds = np.sqrt(np.diagonal(covariance))
    assert_allclose((mixture.mean - mean) / sds, 0, atol=1e-7)
    assert_allclose((mixture.covariance - covariance) / np.outer(sds, sds), 0, atol=1e-7)
    assert mixture.weights.sum() == pytest.approx(1, abs=1e-12)


@every_fit
def test_angles_are_fitted_alike_wherever_they_lie(fit):
    rng = default_rng(2)
    x = rng.standard_normal((40, 2)) * [2.0, 0.4]
    weights = rng.dirichlet(np.ones(40))
    plain = fit.fit(x, weights)
    for turn in (0.0, np.pi, 100.0):
        shift = np.array([0.0, turn])
        case = f"turned by {turn}"
        turned = fit.fit(wrap_angles(x + shift, (1,)), weights, (1,))
        offset = turned.means - plain.means - shift
        assert_allclose(wrap_angles(offset, (1,)), 0, atol=1e-12, err_msg=case)
        assert np.ptp(offset[:, 1]) < 1e-12, case  # all components on the same side of the seam
        assert_allclose(turned.covariances, plain.covariances, atol=1e-12, err_msg=case)


@every_fit
def test_particles_in_one_place_give_a_mixture_there(fit):
    """One particle, some in one place, and all weight on one."""
    for x, weights in (([], [1.0]), ([[1.0, -2.0]] * 4, [0.2] * 5), ([[7.0, 7.0]], [1.0, 0.0])):
        drawn = fit.fit(np.array([[1.0, -2.0], *x]), np.array(weights)).sample(50, 4)
        assert np.abs(drawn - [1.0, -2.0]).max() < 1e-2


@every_fit
def test_one_particle_of_nearly_all_weight_gives_a_mixture_with_a_density(fit):
    """Also if the others together have so little that their spread is lost to rounding."""
    for d, rest in ((1, 1e-13), (2, 1e-13), (5, 1e-13), (4, 1e-309)):
        rng = default_rng(8)
        x = rng.standard_normal((20, d))
        weights = np.full(20, rest)
        weights[3] = 1 - 19 * rest
        mixture = fit.fit(x, weights)
        assert np.isfinite(mixture.log_density(x)).all(), d
        assert np.abs(mixture.mean - x[3]).max() < 1e-6, d


@every_fit
@few
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 40),
    st.integers(2, 6),
    st.floats(-3, 3),
    st.floats(0, 6),
)
def test_particles_of_any_rank_give_regular_covariances(fit, seed, n, d, scale, offset):
    """Far from singular, so that no processor's rounding decides whether there is a density."""
    rng = default_rng(seed)
    rank = rng.integers(1, d)
    x = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d)) * 10.0**scale + 10.0**offset
    for covariance in fit.fit(x, rng.dirichlet(np.ones(n))).distinct_covariances:
        sds = np.sqrt(np.diagonal(covariance))
        assert np.linalg.eigvalsh(covariance / np.outer(sds, sds))[0] > 0.9e-8


@every_fit
def test_a_state_known_exactly_gets_the_same_width_whatever_its_value(fit):
    """As sums are rounded, the variance of equal numbers is zero or not; it must not matter."""
    rng = default_rng(16)
    x = rng.standard_normal((30, 2))
    weights = rng.dirichlet(np.ones(30))
    x[:, 1] = 0.0
    zero = fit.fit(x, weights)
    for value in (0.1, 1 / 3, -123.456, 1e9):
        x = np.column_stack([x[:, 0], np.full(30, value)])
        mixture = fit.fit(x, weights)
        assert_allclose(mixture.covariances, zero.covariances, rtol=1e-6, atol=1e-12)
        assert_allclose(mixture.means[:, 1], value, rtol=1e-9)


# The kernel density


def written_out(options, x, weights):
    """Means and covariance of the kernels of West (1993), within the modes that the Bayesian information criterion finds."""
    d = x.shape[1]
    h = min(options.scale * (4 / (d + 2) * (weights @ weights)) ** (1 / (d + 4)), 1.0)
    modes = EMFit("bic", options.modes).fit(x, weights)
    densities = [
        np.log(w) + stats.multivariate_normal(m, C).logpdf(x)
        for w, m, C in zip(modes.weights, modes.means, modes.covariances, strict=True)
    ]
    mode = np.argmax(densities, axis=0)
    centres = np.empty_like(x)
    covariance = np.zeros((d, d))
    for k in set(mode):
        share = weights[mode == k].sum()
        centres[mode == k], within = moments(x[mode == k], weights[mode == k] / share)
        covariance += share * within
    means = centres + np.sqrt(1 - h**2) * (x - centres) if options.shrink else x
    return means, h**2 * covariance, len(modes)


@cases("d", 1, 3)
@cases("options", {}, {"scale": 0.5}, {"shrink": False}, {"scale": 100.0}, ids=str)
def test_a_kernel_density_is_that_of_the_formulas(d, options):
    """One mode, two that overlap, three that do not, and all of them as one; the lighter mode counts by its weight."""
    rng = default_rng(21)
    found = []
    for places, most in (
        ([0, 0, 0], 4),
        ([0, 0, 4], 4),
        ([-9, 0, 9], 4),
        ([-9, 0, 9], 2),
        ([-9, 0, 9], 1),
    ):
        x = rng.standard_normal((300, d))
        x[:, 0] += np.repeat(places, [200, 50, 50])
        weights = rng.dirichlet(np.full(300, 5.0))
        means, covariance, size = written_out(KernelDensityFit(modes=most, **options), x, weights)
        fit = KernelDensityFit(modes=most, **options).fit(x, weights)
        assert_allclose(fit.means, means, atol=1e-9)
        assert_allclose(fit.covariances[0], covariance, rtol=1e-8, atol=1e-9)
        assert_allclose(fit.weights, weights, rtol=1e-12)
        found.append(size)
    assert (found[0], found[2], found[4]) in ((1, 3, 1), (1, 2, 1))


def test_negligible_particles_get_no_kernel():
    weights = np.array([1.0, 1.01e-8, 0.99e-8, 0.0])
    assert len(KernelDensityFit(modes=1).fit(np.arange(4.0)[:, None], weights / weights.sum())) == 2


test_bad_options_are_named = refuses(
    lambda given: KernelDensityFit(**given),
    ({"modes": 0}, "modes: expected"),
    ({"scale": 0.0}, "scale: expected a positive finite number, got 0.0"),
)


def test_two_headings_on_either_side_of_the_seam_are_told_apart():
    rng = default_rng(15)
    offsets = np.where(np.arange(200) % 2, 0.6, -0.6) + 0.1 * rng.standard_normal(200)
    x = wrap_angles(np.column_stack([offsets + np.pi, rng.standard_normal(200)]), (0,))
    mixture = EMFit("bic").fit(x, np.full(200, 1 / 200), (0,))
    assert len(mixture) == 2
    assert_allclose(np.sort(wrap_angles(mixture.means - np.pi, (0,))[:, 0]), [-0.6, 0.6], atol=0.05)
    assert np.sqrt(mixture.covariances[:, 0, 0]).max() < 0.15
