"""Gaussian mixtures against scipy, closed forms and the laws of probability."""

import numpy as np
import pytest
from helpers import EYE, cases, normal, refusal, refuses
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from scipy.stats import gaussian_kde, multivariate_normal

from herdfilter._covariances import covariance_factor, regularised
from herdfilter.mixture import GaussianMixture
from herdfilter.testing import random_mixture

SEEDS = st.integers(0, 2**32 - 1)
few = settings(max_examples=20, deadline=None, derandomize=True)


def random_covariance(seed, d):
    return random_mixture(seed, d, 1).covariance


def with_shared_covariance(mixture):
    return GaussianMixture(mixture.weights, mixture.means, mixture.covariances[0])


@st.composite
def mixtures(draw, min_dim=1):
    d = draw(st.integers(min_dim, 4))
    components = draw(st.integers(1, 5))
    mixture = random_mixture(draw(SEEDS), d, components)
    return with_shared_covariance(mixture) if draw(st.booleans()) else mixture


def reference_log_density(mixture, x):
    terms = [
        np.log(w) + np.atleast_1d(multivariate_normal(m, c).logpdf(x))
        for w, m, c in zip(mixture.weights, mixture.means, mixture.covariances, strict=True)
        if w > 0
    ]
    return logsumexp(terms, axis=0)


def assert_same(a, b):
    assert_allclose(a.weights, b.weights, rtol=1e-10, atol=1e-300)
    assert_allclose(a.means, b.means, rtol=1e-10, atol=1e-10)
    assert_allclose(a.covariances, b.covariances, rtol=1e-10, atol=1e-10)


# Density


@few
@given(mixtures(), SEEDS)
def test_log_density_is_the_log_of_the_weighted_sum(mixture, seed):
    x = 6 * default_rng(seed).standard_normal((7, mixture.dim))
    assert_allclose(mixture.log_density(x), reference_log_density(mixture, x), rtol=1e-10)


@cases("distance", 1e2, 1e100)
def test_log_density_far_in_the_tails_is_finite_and_exact(distance):
    """Every component underflows there, yet the widest one decides: -x^2 / (2 s^2) to leading order."""
    mixture = GaussianMixture([0.3, 0.7], [[0.0], [1.0]], [[[1.0]], [[4.0]]])
    widest = np.log(0.7) - 0.5 * (np.log(2 * np.pi * 4) + (distance - 1) ** 2 / 4)
    assert mixture.log_density([[distance]])[0] == pytest.approx(widest, rel=1e-13)
    assert mixture.log_density([[1e200]])[0] == -np.inf  # squares overflow


# Moments


def test_moments_by_hand():
    mixture = GaussianMixture([1, 3], [[0.0, 0.0], [4.0, 8.0]], [EYE, 3 * EYE])
    assert_allclose(mixture.mean, [3, 6], rtol=1e-15)
    between = 0.25 * 0.75 * np.outer([4, 8], [4, 8])
    assert_allclose(mixture.covariance, 2.5 * EYE + between, rtol=1e-15)


def test_components_are_drawn_by_their_weights():
    mixture = GaussianMixture([0.2, 0.0, 0.8], [[-100.0], [0.0], [100.0]], [[1.0]])
    x = mixture.sample(50_000, 8)[:, 0]
    n = 50_000
    assert not (np.abs(x) < 50).any()
    assert abs((x < 0).mean() - 0.2) < 4.5 * np.sqrt(0.16 / n)


# Marginals, conditionals, sums


@few
@given(mixtures(min_dim=2), SEEDS)
def test_joint_is_marginal_times_conditional(mixture, seed):
    rng = default_rng(seed)
    order = rng.permutation(mixture.dim)
    given_dims = order[: rng.integers(1, mixture.dim)]
    rest = np.setdiff1d(order, given_dims)
    x = 4 * rng.standard_normal(mixture.dim)
    left = mixture.log_density(x[None])[0]
    conditional = mixture.conditional(given_dims, x[given_dims])
    right = (
        mixture.marginal(given_dims).log_density(x[None, given_dims])[0]
        + conditional.log_density(x[None, rest])[0]
    )
    assert left == pytest.approx(right, rel=1e-9, abs=1e-9)


def test_marginal_is_the_integral_over_the_rest():
    mixture = random_mixture(9, 2, 3)
    y = np.linspace(-40, 40, 8001)
    for x in (-2.0, 3.5):
        line = np.exp(mixture.log_density(np.column_stack([np.full_like(y, x), y])))
        expected = np.exp(mixture.marginal(0).log_density([x]))[0]
        assert line.sum() * (y[1] - y[0]) == pytest.approx(expected, rel=1e-10)


def test_conditional_far_from_every_component_has_weights_that_sum_to_one():
    mixture = GaussianMixture([0.5, 0.5], [[0.0, 0.0], [1.0, 1.0]], [EYE, 4 * EYE])
    weights = mixture.conditional(0, 1e5).weights
    assert_allclose(weights, [0.0, 1.0], atol=1e-15)


@few
@given(mixtures(), SEEDS)
def test_convolution_adds_covariance_and_keeps_the_mean(mixture, seed):
    a = random_covariance(seed, mixture.dim)
    b = random_covariance(seed + 1, mixture.dim)
    once = mixture.convolve(a)
    assert_allclose(once.mean, mixture.mean, rtol=1e-13)
    assert_allclose(once.covariance, mixture.covariance + a, rtol=1e-12)
    assert_same(once.convolve(b), mixture.convolve(a + b))


@few
@given(mixtures(min_dim=2), SEEDS)
def test_order_and_weightless_components_do_not_matter(mixture, seed):
    rng = default_rng(seed)
    d = mixture.dim
    extra = random_covariance(seed, mixture.dim)
    padded = GaussianMixture(
        [*mixture.weights, 0.0], [*mixture.means, 9 * np.ones(d)], [*mixture.covariances, extra]
    )
    order = rng.permutation(len(padded))
    other = GaussianMixture(padded.weights[order], padded.means[order], padded.covariances[order])
    x = 4 * rng.standard_normal((5, d))
    assert_allclose(other.mean, mixture.mean, rtol=1e-10, atol=1e-12)
    assert_allclose(other.covariance, mixture.covariance, rtol=1e-10, atol=1e-12)
    for change in (
        lambda m: m,
        lambda m: m.marginal(1),
        lambda m: m.conditional(0, 0.3),
        lambda m: m.convolve(extra),
    ):
        a = change(other)
        b = change(mixture)
        assert_allclose(
            a.log_density(x[:, : a.dim]), b.log_density(x[:, : a.dim]), rtol=1e-9, atol=1e-9
        )


# Degenerate covariances


SINGULAR = GaussianMixture(
    [0.5, 0.5], [[0.0, 0.0], [1.0, 0.0]], [[[1.0, 1.0], [1.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]]
)


def test_singular_components_are_sampled_on_their_support():
    x = SINGULAR.sample(2000, 14)
    on_line = np.abs(x[:, 0] - x[:, 1]) < 1e-12
    at_point = (x == [1.0, 0.0]).all(axis=1)
    assert (on_line ^ at_point).all()
    assert abs(on_line.mean() - 0.5) < 4.5 * np.sqrt(0.25 / 2000)
    assert x[on_line, 0].std() == pytest.approx(1, abs=0.1)


def test_singular_components_have_moments_but_no_density():
    assert normal([0.0], 0.0).covariance == 0.0
    assert_allclose(SINGULAR.mean, [0.5, 0.0])
    assert_allclose(SINGULAR.covariance, [[0.75, 0.5], [0.5, 0.5]])
    with refusal("covariances: expected positive definite ones for a density"):
        SINGULAR.log_density([[0.0, 0.0]])
    assert np.isfinite(SINGULAR.convolve(0.1 * EYE).log_density([[0.0, 0.0]])).all()


@few
@given(SEEDS, st.integers(1, 5), st.integers(0, 5))
def test_factor_squares_to_the_covariance(seed, d, rank):
    root = default_rng(seed).standard_normal((d, min(rank, d)))
    covariance = root @ root.T
    factor = covariance_factor(covariance)
    assert_allclose(factor @ factor.T, covariance, atol=1e-12 * max(np.trace(covariance), 1))


# Ownership


def test_the_callers_arrays_stay_the_callers():
    """Reusing a buffer after construction must not move the mixture."""
    weights = np.ones(1)
    means = np.zeros((1, 2))
    covariances = EYE.copy()
    mixture = GaussianMixture(weights, means, covariances)
    weights[0] = 7.0
    means[0, 0] = 9.0
    covariances[0, 0] = 5.0
    assert_array_equal(mixture.weights, [1.0])
    assert_array_equal(mixture.means, [[0.0, 0.0]])
    assert_array_equal(mixture.covariances, [EYE])


# Bad input

TWO = [[0.0, 0.0], [1.0, 1.0]]


test_bad_mixtures_are_named = refuses(
    GaussianMixture,
    ([-0.5, 1.5], TWO, EYE, r"weights: expected non-negative weights, got -0\.5"),
    ([np.nan, 1.0], TWO, EYE, r"weights: expected finite numbers, got 1 non-finite"),
    ([0.0, 0.0], TWO, EYE, r"weights: expected a positive finite sum, got 0"),
    ([0.5, 0.5], [0.0, 1.0], EYE, r"means: expected shape \(2, \*\), got \(2,\)"),
    ([1.0], np.empty((1, 0)), np.empty((0, 0)), r"means: expected at least one dimension"),
    ([0.5, 0.5], TWO, np.eye(3), r"covariances: expected shape \(2, 2, 2\) or \(2, 2\) or .* got \(3, 3\)"),
    ([1.0], [[0.0, 1.0]], [[1, 2, 3]], r"covariances: .*, \(1, 2\) for diagonal or \(1,\) for spherical ones"),
    ([0.5, 0.5], TWO, [[1, 0.5], [0.4, 1]], r"covariances: expected symmetric .* asymmetry of 0\.1"),
    ([0.5, 0.5], TWO, [EYE, -EYE], r"covariances: expected positive semi-definite .* eigenvalue of -1"),
    ([0.5, 0.5], TWO, np.diag([1.0, 9e-281]), r"covariances: expected variances of 0 or at least 1e-280, got \d"),
)  # fmt: skip


# Of other people's shapes and objects


def test_diagonal_and_spherical_covariances_are_known_by_their_shape():
    rng = default_rng(3)
    weights = rng.dirichlet(np.ones(3))
    means = rng.normal(size=(3, 2))
    variances = rng.uniform(1, 2, (3, 2))
    full = GaussianMixture(weights, means, [np.diag(row) for row in variances])
    assert_same(GaussianMixture(weights, means, variances), full)
    full = GaussianMixture(weights, means, [v * EYE for v in variances[:, 0]])
    assert_same(GaussianMixture(weights, means, variances[:, 0]), full)


def test_a_square_of_covariances_is_the_shared_matrix():
    shared = np.array([[2.0, 0.5], [0.5, 1.0]])
    assert GaussianMixture([0.5, 0.5], TWO, shared).shared
    variances = np.array([[2.0, 0.5], [0.7, 1.0]])
    with refusal("covariances: expected symmetric matrices"):
        GaussianMixture([0.5, 0.5], TWO, variances)
    found = GaussianMixture([0.5, 0.5], TWO, variances[:, None] * EYE)
    assert_array_equal(found.covariances[1], np.diag([0.7, 1.0]))


@cases("kind", "full", "tied", "diag", "spherical")
def test_mixtures_of_scikit_learn_keep_their_density(kind):
    """Two components in two dimensions, where the shape alone could not tell diagonal ones."""
    mixture = pytest.importorskip("sklearn.mixture", reason="scikit-learn is optional")
    x = default_rng(4).normal(size=(80, 2)) @ [[2.0, 0.3], [0.0, 0.5]]
    theirs = mixture.GaussianMixture(
        2, covariance_type=kind, init_params="random", random_state=0
    ).fit(x)
    ours = GaussianMixture.from_sklearn(theirs)
    assert_allclose(ours.log_density(x), theirs.score_samples(x), rtol=1e-10)
    assert ours.shared == (kind == "tied")
    bayesian = mixture.BayesianGaussianMixture(
        n_components=2, covariance_type=kind, max_iter=1000
    ).fit(x)
    found = GaussianMixture.from_sklearn(bayesian)
    assert_allclose(found.weights, bayesian.weights_)
    precisions = bayesian.precisions_
    if kind in ("diag", "spherical"):
        precisions = [p * EYE for p in precisions]
    assert_allclose(found.covariances @ precisions, np.tile(EYE, (2, 1, 1)), atol=1e-10)


def test_what_is_no_fitted_mixture_of_scikit_learn_is_named():
    class Unfitted:
        covariance_type = "full"

        def __repr__(self):
            return "Mixture(n_components=2)"

    for gmm in (Unfitted(), Unfitted):
        message = r"^gmm: expected a fitted .* of scikit-learn, got .*(Mixture\(|Unfitted)"
        with refusal(message, TypeError):
            GaussianMixture.from_sklearn(gmm)
    with refusal(r"^kde: expected a scipy.stats.gaussian_kde, got Mixture", TypeError):
        GaussianMixture.from_kde(Unfitted())


@cases("d bw", (1, None), (3, 0.3))
def test_kernel_density_of_scipy_keeps_its_density(d, bw):
    rng = default_rng(d)
    kde = gaussian_kde(rng.normal(size=(d, 40)), bw, weights=rng.dirichlet(np.ones(40)))
    x = rng.normal(size=(9, d))
    assert_allclose(GaussianMixture.from_kde(kde).log_density(x), kde.logpdf(x.T), rtol=1e-10)


MIXTURE = GaussianMixture([0.5, 0.5], [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]], np.eye(3))


test_bad_calls_are_named = refuses(
    lambda call: call(MIXTURE),
    (lambda m: m.log_density([[0.0, 0.0]]), r"x: expected shape \(\*, 3\), got \(1, 2\)"),
    (lambda m: m.marginal(3), r"dims: expected a sequence of indices from 0 to 2, such as \[0\], got \[3\]"),
    (lambda m: m.marginal([]), r"dims: expected distinct indices, at least one, got \[\]"),
    (lambda m: m.conditional([0, 1, 2], [0, 0, 0]), r"dims: expected to leave at least one dimension free"),
    (lambda m: m.conditional([0, 1], [0]), r"values: expected shape \(2,\), got \(1,\)"),
    (lambda m: m.convolve(EYE), r"covariance: expected shape \(3, 3\), got \(2, 2\)"),
    (lambda m: m.sample(0), r"n: expected an integer of at least 1, got 0"),
)  # fmt: skip


def test_conditioning_on_a_singular_block_is_refused():
    flat = GaussianMixture([1.0], [[0.0, 0.0]], np.diag([1.0, 0.0]))
    assert_allclose(flat.conditional(0, 2.0).covariance, [[0.0]])
    with refusal("positive definite"):
        flat.conditional(1, 0.0)


def test_rounding_is_not_asymmetry_or_indefiniteness():
    """Covariances as filters compute them: symmetric and semi-definite only to rounding, at any scale."""
    root = default_rng(16).standard_normal((4, 2)) * 1e-7
    covariance = root @ root.T
    covariance[0, 1] *= 1 + 1e-12
    stored = GaussianMixture([1.0], np.zeros((1, 4)), covariance).distinct_covariances[0]
    assert_array_equal(stored, stored.T)


@cases("far", 0.0, 2.0**32)
def test_component_densities_do_not_lose_digits_far_from_the_origin(far):
    """Shared and own covariances against each Gaussian by itself; places in 1 / 1024, so that they are exact."""
    rng = default_rng(0)
    means = rng.integers(-9, 9, (5, 3)) / 1024
    x = rng.integers(-9, 9, (7, 3)) / 1024
    covariance = 1e-5 * (np.eye(3) + 0.3)
    each = np.array([multivariate_normal(m, covariance).logpdf(x) for m in means]).T
    for same in (covariance, np.tile(covariance, (5, 1, 1))):
        mixture = GaussianMixture(np.full(5, 0.2), means + far, same)
        assert_allclose(mixture.component_log_densities(x + far), each, rtol=1e-11)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(0, 5))
def test_floor_lifts_the_correlations_and_nothing_else(seed, d, rank):
    rng = default_rng(seed)
    root = np.exp(rng.uniform(-8, 8, (d, 1))) * rng.standard_normal((d, min(rank, d)))
    covariance = root @ root.T
    lifted = regularised(covariance, 1e-4)
    scale = np.sqrt(np.diagonal(lifted))
    assert np.linalg.eigvalsh(lifted / np.outer(scale, scale))[0] > 0.99e-4 / (1 + 1e-4)
    if rank:
        before = np.sqrt(np.diagonal(covariance))
        assert np.abs((lifted - covariance) / np.outer(before, before)).max() <= 1.01e-4
    else:
        assert np.linalg.eigvalsh(lifted)[0] > 0


def test_floor_leaves_sound_covariances_alone():
    # The second has units apart, but full rank.
    for sound in (np.array([[0.7, 0.3], [0.3, 0.5]]), np.diag([1e-12, 1.0, 1e12])):
        assert_array_equal(regularised(sound), sound)
