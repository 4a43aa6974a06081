"""Particles that are guided by a likelihood alone: as by moments where it is Gaussian, and never led astray elsewhere."""

import numpy as np
import pytest
from helpers import EYE, assert_same, cases, likelihood_alone, linear
from numpy.testing import assert_allclose

import herdfilter as hf
from herdfilter.filters import Observation, Particles, Transition
from herdfilter.filters.proposals.lookahead import Ancestors
from herdfilter.filters.proposals.quadratic import linear_observations


@cases(
    "n d k rank width",
    (40, 1, 1, 1, 0.0),
    (40, 3, 2, 1, 0.2),
    (40, 2, 4, 2, 0.0),
    (2000, 4, 3, 4, 0.2),
    (2000, 3, 1, 3, 0.0),
)
def test_a_gaussian_likelihood_guides_as_its_moments_do(n, d, k, rank, width):
    root = np.random.default_rng(1).standard_normal((d, rank))
    model = linear(d, k, seed=d + 10 * k, Q=root @ root.T)
    rng = np.random.default_rng(0)
    particles = Particles(rng.standard_normal((n, d)), np.log(rng.dirichlet(np.ones(n))))
    updates = []
    z = rng.standard_normal(k)
    for known in (model, likelihood_alone(model)):
        transition = Transition(known)
        ancestors = Ancestors.of(transition, particles)
        if width:
            ancestors = Ancestors.kernels(transition, particles, np.zeros(d), np.eye(d), width)
        _, update = ancestors.look_ahead(Observation.read(known, z, 1))
        dim = ancestors.noise_dim
        centre = update.draw(np.zeros(1, dtype=np.int64), np.zeros((1, dim)))[0]
        roots = update.draw(np.zeros(dim, dtype=np.int64), np.eye(dim))[0] - centre
        updates.append(
            (
                update.means,
                roots.T @ roots,
                update.log_dets[update.group],
                np.diff(update.log_densities),
            )
        )
    for by_moments, by_likelihood in zip(*updates, strict=True):
        assert_allclose(by_likelihood, by_moments, rtol=1e-3, atol=1e-3)


def test_the_default_is_the_kalman_filter_where_a_linear_model_has_a_likelihood_alone():
    model = hf.models.linear_chain(2)
    _, z = hf.simulate(model, steps=20, rng=1)
    kalman = hf.ExtendedKalmanFilter(model).run(z)
    result = hf.ParticleFilter(likelihood_alone(model), 50, hf.AutomaticProposal()).run(z)
    assert_same(result, kalman, "means", "covariances", atol=1e-06)


def observed(likelihood, x, noise=0.3):
    d = x.shape[1]
    model = hf.models.LinearGaussian(
        np.eye(d), np.eye(d), noise**2 * np.eye(d), np.eye(d), np.zeros(d), np.eye(d)
    )
    alone = likelihood_alone(model, likelihood)
    ancestors = Ancestors.of(Transition(alone), Particles.equal(x))
    every = np.arange(len(x))
    seen = Observation.read(alone, [0.0], 1)
    return linear_observations(
        seen,
        ancestors,
        x,
        every,
        every,
        ancestors.sigma_successors(every, ancestors.sigma_points[0]),
    )


def test_no_particle_is_promised_more_than_the_largest_likelihood_that_was_met():
    """Far out on the flanks of a logistic log-likelihood the slope would lead on without end; in the middle it is exact."""
    x = np.linspace(-40, 40, 81)[:, None]
    _, residuals, log_peaks = observed(
        lambda z, x, step: -np.logaddexp(3 * x[:, 0], -3 * x[:, 0]), x
    )
    promised = log_peaks - 0.5 * np.log(2 * np.pi)
    assert promised.max() < 1e-9  # log-likelihoods lack their largest
    assert promised[40] == pytest.approx(0)
    assert np.abs(residuals).max() > 1


@cases("name", "auto", "ranked")
def test_a_likelihood_that_is_zero_outside_a_window_is_taken_for_flat_at_its_edge(name):
    """The posterior is uniform in the window, where it is as good as the prior; its variance is 1/3."""
    model = hf.models.LinearGaussian(np.zeros((2, 2)), EYE, 100 * EYE, EYE, np.zeros(2), EYE)
    alone = likelihood_alone(
        model, lambda z, x, step: np.where((np.abs(x - z) < 1).all(axis=1), 0.0, -np.inf)
    )
    pf = hf.make_filter(name, alone, n_particles=20_000, rng=0)
    pf.predict()
    pf.update([0.5, -0.5])
    assert_allclose(pf.mean, [0.5, -0.5], atol=0.15)
    assert_allclose(np.diag(pf.covariance), 1 / 3, rtol=0.15)


def test_the_largest_likelihood_may_lie_between_the_states_that_were_met():
    """As far as the quadratic about the best of them says; a state on the flat, the last, promises nothing more."""
    x = np.array([[1.0], [9.0]])
    _, residuals, log_peaks = observed(lambda z, x, step: -0.5 * np.minimum(x[:, 0] ** 2, 25.0), x)
    # the largest log-likelihood met is -0.5, at the first state
    promised = log_peaks - 0.5 * np.log(2 * np.pi)
    assert_allclose(residuals[:, 0], [-1.0, 0.0], atol=1e-9)
    assert_allclose(promised, [0.5, -12.0], atol=1e-9)
