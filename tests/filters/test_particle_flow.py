"""Particle flow: exact where the model is linear; with weights, exact in expectation everywhere."""

from itertools import pairwise

import numpy as np
import pytest
from helpers import EYE, cases, fixture_of, linear, model_of, normal, polar, refusal
from numpy.random import default_rng
from numpy.testing import assert_allclose

import herdfilter as hf
from herdfilter.angles import wrap_angles
from herdfilter.filters import Observation, Particles, Transition
from herdfilter.filters.flow import exact_flow, pseudo_times

EVERY = {
    "edh": lambda model, n=100: hf.DaumHuangFilter(model, n, rng=0),
    "ledh": lambda model, n=100: hf.DaumHuangFilter(model, n, rng=0, local=True),
    "edh, weighted": lambda model, n=100: hf.ParticleFilter(
        model, n, hf.FlowProposal(local=False), rng=0
    ),
    "ledh, weighted": lambda model, n=100: hf.ParticleFilter(model, n, hf.FlowProposal(), rng=0),
}


every = fixture_of(EVERY)
local = fixture_of({"edh": False, "ledh": True})


def range_likelihood(z, x, step):
    residual = wrap_angles(z - polar(x), (1,))
    variance = np.array([0.01, 0.02])
    return -0.5 * (residual**2 / variance + np.log(2 * np.pi * variance)).sum(axis=1)


def slope(x, step):
    r = np.hypot(x[:, 0], x[:, 1])
    return np.stack(
        [x / r[:, None], np.stack([-x[:, 1], x[:, 0]], axis=1) / r[:, None] ** 2], axis=1
    )


def ranges(**changed):
    """Distances and a direction from the origin, of a slowly drifting place in the plane."""
    functions = {
        "observation_circular": (1,),
        "transition_mean": lambda x, dt, control, step: x,
        "transition_covariance": lambda dt, step: 0.1 * EYE,
        "observation_mean": lambda x, step: polar(x),
        "observation_covariance": lambda step: np.diag([0.01, 0.02]),
        "log_likelihood": range_likelihood,
    }
    return model_of(normal([-2.0, 0.3], 0.2), **functions | changed)


@cases("d k steps", (1, 1, 4), (3, 2, 1), (2, 4, 29))
def test_flow_of_a_gaussian_ends_at_its_posterior(d, k, steps):
    """Mean, covariance and determinant in closed form, in any number of steps, from a likelihood sharp or blunt."""
    rng = default_rng(d)
    root = rng.normal(size=(d, d))
    P = root @ root.T
    mean = rng.normal(size=d)
    z = rng.normal(size=k)
    for scale in (1e-6, 1.0, 1e4):
        model = linear(d, k, R=scale * (np.eye(k) + 0.3))
        offsets = np.concatenate([np.zeros((1, d)), np.eye(d)])
        (centre, moved), log_determinant = exact_flow(
            Observation(model, z, 1),
            pseudo_times(steps),
            P,
            (mean, np.zeros((1, d))),
            (mean, offsets),
        )
        gain = P @ model.H.T @ np.linalg.inv(model.H @ P @ model.H.T + model.R)
        covariance = P - gain @ model.H @ P
        linear_part = (moved[1:] - moved[0]).T
        assert_allclose(centre[0], gain @ (z - model.H @ mean), atol=1e-6)
        assert_allclose(moved[0], centre[0], atol=1e-12)
        assert_allclose(linear_part @ P @ linear_part.T, covariance, atol=1e-6)
        assert log_determinant[0] == pytest.approx(np.linalg.slogdet(linear_part)[1], abs=1e-5)


def euler(model, z, step, times, mean, P, offsets, local):
    """The flow as published, about the origin and by Euler's steps (Ding and Coates 2012, algorithms 1 and 2)."""
    particles = mean + offsets
    R = model.observation_covariance(step)
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
    model = ranges(observation_jacobian=slope)
    P = np.array([[0.2, 0.05], [0.05, 0.1]])
    mean = np.array([-2.0, 0.6])
    rng = default_rng(1)
    z = np.array([1.8, 2.9])
    offsets = rng.multivariate_normal(np.zeros(2), P, size=6)
    offsets -= offsets.mean(axis=0)

    def ours(steps):
        movers = [(mean, offsets)] if local else [(mean, np.zeros((1, 2))), (mean, offsets)]
        times = pseudo_times(steps, ratio=1.2 ** (29 / steps))
        return exact_flow(Observation(model, z, 1), times, P, *movers)[0][-1]

    limit = ours(1600)
    apart = [
        np.abs(
            euler(model, z, 1, pseudo_times(s, 1.2 ** (29 / s)), mean, P, offsets, local) - limit
        ).max()
        for s in (100, 200)
    ]
    assert 1.7 < apart[0] / apart[1] < 2.3
    own = [np.abs(ours(s) - limit).max() for s in (29, 116)]
    assert own[1] < own[0] / 3
    assert own[1] < apart[0]


def test_weighted_evidence_is_unbiased_where_nothing_is_linear(local):
    """One step from a known place: the weights average to the integral over a fine grid."""
    model = ranges()
    rng = default_rng(3)
    z = np.array([1.7, -3.0])
    n = 20_000
    start = np.array([-2.0, 0.2])
    particles = np.tile(start, (n, 1))
    before = Particles.equal(particles)
    seen = Observation(model, z, 1)
    moved = hf.FlowProposal(local, flow_steps=5).propose(Transition(model), before, rng, seen)
    axis = np.linspace(-2.5, 2.5, 801)
    grid = start + np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    prior = hf.GaussianMixture([1.0], [start], model.transition_covariance(1.0, 1))
    density = np.exp(prior.log_density(grid) + model.log_likelihood(z, grid, 1))
    cell = (axis[1] - axis[0]) ** 2
    x = moved.x
    weights = moved.weights * n
    assert weights.mean() == pytest.approx(density.sum() * cell, abs=4 * weights.std() / np.sqrt(n))
    assert weights.std() < 0.5 * weights.mean()  # the bootstrap's is about four times its mean
    posterior = density @ grid / density.sum()
    assert_allclose(weights @ x / weights.sum(), posterior, atol=0.005)


def test_bad_input_is_named(every):
    for changed, error in (
        ({"observation_jacobian": lambda x, step: np.zeros((len(x), 2, 1))}, ValueError),
        (
            {"observation_covariance": lambda step: np.diag([0.01, 0.0])},
            hf.IndefiniteCovarianceError,
        ),
    ):
        with refusal(r"jacobian: expected|observation's covariance", error):
            every(ranges(**changed)).run([[1.0, 2.0]])
