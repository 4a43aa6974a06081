"""Ranked particles with random numbers: no bias in the likelihood, whatever guides them, and hardly any spread."""

import copy
from types import SimpleNamespace

import numpy as np
from helpers import (
    LINE,
    cases,
    likelihood_alone,
    normal,
    of_inner_noise,
    on_a_line,
    only_simulated,
    plane,
    refusal,
)

import herdfilter as hf

PLANE = plane()
GUIDED = hf.RankedProposal(randomised=True)
BLIND = hf.RankedProposal(guided=False, randomised=True)
TWO = on_a_line(F=0.9, R=0.5)
CLUTTERED = hf.models.WithClutter(TWO, 0.8, 0.1)
SCANS = [[[0.4], [3.0]], [], [[-1.0], [1.5]]]
READINGS = [[2.0], [-1.5], None, [1.0]]


def grid(model, wide):
    return hf.GridFilter(model, -wide, wide, 1201)


def ratios(model, exact, z, proposal, n, runs):
    """Estimated likelihoods over that of an exact filter."""
    exact = copy.deepcopy(exact).run(z).log_likelihood
    found = [
        hf.ParticleFilter(model, n, proposal, rng=seed).run(z).log_likelihood
        for seed in range(runs)
    ]
    return np.exp(np.array(found) - exact)


ON_LINE, ON_PLANE = map(hf.ExtendedKalmanFilter, (LINE, PLANE))
UNGM = hf.models.UNGM()
STILL, LIVELY = (on_a_line(F=0.9, Q=q, R=0.5) for q in (0.1, 4.0))
JUMPING = hf.models.JumpMarkov([STILL, LIVELY], [[0.8, 0.2], [0.3, 0.7]])
CASES = {
    "line": (LINE, ON_LINE, READINGS, GUIDED, 16, 50),
    "plane, blind": (PLANE, ON_PLANE, READINGS, BLIND, 20, 50),
    "plane, half in defence": (
        PLANE,
        ON_PLANE,
        READINGS,
        hf.RankedProposal(defensive_share=0.5, randomised=True),
        16,
        50,
    ),
    "plane, random": (
        PLANE,
        ON_PLANE,
        READINGS,
        hf.RankedProposal(hf.RandomSampling(), randomised=True),
        30,
        50,
    ),
    "noise within": (of_inner_noise(PLANE), ON_PLANE, READINGS, GUIDED, 16, 50),
    "shared gains": (PLANE, ON_PLANE, READINGS[:2], GUIDED, 400, 50),
    "a likelihood alone": (likelihood_alone(PLANE), ON_PLANE, READINGS, GUIDED, 20, 50),
    "a simulation alone": (only_simulated(PLANE), ON_PLANE, READINGS, GUIDED, 30, 80),
    "two particles": (UNGM, grid(UNGM, 60), [[3.0], [8.0]], GUIDED, 2, 500),
    "scans": (CLUTTERED, grid(CLUTTERED, 25), SCANS, GUIDED, 60, 50),
    "modes": (JUMPING, hf.MixtureKalmanFilter(JUMPING, 64), [[0.5], [3.0], [2.0]], GUIDED, 24, 50),
}


@cases("case", *CASES.values(), ids=CASES)
def test_the_mean_of_the_likelihoods_is_the_exact_one(case):
    found = ratios(*case)
    error = found.std() / np.sqrt(len(found))
    assert 0 < error < 0.03
    assert abs(found.mean() - 1) < 4 * error, (found.mean(), error)


@cases(
    "model proposal at_most", (PLANE, GUIDED, 0.1), (LINE, BLIND, 0.5), ids=["plane", "line, blind"]
)
def test_its_variance_is_a_share_of_that_of_bootstrap(model, proposal, at_most):
    """Geometric mean over series; on one alone it may hang on a step that hardly a particle survives."""

    def variance(proposal, z):
        return np.var(
            [
                hf.ParticleFilter(model, 60, proposal, rng=seed).run(z).log_likelihood
                for seed in range(20)
            ]
        )

    series = [hf.simulate(model, 8, rng=seed)[1] for seed in range(3)]
    assert np.mean([np.log(variance(proposal, z) / variance(None, z)) for z in series]) < np.log(
        at_most
    )


def test_weights_have_a_bound_where_guidance_is_wrong():
    """Of noise v in a step x + v^3, whose sigma points make it far too narrow: without a share unguided they are huge."""
    model = SimpleNamespace(
        dim=1,
        noise_dim=1,
        initial=normal([0.0]),
        transition=lambda x, noise, dt, control, step: x + noise**3,
        observation_mean=lambda x, step: x,
        observation_covariance=lambda step: np.eye(1),
        log_likelihood=lambda z, x, step: -0.5 * (z[0] - x[:, 0]) ** 2,
    )
    particles = hf.Particles.equal(np.zeros((2000, 1)))
    seen = hf.Observation.read(model, [0.0], 1)

    def largest(share):
        proposal = hf.RankedProposal(defensive_share=share, randomised=True)
        moved = proposal.propose(
            hf.Transition(model), particles, np.random.default_rng(0), copy.copy(seen)
        )
        return np.exp(moved.log_weights + np.log(2000) - seen.log_likelihood(moved.x)).max()

    assert largest(0.1) <= 10.0
    assert largest(0.5) <= 2.0
    assert largest(0.0) > 10.0


def test_a_flag_that_is_none_is_named():
    with refusal("randomised: expected True or False, got 'yes'"):
        hf.RankedProposal(randomised="yes")
