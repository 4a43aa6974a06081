"""Every fit, run through what any fit must do; then each for itself."""

import numpy as np
import pytest
from helpers import assert_same, refuses
from hypothesis import given, settings
from hypothesis import strategies as st

from herdfilter._covariances import plain_and_regular
from herdfilter.angles import wrap_angles
from herdfilter.fitting import DivisiveFit, EMFit, Fit, GaussianFit, KernelDensityFit
from herdfilter.mixture import GaussianMixture

KEEPING_MOMENTS = {
    "gaussian": GaussianFit(),
    "kernel density": KernelDensityFit(),
    "division": DivisiveFit(),
    "kernels of one width": KernelDensityFit(modes=1),
    "EM, 3": EMFit(3),
    "EM, number by BIC": EMFit("bic"),
    "EM, one covariance": EMFit(3, shared=True),
}
FITS = KEEPING_MOMENTS | {"ensemble Gaussian mixture": KernelDensityFit(shrink=False, modes=1)}
every_fit = pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
every_fit_that_keeps_moments = pytest.mark.parametrize("fit", KEEPING_MOMENTS.values(), ids=KEEPING_MOMENTS)
few = settings(max_examples=6, deadline=None, derandomize=True)


def particles(seed, n, d):
    rng = np.random.default_rng(seed)
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
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(weights, before[1])
    assert_same(fit.fit(x), fit.fit(x, np.full(30, 1 / 30)), "means", "covariances")
    assert_same(fit.fit(x, weights), first, "weights", "means", "covariances")
    order = np.random.default_rng(11).permutation(30)
    shuffled = fit.fit(x[order], weights[order])
    np.testing.assert_allclose(shuffled.log_density(x), first.log_density(x), rtol=1e-9)


@every_fit_that_keeps_moments
@few
@given(st.integers(0, 2**32 - 1), st.integers(10, 60), st.integers(1, 6))
def test_mean_and_covariance_are_those_of_the_particles(fit, seed, n, d):
    x, weights = particles(seed, n, d)
    mixture = fit.fit(x, weights)
    mean, covariance = moments(x, weights)
    sds = np.sqrt(np.diagonal(covariance))
    np.testing.assert_allclose((mixture.mean - mean) / sds, 0, atol=1e-7)
    np.testing.assert_allclose((mixture.covariance - covariance) / np.outer(sds, sds), 0, atol=1e-7)
    assert mixture.weights.sum() == pytest.approx(1, abs=1e-12)


@every_fit_that_keeps_moments
def test_mean_and_covariance_are_exact_where_no_weight_is_negligible(fit):
    rng = np.random.default_rng(1)
    x, weights = rng.standard_normal((50, 3)), rng.dirichlet(np.full(50, 5.0))
    mixture, (mean, covariance) = fit.fit(x, weights), moments(x, weights)
    np.testing.assert_allclose(mixture.mean, mean, atol=1e-14)
    np.testing.assert_allclose(mixture.covariance, covariance, atol=1e-14)


@every_fit
def test_angles_are_fitted_alike_wherever_they_lie(fit):
    rng = np.random.default_rng(2)
    x, weights = rng.standard_normal((40, 2)) * [2.0, 0.4], rng.dirichlet(np.ones(40))
    plain = fit.fit(x, weights)
    for turn in (0.0, np.pi, 100.0):
        shift, case = np.array([0.0, turn]), f"turned by {turn}"
        turned = fit.fit(wrap_angles(x + shift, (1,)), weights, (1,))
        offset = turned.means - plain.means - shift
        np.testing.assert_allclose(wrap_angles(offset, (1,)), 0, atol=1e-12, err_msg=case)
        assert np.ptp(offset[:, 1]) < 1e-12, case  # all components on the same side of the seam
        np.testing.assert_allclose(turned.covariances, plain.covariances, atol=1e-12, err_msg=case)


@every_fit
def test_particles_in_one_place_give_a_mixture_there(fit):
    """One particle, some in one place, and all weight on one."""
    for x, weights in (([], [1.0]), ([[1.0, -2.0]] * 4, [0.2] * 5), ([[7.0, 7.0]], [1.0, 0.0])):
        drawn = fit.fit(np.array([[1.0, -2.0], *x]), np.array(weights)).sample(50, 4)
        assert np.abs(drawn - [1.0, -2.0]).max() < 1e-2


@every_fit
def test_one_particle_of_nearly_all_weight_gives_a_mixture_with_a_density(fit):
    for d in (1, 2, 5):
        rng = np.random.default_rng(8)
        x, weights = rng.standard_normal((20, d)), np.full(20, 1e-13)
        weights[3] = 1 - 19e-13
        mixture = fit.fit(x, weights)
        assert np.isfinite(mixture.log_density(x)).all(), d
        assert np.abs(mixture.mean - x[3]).max() < 1e-6, d


@every_fit
def test_particles_in_a_plane_give_a_mixture_with_a_density_close_to_it(fit):
    rng = np.random.default_rng(9)
    plane = rng.standard_normal((2, 3))
    x, weights = rng.standard_normal((60, 2)) @ plane + 5.0, rng.dirichlet(np.ones(60))
    mixture = fit.fit(x, weights)
    assert np.isfinite(mixture.log_density(x)).all()
    normal = np.cross(*plane) / np.linalg.norm(np.cross(*plane))
    np.testing.assert_allclose((mixture.sample(200, 1) - 5.0) @ normal, 0, atol=1e-2)


@every_fit
@few
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(2, 6), st.floats(-3, 3), st.floats(0, 6))
def test_particles_of_any_rank_give_regular_covariances(fit, seed, n, d, scale, offset):
    """Far from singular, so that no processor's rounding decides whether there is a density."""
    rng = np.random.default_rng(seed)
    rank = rng.integers(1, d)
    x = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d)) * 10.0**scale + 10.0**offset
    for covariance in fit.fit(x, rng.dirichlet(np.ones(n))).distinct_covariances:
        sds = np.sqrt(np.diagonal(covariance))
        assert np.linalg.eigvalsh(covariance / np.outer(sds, sds))[0] > 0.9e-8


@every_fit
def test_a_state_known_exactly_gets_the_same_width_whatever_its_value(fit):
    """As sums are rounded, the variance of equal numbers is zero or not; it must not matter."""
    rng = np.random.default_rng(16)
    x, weights = rng.standard_normal((30, 2)), rng.dirichlet(np.ones(30))
    x[:, 1] = 0.0
    zero = fit.fit(x, weights)
    for value in (0.1, 1 / 3, -123.456, 1e9):
        x = np.column_stack([x[:, 0], np.full(30, value)])
        mixture = fit.fit(x, weights)
        np.testing.assert_allclose(mixture.covariances, zero.covariances, rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(mixture.means[:, 1], value, rtol=1e-9)


# The kernel density


def test_the_width_is_the_rule_for_a_gaussian():
    """Kernel covariance h^2 C with h = (4 / ((d + 2) n))^(1 / (d + 4)), the minimiser of the integrated error."""
    x, weights = np.random.default_rng(6).standard_normal((200, 2)), np.full(200, 1 / 200)
    mixture = KernelDensityFit().fit(x, weights)
    h = 200 ** (-1 / 6)
    np.testing.assert_allclose(mixture.covariances[0], h**2 * moments(x, weights)[1], rtol=1e-12)
    narrow = KernelDensityFit(0.5).fit(x, weights)
    np.testing.assert_allclose(narrow.covariances[0], 0.25 * mixture.covariances[0], rtol=1e-12)


@pytest.mark.parametrize("d", [1, 4])
def test_kernels_are_as_wide_as_a_mode_asks_for(d):
    """However far the modes are apart, their kernels stay the same, and no density comes to lie between them."""
    rng = np.random.default_rng(14)
    side = np.where(np.arange(200) % 3, 1.0, -1.0)[:, None]
    noise, weights = rng.standard_normal((200, d)), rng.dirichlet(np.full(200, 3.0))
    near, far = (KernelDensityFit().fit(noise + distance * side, weights) for distance in (8.0, 80.0))
    np.testing.assert_allclose(near.covariances, far.covariances, rtol=1e-9)
    np.testing.assert_allclose(near.means - 8.0 * side, far.means - 80.0 * side, atol=1e-9)
    within = np.zeros((d, d))
    for sign in (-1.0, 1.0):
        chosen = side[:, 0] == sign
        share = weights[chosen].sum()
        within += share * moments(noise[chosen], weights[chosen] / share)[1]
    h = (4 / ((d + 2) / (weights @ weights))) ** (1 / (d + 4))
    np.testing.assert_allclose(near.covariances[0], h**2 * within, rtol=1e-9, atol=1e-12)
    blurred = KernelDensityFit(modes=1).fit(noise + 8.0 * side, weights)
    assert near.log_density(np.zeros((1, d)))[0] < blurred.log_density(np.zeros((1, d)))[0] - 2.0


def test_one_mode_has_the_kernels_of_west():
    x, weights = np.random.default_rng(15).standard_normal((150, 2)), np.full(150, 1 / 150)
    ours, west = KernelDensityFit().fit(x, weights), KernelDensityFit(modes=1).fit(x, weights)
    assert_same(ours, west, "means", "covariances")


def test_the_ensemble_gaussian_mixture_leaves_the_particles_where_they_are():
    """Component i is N(x_i, h^2 C), h^2 = (4 / (n (d + 2)))^(2 / (d + 4)), so that the covariance is (1 + h^2) C."""
    x, weights = np.random.default_rng(13).standard_normal((100, 3)), np.full(100, 0.01)
    mixture, covariance = KernelDensityFit(shrink=False, modes=1).fit(x, weights), moments(x, weights)[1]
    h2 = (4 / (100 * 5)) ** (2 / 7)
    np.testing.assert_array_equal(mixture.means, x)
    np.testing.assert_allclose(mixture.covariances[0], h2 * covariance, rtol=1e-12)
    np.testing.assert_allclose(mixture.covariance, (1 + h2) * covariance, atol=1e-12)


def test_a_particle_counts_to_the_mode_it_most_probably_belongs_to():
    """The weight of a mode counts beside its density: means are drawn towards those of the modes."""
    rng = np.random.default_rng(21)
    x = np.concatenate([rng.normal(0.0, 1.0, 900), rng.normal(4.5, 1.0, 100)])[:, None]
    weights = np.full(1000, 1e-3)
    modes, found = EMFit("bic", 4).fit(x, weights), KernelDensityFit().fit(x, weights)
    assert len(modes) == 2
    densities = modes.weights * np.exp(-0.5 * (x - modes.means[:, 0]) ** 2 / modes.covariances[:, 0, 0])
    heavy = (densities / np.sqrt(modes.covariances[:, 0, 0])).argmax(axis=1) == modes.weights.argmax()
    nearer = np.abs(x[:, 0] - modes.means[modes.weights.argmax(), 0]) < np.abs(
        x[:, 0] - modes.means[modes.weights.argmin(), 0]
    )
    assert (heavy & ~nearer).any()
    h = (4 / 3 / 1000) ** (1 / 5)
    centres = np.where(heavy, x[heavy].mean(), x[~heavy].mean())
    np.testing.assert_allclose(found.means[:, 0], centres + np.sqrt(1 - h**2) * (x[:, 0] - centres), atol=1e-9)


def test_a_wide_scale_gives_one_gaussian_and_negligible_particles_no_component():
    """The width is at most that of the particles, where all means are drawn to one."""
    x, weights = particles(22, 30, 2)
    wide = KernelDensityFit(scale=100.0, modes=1).fit(x, weights)
    np.testing.assert_allclose(wide.means, np.broadcast_to(weights @ x, wide.means.shape), atol=1e-12)
    np.testing.assert_allclose(wide.covariances[0], moments(x, weights)[1], rtol=1e-9)
    weights = np.array([1.0, 1.01e-8, 0.99e-8, 0.0])
    assert len(KernelDensityFit(modes=1).fit(np.arange(4.0)[:, None], weights / weights.sum())) == 2


def test_equal_numbers_have_no_variance_whatever_rounding_leaves():
    weights = np.random.default_rng(0).dirichlet(np.ones(30))
    for value in (0.1, 1 / 3, -123.456, 1e9):
        x = np.full((30, 2), value)
        assert (plain_and_regular(x, weights, x - weights @ x)[0] == 0).all()
        wide = x + np.arange(30.0)[:, None] * [1e-6 * value, 0.0]
        plain = plain_and_regular(wide, weights, wide - weights @ wide)[0]
        np.testing.assert_allclose(plain, np.diag([weights @ (wide[:, 0] - weights @ wide[:, 0]) ** 2, 0.0]), rtol=1e-6)


test_bad_options_are_named = refuses(
    lambda given: KernelDensityFit(**given),
    ({"modes": 0}, "modes: expected"),
    ({"scale": 0.0}, "scale: expected a positive finite number, got 0.0"),
)


@pytest.mark.parametrize("fit", [EMFit("bic"), DivisiveFit()], ids=repr)
def test_two_headings_on_either_side_of_the_seam_are_told_apart(fit):
    rng = np.random.default_rng(15)
    offsets = np.where(np.arange(200) % 2, 0.6, -0.6) + 0.1 * rng.standard_normal(200)
    x = wrap_angles(np.column_stack([offsets + np.pi, rng.standard_normal(200)]), (0,))
    mixture = fit.fit(x, np.full(200, 1 / 200), (0,))
    assert len(mixture) == 2
    np.testing.assert_allclose(np.sort(wrap_angles(mixture.means - np.pi, (0,))[:, 0]), [-0.6, 0.6], atol=0.05)
    assert np.sqrt(mixture.covariances[:, 0, 0]).max() < 0.15
