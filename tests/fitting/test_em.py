"""Expectation-maximisation: what makes it a maximum-likelihood fit, and when it gives up a component."""

import numpy as np
import pytest
from helpers import cases, in_python, refuses
from numpy.random import default_rng
from numpy.testing import assert_allclose

from herdfilter.fitting import EMFit, em
from herdfilter.mixture import GaussianMixture

TWO = GaussianMixture(
    [0.3, 0.7], [[-4.0, 1.0], [3.0, 0.0]], [[[1.0, 0.5], [0.5, 2.0]], [[0.5, -0.2], [-0.2, 0.3]]]
)
THREE = GaussianMixture([0.2, 0.3, 0.5], [[0.0], [7.0], [15.0]], [[[1.0]], [[0.25]], [[4.0]]])


def equal(n):
    return np.full(n, 1 / n)


def likelihood(mixture, x, weights):
    return weights @ mixture.log_density(x)


def by_first_mean(mixture):
    order = np.argsort(mixture.means[:, 0])
    return mixture.weights[order], mixture.means[order], mixture.covariances[order]


def test_the_likelihood_never_falls_where_the_floor_is_active():
    rng = default_rng(1)
    x = np.concatenate(
        [rng.standard_normal((60, 2)), rng.standard_normal((60, 2)) * [1e-4, 1.0] + [0.5, 0.0]]
    )
    fits = [EMFit(2, floor=0.01, tolerance=1e-15, max_iterations=i) for i in range(1, 40)]
    mixtures = [fit.fit(x, equal(120)) for fit in fits]
    assert np.diff([likelihood(m, x, equal(120)) for m in mixtures]).min() > -1e-12
    scale = np.linalg.inv(np.linalg.cholesky(np.cov(x.T, bias=True)))
    lowest = [np.linalg.eigvalsh(scale @ cov @ scale.T)[0] for cov in mixtures[-1].covariances]
    assert min(lowest) == pytest.approx(0.01, rel=1e-6)


@cases("truth", TWO, THREE, ids=["two in the plane", "three on a line"])
def test_a_known_mixture_is_recovered_from_weighted_draws(truth):
    wide = GaussianMixture([1.0], [truth.mean], [1.5 * truth.covariance])
    x = wide.sample(5000, 4)
    weights = np.exp(truth.log_density(x) - wide.log_density(x))
    weights /= weights.sum()
    fitted = EMFit(len(truth), tolerance=1e-8, max_iterations=1000).fit(x, weights)
    for ours, true, atol in zip(
        by_first_mean(fitted), by_first_mean(truth), (0.03, 0.2, 0.4), strict=True
    ):
        assert_allclose(ours, true, atol=atol)


@cases("components dims", (1, 6), (2, 3), (3, 1))
def test_bic_finds_the_number_of_well_separated_components(components, dims):
    means = np.zeros((components, dims))
    means[:, 0] = 8.0 * np.arange(components)
    if dims > 1:
        means[1:2, 1] = 8.0
    for seed in range(2):
        x = means[np.arange(200) % components] + default_rng(seed).standard_normal((200, dims))
        assert len(EMFit("bic").fit(x, equal(200))) == components, seed
        assert len(EMFit("bic", shared=True).fit(x, equal(200))) == components, seed


test_bad_options_are_named = refuses(
    lambda options: EMFit(**({"n_components": 2} | options)),
    ({"n_components": 0}, "n_components: expected an integer of at least 1, got 0"),
    (
        {"n_components": "aic"},
        "n_components: expected an integer of at least 1 or 'bic', got 'aic'",
    ),
    ({"max_components": 0}, "max_components: expected an integer of at least 1, got 0"),
    ({"least": 0}, "least: expected a positive finite number, got 0"),
    ({"floor": 2.0}, "floor: expected a fraction of at most 1, got 2.0"),
    ({"tolerance": np.nan}, "tolerance: expected a positive finite number, got nan"),
    ({"max_iterations": 0}, "max_iterations: expected an integer of at least 1, got 0"),
)


def test_of_particles_at_two_places_there_are_two_components_at_most():
    """A third has no place of its own to start from."""
    x = np.repeat([[-1.0, 0.0], [2.0, 1.0]], [10, 30], axis=0)
    for n_components in (2, 3, 5):
        weights, means, _ = by_first_mean(EMFit(n_components).fit(x, equal(40)))
        assert_allclose(weights, [0.25, 0.75], atol=1e-12)
        assert_allclose(means, [[-1.0, 0.0], [2.0, 1.0]], atol=1e-9)


def test_compiled_code_stays_inside_its_arrays(monkeypatch):
    x = TWO.sample(25, 12)
    weights = default_rng(13).dirichlet(np.ones(25))
    compiled = EMFit(3).fit(x, weights)
    in_python(monkeypatch, em)
    found = EMFit(3).fit(x, weights)
    assert_allclose(found.log_density(x), compiled.log_density(x), rtol=1e-9)
