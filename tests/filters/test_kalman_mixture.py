"""Kalman's update of mixtures, and the proposals that it guides."""

import operator

import numpy as np
import pytest
from helpers import assert_same, in_units, plane, refuses

import herdfilter as hf
from herdfilter.filters import Observation, Particles, Transition
from herdfilter.filters.kalman import kalman_mixture

RULES = ("extended", "unscented", "cubature")
every_rule = pytest.mark.parametrize("rule", RULES)


def mapped():
    return hf.MappedSampling(hf.KernelHerding())


RANDOM = {
    "one per particle": lambda: hf.KalmanMixtureProposal(hf.RandomSampling()),
    "one per particle, no defence": lambda: hf.KalmanMixtureProposal(hf.RandomSampling(), defensive_share=0.0),
    "cubature": lambda: hf.KalmanMixtureProposal(hf.RandomSampling(), "cubature"),
    "guided": hf.GuidedProposal,
    "guided, state and noise": lambda: hf.GuidedAugmentedProposal(hf.GaussianFit(), hf.RandomSampling()),
    "guided, extended": lambda: hf.GuidedProposal("extended"),
}
DETERMINISTIC = {
    "herded": lambda: hf.KalmanMixtureProposal(hf.KernelHerding()),
    "state and noise": lambda: hf.GuidedAugmentedProposal(hf.GaussianFit(), mapped()),
    "automatic": hf.AutomaticProposal,
}
every = pytest.mark.parametrize("proposal", (RANDOM | DETERMINISTIC).values(), ids=list(RANDOM | DETERMINISTIC))


def linear(**changes):
    return plane(**{"R": [[1.0]]} | changes)


def random_mixture(components, d, rng, shared):
    roots = rng.normal(size=(1 if shared else components, d, d))
    covariances = roots @ roots.transpose(0, 2, 1) + 0.1 * np.eye(d)
    return hf.GaussianMixture(
        rng.dirichlet(np.ones(components)), rng.normal(size=(components, d)), covariances[0] if shared else covariances
    )


@every_rule
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("z", [[0.4, -1.0], [np.nan, -1.0]], ids=["whole", "in part"])
def test_the_update_is_the_exact_gaussian_sum_where_the_observation_is_linear(rule, shared, z):
    """Against the conditional of the joint mixture of state and observation (Alspach and Sorenson 1972)."""
    rng = np.random.default_rng(3)
    prior, H, R = random_mixture(6, 3, rng, shared), rng.normal(size=(2, 3)), np.diag([0.3, 0.7])
    model = linear(F=np.eye(3), H=H, Q=np.eye(3), R=R, initial_mean=np.zeros(3), initial_covariance=np.eye(3))
    posterior, log_evidence = kalman_mixture(model, prior, np.array(z), 1, rule)
    kept = np.flatnonzero(~np.isnan(z))
    A = np.vstack([np.eye(3), H[kept]])
    R_joint = np.zeros((len(A), len(A)))
    R_joint[3:, 3:] = R[np.ix_(kept, kept)]
    joint = hf.GaussianMixture(prior.weights, prior.means @ A.T, A @ prior.covariances @ A.T + R_joint)
    seen = np.arange(3, len(A))
    exact = joint.conditional(seen, np.array(z)[kept])
    np.testing.assert_allclose(posterior.weights, exact.weights, rtol=1e-7)
    assert_same(posterior, exact, "means", "covariances", atol=1e-7)
    assert log_evidence == pytest.approx(joint.marginal(seen).log_density(np.array(z)[None, kept])[0])


@every_rule
def test_a_batch_is_updated_as_each_gaussian_alone(rule):
    model, rng = hf.models.BearingsTracking(), np.random.default_rng(4)
    prior, z = random_mixture(5, 4, rng, shared=False), np.array([3.1, -0.4])
    together, log_evidence = kalman_mixture(model, prior, z, 1, rule)
    evidences = []
    for k in range(5):
        one = hf.GaussianMixture([1.0], prior.means[k : k + 1], prior.covariances[k])
        alone, log_density = kalman_mixture(model, one, z, 1, rule)
        np.testing.assert_allclose(
            together.means[k], alone.means[0], rtol=1e-12, atol=1e-12
        )  # terms of the mean are about 1
        np.testing.assert_allclose(together.covariances[k], alone.covariances[0], rtol=1e-9, atol=1e-13)
        evidences.append(prior.weights[k] * np.exp(log_density))
    np.testing.assert_allclose(together.weights, evidences / np.sum(evidences), rtol=1e-10)
    assert log_evidence == pytest.approx(np.log(np.sum(evidences)))


@every
def test_weights_are_exact_where_the_likelihood_is_not_gaussian(proposal):
    """An autoregression whose observation noise is Student's with three degrees of freedom, variance 3."""
    model = hf.models.from_functions(lambda x: 0.9 * x, lambda x: x, [[2.0]], [[3.0]], [0.0], [[2.0]])
    model.log_likelihood = lambda z, x, step: np.log(2 / (np.pi * np.sqrt(3))) - 2 * np.log1p((z[0] - x[:, 0]) ** 2 / 3)
    z = np.array([[3.0], [0.5], [-4.0], [1.0]])
    exact = hf.GridFilter(model, -30.0, 30.0, 1201).run(z)
    results = [hf.ParticleFilter(model, 200, proposal(), rng=seed).run(z) for seed in range(4)]
    assert np.mean([r.log_likelihood for r in results]) == pytest.approx(exact.log_likelihood, abs=0.15)
    np.testing.assert_allclose(np.mean([r.means for r in results], axis=0), exact.means, atol=0.2)


def gaps(model, proposal, n, runs):
    means, log_likelihoods = [], []
    for seed in range(runs):
        _, z = hf.simulate(model, 10, rng=seed)
        exact = hf.ExtendedKalmanFilter(model).run(z)
        result = hf.ParticleFilter(model, n, proposal, rng=0).run(z)
        means.append(result.means - exact.means)
        log_likelihoods.append(abs(result.log_likelihood - exact.log_likelihood))
    return np.sqrt(np.mean(np.square(means))), max(log_likelihoods)


@pytest.mark.parametrize("n", [10, 90])
def test_points_herded_from_the_mixture_are_nearer_to_the_kalman_filter_than_random_ones(n):
    """In groups of six of 30 series, the ratio is 0.17 to 0.35, and the error 0.23 to 0.51 of 1 / sqrt(n)."""
    herded, random = (
        hf.KalmanMixtureProposal(sampling) for sampling in (hf.KernelHerding(hf.bandwidths.Whitened()), hf.RandomSampling())
    )
    error = gaps(linear(), herded, n, 6)[0]
    assert error < 0.5 * gaps(linear(), random, n, 6)[0]
    assert error < 0.55 / np.sqrt(n)


class OneDriver(hf.models.LinearGaussian):
    """Both coordinates are driven by the one noise that the transition takes."""

    noise_dim = 1

    def transition(self, x, noise, dt, control, step):
        return x @ self.F.T + noise @ [[0.5, 0.3]]


DRIVEN = OneDriver(linear().F, linear().H, [[0.25, 0.15], [0.15, 0.09]], [[1.0]], [1.0, -1.0], np.eye(2))


@pytest.mark.parametrize(
    "model", [linear(), linear(Q=[[0.5, 0.0], [0.0, 0.0]]), DRIVEN], ids=["additive", "rank-deficient", "not additive"]
)
def test_mapped_points_of_state_and_noise_are_the_kalman_filter_where_the_model_is_linear(model):
    means, log_likelihood = gaps(model, DETERMINISTIC["state and noise"](), 12, 3)
    assert means < 1e-6
    assert log_likelihood < 1e-6


@every
def test_a_sharp_observation_is_met_with_few_particles(proposal):
    """The observation is a thousand times as precise as the transition, in the first coordinate alone."""
    model = linear(H=[[1.0, 0.0]], R=[[0.5e-3]])
    errors, bootstrap = [], []
    for seed in range(3):
        _, z = hf.simulate(model, 15, rng=seed)
        exact = hf.ExtendedKalmanFilter(model).run(z).means
        guided = hf.ParticleFilter(model, 40, proposal(), rng=seed).run(z)
        errors.append(np.mean((guided.means - exact) ** 2))
        bootstrap.append(np.mean((hf.ParticleFilter(model, 40, rng=seed).run(z).means - exact) ** 2))
    assert np.sqrt(np.mean(errors)) < 0.5 * np.sqrt(np.mean(bootstrap))


def test_guided_weights_do_not_depend_on_the_draw_where_the_observation_is_linear():
    model, rng = linear(), np.random.default_rng(1)
    x, log_weights, z = rng.normal(size=(30, 2)), np.log(rng.dirichlet(np.ones(30))), np.array([0.7])
    S = (model.H @ model.Q @ model.H.T + model.R)[0, 0]
    residuals = z - (x @ model.F.T @ model.H.T)[:, 0]
    expected = log_weights - 0.5 * (residuals**2 / S + np.log(2 * np.pi * S))
    moved = hf.GuidedProposal().propose(Transition(model), Particles(x, log_weights), rng, Observation(model, z, 1))
    np.testing.assert_allclose(moved.log_weights, expected, atol=1e-6)
    assert moved.x.shape == (30, 2)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
@every
def test_units_do_not_matter(proposal, unit):
    plain = linear(R=[[0.1]])
    scaled = in_units(plain, [unit, 1.0])
    z = hf.simulate(plain, 4, rng=9)[1]
    one, other = (hf.ParticleFilter(m, 150, proposal(), rng=4).run(z) for m in (plain, scaled))
    np.testing.assert_allclose(other.means / [unit, 1.0], one.means, atol=0.15)
    assert other.log_likelihood == pytest.approx(one.log_likelihood, abs=0.2)


test_bad_parts_are_named = refuses(
    operator.call,
    (lambda: hf.GuidedProposal("uncented"), "rule: .*unscented"),
    (lambda: hf.KalmanMixtureProposal(hf.RandomSampling(), rule="ukf"), "rule: "),
    (TypeError, lambda: hf.KalmanMixtureProposal(hf.RandomSampling), "sampler: expected an instance"),
    (TypeError, lambda: hf.GuidedAugmentedProposal(hf.GaussianFit, mapped()), "fit: "),
    (
        lambda: hf.KalmanMixtureProposal(hf.RandomSampling(), defensive_share=1.0),
        "defensive_share: expected from 0 to below 1, got 1.0",
    ),
)
