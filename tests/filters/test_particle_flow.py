"""Particle flow: exact where the model is linear; with weights, exact in expectation everywhere."""

from itertools import pairwise

import numpy as np
import pytest
from helpers import cases, fixture_of, linear, model_of, normal, of_inner_noise

import herdfilter as hf
from herdfilter.angles import wrap_angles
from herdfilter.filters import Observation, Particles, Transition
from herdfilter.filters.flow import ExactFlow, pseudo_times

EVERY = {
    "edh": lambda model, n=100: hf.DaumHuangFilter(model, n, rng=0),
    "ledh": lambda model, n=100: hf.DaumHuangFilter(model, n, rng=0, local=True),
    "edh, weighted": lambda model, n=100: hf.ParticleFilter(model, n, hf.FlowProposal(local=False), rng=0),
    "ledh, weighted": lambda model, n=100: hf.ParticleFilter(model, n, hf.FlowProposal(), rng=0),
}


every = fixture_of(EVERY)
local = fixture_of({"edh": False, "ledh": True})


def bearing_and_range(x, step):
    return np.stack([np.hypot(x[:, 0], x[:, 1]), np.arctan2(x[:, 1], x[:, 0])], axis=1)


def range_likelihood(z, x, step):
    residual, variance = wrap_angles(z - bearing_and_range(x, step), (1,)), np.array([0.01, 0.02])
    return -0.5 * (residual**2 / variance + np.log(2 * np.pi * variance)).sum(axis=1)


def slope(x, step):
    r = np.hypot(x[:, 0], x[:, 1])
    return np.stack([x / r[:, None], np.stack([-x[:, 1], x[:, 0]], axis=1) / r[:, None] ** 2], axis=1)


def ranges(**changed):
    """Distances and a direction from the origin, of a slowly drifting place in the plane."""
    functions = {
        "observation_circular": (1,),
        "transition_mean": lambda x, dt, control, step: x,
        "transition_covariance": lambda dt, step: 0.1 * np.eye(2),
        "observation_mean": bearing_and_range,
        "observation_covariance": lambda step: np.diag([0.01, 0.02]),
        "log_likelihood": range_likelihood,
    }
    return model_of(normal([-2.0, 0.3], 0.2), **functions | changed)


@pytest.mark.parametrize("steps", [1, 4, 29])
@pytest.mark.parametrize(("d", "k"), [(1, 1), (3, 2), (2, 4)])
def test_flow_of_a_gaussian_ends_at_its_posterior(d, k, steps):
    """Mean, covariance and determinant in closed form, in any number of steps, from a likelihood sharp or blunt."""
    rng = np.random.default_rng(d)
    root = rng.normal(size=(d, d))
    P, mean, z = root @ root.T, rng.normal(size=d), rng.normal(size=k)
    for scale in (1e-6, 1.0, 1e4):
        model = linear(d, k, R=scale * (np.eye(k) + 0.3))
        flow = ExactFlow(Observation(model, z, 1), pseudo_times(steps))
        offsets = np.concatenate([np.zeros((1, d)), np.eye(d)])
        (centre, moved), log_determinant = flow.migrate(P, (mean, np.zeros((1, d))), (mean, offsets))
        gain = P @ model.H.T @ np.linalg.inv(model.H @ P @ model.H.T + model.R)
        covariance = P - gain @ model.H @ P
        linear_part = (moved[1:] - moved[0]).T
        np.testing.assert_allclose(centre[0], gain @ (z - model.H @ mean), atol=1e-6)
        np.testing.assert_allclose(moved[0], centre[0], atol=1e-12)
        np.testing.assert_allclose(linear_part @ P @ linear_part.T, covariance, atol=1e-6)
        assert log_determinant[0] == pytest.approx(np.linalg.slogdet(linear_part)[1], abs=1e-5)


def euler(model, z, step, times, mean, P, offsets, local):
    """The flow as published, about the origin and by Euler's steps (Ding and Coates 2012, algorithms 1 and 2)."""
    particles, R = mean + offsets, model.observation_covariance(step)
    identity = np.eye(len(mean))
    for start, end in pairwise(times):
        at = particles if local else particles.mean(axis=0, keepdims=True)
        H = model.observation_jacobian(at, step)
        moved = []
        for i, x in enumerate(particles):
            j = i if local else 0
            e = model.observation_mean(at[j : j + 1], step)[0] - H[j] @ at[j]
            A = -0.5 * P @ H[j].T @ np.linalg.inv(end * H[j] @ P @ H[j].T + R) @ H[j]
            pull = (identity + end * A) @ P @ H[j].T @ np.linalg.inv(R) @ (z - e)
            b = (identity + 2 * end * A) @ (pull + A @ mean)
            moved.append(x + (end - start) * (A @ x + b))
        particles = np.array(moved)
    return particles - mean


def test_flow_is_the_limit_of_the_published_steps(local):
    """Where the observation is not linear both tend to the same flow, and Euler's steps at first order."""
    model, P, mean = ranges(observation_jacobian=slope), np.array([[0.2, 0.05], [0.05, 0.1]]), np.array([-2.0, 0.6])
    rng, z = np.random.default_rng(1), np.array([1.8, 2.9])
    offsets = rng.multivariate_normal(np.zeros(2), P, size=6)
    offsets -= offsets.mean(axis=0)

    def ours(steps):
        movers = [(mean, offsets)] if local else [(mean, np.zeros((1, 2))), (mean, offsets)]
        return ExactFlow(Observation(model, z, 1), pseudo_times(steps, ratio=1.2 ** (29 / steps))).migrate(P, *movers)[0][-1]

    limit = ours(1600)
    apart = [
        np.abs(euler(model, z, 1, pseudo_times(s, 1.2 ** (29 / s)), mean, P, offsets, local) - limit).max()
        for s in (100, 200)
    ]
    assert 1.7 < apart[0] / apart[1] < 2.3
    own = [np.abs(ours(s) - limit).max() for s in (29, 116)]
    assert own[1] < own[0] / 3
    assert own[1] < apart[0]


def test_local_and_common_flow_agree_on_a_linear_model():
    model = linear(3, 2)
    _, observations = hf.simulate(model, 20, rng=6)
    for pair in (("edh", "ledh"), ("edh, weighted", "ledh, weighted")):
        first, second = (EVERY[name](model).run(observations) for name in pair)
        np.testing.assert_allclose(first.means, second.means, rtol=0, atol=1e-8)
        assert first.log_likelihood == pytest.approx(second.log_likelihood, abs=1e-8)


@pytest.mark.parametrize("Q", [0.3 * np.eye(3), np.outer([1.0, 2.0, 0.0], [1.0, 2.0, 0.0])], ids=["full", "rank 1"])
def test_weights_are_those_of_the_optimal_proposal_where_the_observation_is_linear(local, Q):
    """They do not depend on what was drawn: w_i N(z; H f(x_i), H Q H' + R) (Doucet, Godsill and Andrieu 2000)."""
    model = linear(3, 2, Q=Q, R=1e-3 * np.eye(2))
    rng = np.random.default_rng(2)
    particles, weights = rng.normal(size=(30, 3)), rng.dirichlet(np.ones(30))
    z = np.array([0.4, -0.3])
    before, seen = Particles.weighted(particles, weights), Observation(model, z, 1)
    log_weights = hf.FlowProposal(local=local).propose(Transition(model), before, rng, seen).log_weights
    predicted = hf.GaussianMixture(np.ones(1), [[0.0, 0.0]], model.H @ Q @ model.H.T + model.R)
    expected = np.log(weights) + predicted.log_density(z - particles @ model.F.T @ model.H.T)
    np.testing.assert_allclose(log_weights, expected, rtol=0, atol=1e-6)


def test_weighted_evidence_is_unbiased_where_nothing_is_linear(local):
    """One step from a known place: the weights average to the integral over a fine grid."""
    model, rng, z = ranges(), np.random.default_rng(3), np.array([1.7, -3.0])
    n, start = 20_000, np.array([-2.0, 0.2])
    particles = np.tile(start, (n, 1))
    before, seen = Particles.equal(particles), Observation(model, z, 1)
    moved = hf.FlowProposal(local, flow_steps=5).propose(Transition(model), before, rng, seen)
    axis = np.linspace(-2.5, 2.5, 801)
    grid = start + np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    prior = hf.GaussianMixture([1.0], [start], model.transition_covariance(1.0, 1))
    density = np.exp(prior.log_density(grid) + model.log_likelihood(z, grid, 1))
    cell = (axis[1] - axis[0]) ** 2
    x, weights = moved.x, moved.weights * n
    assert weights.mean() == pytest.approx(density.sum() * cell, abs=4 * weights.std() / np.sqrt(n))
    assert weights.std() < 0.5 * weights.mean()  # the bootstrap's is about four times its mean
    posterior = density @ grid / density.sum()
    np.testing.assert_allclose(weights @ x / weights.sum(), posterior, atol=0.005)


def test_weighted_form_beats_the_bootstrap_filter_where_the_likelihood_is_sharp():
    model = linear(3, 2, R=1e-4 * np.eye(2))
    _, observations = hf.simulate(model, 30, rng=8)
    exact = hf.ExtendedKalmanFilter(model).run(observations)

    def errors(proposal):
        runs = [hf.ParticleFilter(model, 200, proposal, rng=seed).run(observations) for seed in range(4)]
        mean = np.sqrt(np.mean([(run.means - exact.means) ** 2 for run in runs]))
        return mean, np.mean([abs(run.log_likelihood - exact.log_likelihood) for run in runs])

    guided, blind = errors(hf.FlowProposal(flow_steps=2)), errors(hf.BootstrapProposal())
    assert guided[0] < 0.3 * blind[0]
    assert guided[1] < 0.1 * blind[1]


def test_slopes_by_differences_are_the_model_s(every):
    _, observations = hf.simulate(ranges(), 8, rng=9)
    by_differences, by_model = (every(ranges(**given)).run(observations) for given in ({}, {"observation_jacobian": slope}))
    np.testing.assert_allclose(by_differences.means, by_model.means, rtol=0, atol=1e-6)


def test_flow_takes_noise_inside_the_transition(local):
    model = linear()
    _, observations = hf.simulate(model, 15, rng=11)
    inside, added = (hf.DaumHuangFilter(m, 60, rng=0, local=local).run(observations) for m in (of_inner_noise(model), model))
    np.testing.assert_allclose(inside.means, added.means, rtol=0, atol=1e-8)


@cases(
    "z changed error message",
    ([1.0, 2.0, 3.0], {}, ValueError, r"z: expected shape \(2,\), as observation_(mean|covariance) has, got \(3,\)"),
    ([np.inf, 1.0], {}, ValueError, "z: expected"),
    ([1.0, 2.0], {"observation_jacobian": lambda x, step: np.zeros((len(x), 2, 1))}, ValueError, "jacobian: expected"),
    (
        [1.0, 2.0],
        {"observation_covariance": lambda step: np.diag([0.01, 0.0])},
        hf.IndefiniteCovarianceError,
        "observation's covariance",
    ),
)
def test_bad_input_is_named(every, z, changed, error, message):
    with pytest.raises(error, match=message):
        every(ranges(**changed)).run([z])


@cases(
    "make arguments message",
    (hf.DaumHuangFilter, {"n_particles": 1}, "n_particles: expected an integer of at least 2"),
    (hf.DaumHuangFilter, {"flow_steps": 0}, "flow_steps: expected an integer of at least 1"),
    (hf.DaumHuangFilter, {"kalman": hf.EnsembleKalmanFilter}, "kalman: expected a filter such as UnscentedKalmanFilter"),
    (hf.DaumHuangFilter, {"kalman": "ukf"}, "kalman: expected a filter such as UnscentedKalmanFilter"),
    (hf.FlowProposal, {"flow_steps": 0}, "flow_steps: expected an integer of at least 1, got 0"),
)
def test_options_out_of_range_are_named(make, arguments, message):
    model = {} if make is hf.FlowProposal else {"model": linear()}
    with pytest.raises((TypeError, ValueError), match=message):
        make(**model, **arguments)


def test_slopes_that_are_all_the_same_change_nothing():
    """One decomposition for all against one for each, which central differences need."""
    given, rng = linear(3, 2), np.random.default_rng(5)

    class ByDifferences:
        observation_mean, observation_covariance = given.observation_mean, given.observation_covariance

    P, origins, offsets = np.diag([0.3, 1.0, 2.0]), rng.normal(size=(6, 3)), rng.normal(size=(6, 3))
    seen = Observation(given, np.array([1.0, -2.0]), 1)
    by_differences = Observation(ByDifferences(), seen.z, 1)
    (one,), log_one = ExactFlow(seen, pseudo_times(9)).migrate(P, (origins, offsets))
    (each,), log_each = ExactFlow(by_differences, pseudo_times(9)).migrate(P, (origins, offsets))
    np.testing.assert_allclose(one, each, atol=1e-8)
    np.testing.assert_allclose(log_one, log_each, atol=1e-8)
    assert log_one.shape == (6,)
