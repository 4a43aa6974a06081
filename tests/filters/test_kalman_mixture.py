"""Kalman's update of mixtures, and the proposals that it guides."""

import numpy as np
import pytest
from helpers import EYE, assert_same, cases, plane
from numpy.testing import assert_allclose

import herdfilter as hf
from herdfilter.filters.kalman import kalman_mixture
from herdfilter.testing import random_mixture


def mapped():
    return hf.MappedSampling(hf.KernelHerding())


RANDOM = {
    "one per particle": lambda: hf.KalmanMixtureProposal(hf.RandomSampling()),
    "no defence, cubature": lambda: hf.KalmanMixtureProposal(hf.RandomSampling(), "cubature", 0.0),
    "guided, extended": lambda: hf.GuidedProposal("extended"),
}
DETERMINISTIC = {
    "herded": lambda: hf.KalmanMixtureProposal(hf.KernelHerding()),
    "state and noise": lambda: hf.GuidedAugmentedProposal(hf.GaussianFit(), mapped()),
    "automatic": hf.AutomaticProposal,
}
every = cases("proposal", *(RANDOM | DETERMINISTIC).values(), ids=list(RANDOM | DETERMINISTIC))


def linear(**changes):
    return plane(**{"R": [[1.0]]} | changes)


@cases("rule shared", ("extended", True), ("unscented", False), ("cubature", True))
def test_the_update_is_the_exact_gaussian_sum_where_the_observation_is_linear(rule, shared):
    """Against the conditional of the joint mixture of state and observation (Alspach and Sorenson 1972)."""
    rng = np.random.default_rng(3)
    prior = random_mixture(3, 3, 6)
    if shared:
        prior = hf.GaussianMixture(prior.weights, prior.means, prior.covariances[0])
    H = rng.normal(size=(2, 3))
    R = np.diag([0.3, 0.7])
    model = linear(
        F=np.eye(3), H=H, Q=np.eye(3), R=R, initial_mean=np.zeros(3), initial_covariance=np.eye(3)
    )
    for z, kept in ([0.4, -1.0], [0, 1]), ([np.nan, -1.0], [1]):
        posterior, log_evidence = kalman_mixture(
            hf.Observation.read(model, z, 1, True), prior, rule
        )
        A = np.vstack([np.eye(3), H[kept]])
        noise = np.diag([0, 0, 0, *np.diag(R)[kept]])
        joint = hf.GaussianMixture(
            prior.weights, prior.means @ A.T, A @ prior.covariances @ A.T + noise
        )
        seen = np.arange(3, len(A))
        z = np.array(z)[kept]
        exact = joint.conditional(seen, z)
        assert_allclose(posterior.weights, exact.weights, rtol=1e-7)
        assert_same(posterior, exact, "means", "covariances", atol=1e-7)
        assert log_evidence == pytest.approx(joint.marginal(seen).log_density(z[None])[0])


@every
def test_weights_are_exact_where_the_likelihood_is_not_gaussian(proposal):
    """An autoregression whose observation noise is Student's with three degrees of freedom, variance 3."""
    model = hf.models.from_functions(
        lambda x: 0.9 * x, lambda x: x, [[2.0]], [[3.0]], [0.0], [[2.0]]
    )
    model.log_likelihood = lambda z, x, step: (
        np.log(2 / (np.pi * np.sqrt(3))) - 2 * np.log1p((z[0] - x[:, 0]) ** 2 / 3)
    )
    z = np.array([[3.0], [0.5], [-4.0], [1.0]])
    exact = hf.GridFilter(model, -30.0, 30.0, 1201).run(z)
    results = [hf.ParticleFilter(model, 200, proposal(), rng=seed).run(z) for seed in range(4)]
    assert np.mean([r.log_likelihood for r in results]) == pytest.approx(
        exact.log_likelihood, abs=0.15
    )
    assert_allclose(np.mean([r.means for r in results], axis=0), exact.means, atol=0.2)


class OneDriver(hf.models.LinearGaussian):
    """Both coordinates are driven by the one noise that the transition takes."""

    noise_dim = 1

    def transition(self, x, noise, dt, control, step):
        return x @ self.F.T + noise @ [[0.5, 0.3]]


DRIVEN = OneDriver(linear().F, linear().H, [[0.25, 0.15], [0.15, 0.09]], [[1.0]], [1.0, -1.0], EYE)


@cases(
    "model",
    linear(),
    linear(Q=[[0.5, 0.0], [0.0, 0.0]]),
    DRIVEN,
    ids=["additive", "rank-deficient", "not additive"],
)
def test_mapped_points_of_state_and_noise_are_the_kalman_filter_where_the_model_is_linear(model):
    _, z = hf.simulate(model, 10, rng=0)
    exact = hf.ExtendedKalmanFilter(model).run(z)
    result = hf.ParticleFilter(model, 12, DETERMINISTIC["state and noise"](), rng=0).run(z)
    assert_allclose(result.means, exact.means, atol=1e-6)
    assert result.log_likelihood == pytest.approx(exact.log_likelihood, abs=1e-6)


def test_guided_weights_do_not_depend_on_the_draw_where_the_observation_is_linear():
    model = linear()
    rng = np.random.default_rng(1)
    x = rng.normal(size=(30, 2))
    log_weights = np.log(rng.dirichlet(np.ones(30)))
    z = np.array([0.7])
    S = (model.H @ model.Q @ model.H.T + model.R)[0, 0]
    residuals = z - (x @ model.F.T @ model.H.T)[:, 0]
    expected = log_weights - 0.5 * (residuals**2 / S + np.log(2 * np.pi * S))
    moved = hf.GuidedProposal().propose(
        hf.Transition(model), hf.Particles(x, log_weights), rng, hf.Observation(model, z, 1)
    )
    assert_allclose(moved.log_weights, expected, atol=1e-6)
    assert moved.x.shape == (30, 2)
