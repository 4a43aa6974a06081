"""Ranked particles with random numbers: no bias in the likelihood, whatever guides them, and hardly any spread."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import LINE, of_inner_noise, plane

import herdfilter as hf
from herdfilter.filters import Observation, Particles, Transition, compiled_loop
from herdfilter.filters.proposals.lookahead import Ancestors

PLANE, WIDE = plane(), hf.models.linear_chain(4)
GUIDED, BLIND = hf.RankedProposal(randomised=True), hf.RankedProposal(guided=False, randomised=True)
SIMULATED = SimpleNamespace(
    dim=2,
    initial=PLANE.initial,
    log_likelihood=PLANE.log_likelihood,
    sample_transition=lambda x, rng, *_: x @ PLANE.F.T + rng.standard_normal(x.shape) @ np.linalg.cholesky(PLANE.Q).T,
)
ALONE = SimpleNamespace(  # a likelihood without mean and covariance of the observation
    dim=2,
    initial=PLANE.initial,
    log_likelihood=PLANE.log_likelihood,
    transition_mean=PLANE.transition_mean,
    transition_covariance=PLANE.transition_covariance,
)
TWO = hf.models.LinearGaussian([[0.9]], [[1.0]], [[1.0]], [[0.5]], [0.0], [[1.0]])
CLUTTERED = hf.models.WithClutter(TWO, 0.8, 0.1)
SCANS = [[[0.4], [3.0]], [], [[-1.0], [1.5]]]
READINGS = [[2.0], [-1.5], None, [1.0]]


def grid(model, wide):
    return hf.GridFilter(model, -wide, wide, 1201)


def ratios(model, exact, z, proposal, n, runs):
    """Estimated likelihoods over that of an exact filter."""
    exact = copy.deepcopy(exact).run(z).log_likelihood
    found = [hf.ParticleFilter(model, n, proposal, rng=seed).run(z).log_likelihood for seed in range(runs)]
    return np.exp(np.array(found) - exact)


ON_LINE, ON_PLANE, IN_WIDE = map(hf.ExtendedKalmanFilter, (LINE, PLANE, WIDE))
UNGM, VOLATILITY = hf.models.UNGM(), hf.models.StochasticVolatility()
STILL, LIVELY = (hf.models.LinearGaussian([[0.9]], [[1.0]], [[q]], [[0.5]], [0.0], [[1.0]]) for q in (0.1, 4.0))
JUMPING = hf.models.JumpMarkov([STILL, LIVELY], [[0.8, 0.2], [0.3, 0.7]])
CASES = {
    "line": (LINE, ON_LINE, READINGS, GUIDED, 16, 250),
    "line, blind": (LINE, ON_LINE, READINGS, BLIND, 16, 250),
    "plane": (PLANE, ON_PLANE, READINGS, GUIDED, 16, 250),
    "plane, blind": (PLANE, ON_PLANE, READINGS, BLIND, 20, 250),
    "plane, no defence": (PLANE, ON_PLANE, READINGS, hf.RankedProposal(defensive_share=0.0, randomised=True), 16, 250),
    "plane, half in defence": (PLANE, ON_PLANE, READINGS, hf.RankedProposal(defensive_share=0.5, randomised=True), 16, 250),
    "plane, random": (PLANE, ON_PLANE, READINGS, hf.RankedProposal(hf.RandomSampling(), randomised=True), 30, 250),
    "four dimensions": (WIDE, IN_WIDE, [[1.0, 2.0, -1.0, 0.0], [2.0, -2.0, 0.0, 1.0]], GUIDED, 20, 250),
    "noise within": (of_inner_noise(PLANE), ON_PLANE, READINGS, GUIDED, 16, 250),
    "shared gains": (PLANE, ON_PLANE, READINGS[:2], GUIDED, 400, 150),
    "a likelihood alone": (ALONE, ON_PLANE, READINGS, GUIDED, 20, 250),
    "a simulation alone": (SIMULATED, ON_PLANE, READINGS, GUIDED, 30, 250),
    "UNGM": (UNGM, grid(UNGM, 60), [[3.0], [0.5], [8.0]], GUIDED, 30, 1000),
    "two particles": (UNGM, grid(UNGM, 60), [[3.0], [8.0]], GUIDED, 2, 900),
    "stochastic volatility": (VOLATILITY, grid(VOLATILITY, 8), [[1.0], [-2.0], [0.1]], GUIDED, 16, 250),
    "scans": (CLUTTERED, grid(CLUTTERED, 25), SCANS, GUIDED, 60, 250),
    "modes": (JUMPING, hf.MixtureKalmanFilter(JUMPING, 64), [[0.5], [3.0], [2.0]], GUIDED, 24, 250),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_mean_of_the_likelihoods_is_the_exact_one(case):
    found = ratios(*case)
    error = found.std() / np.sqrt(len(found))
    assert 0 < error < 0.03
    assert abs(found.mean() - 1) < 4 * error, (found.mean(), error)


@pytest.mark.parametrize(("proposal", "at_most"), [(GUIDED, 0.1), (BLIND, 0.5)], ids=["guided", "blind"])
@pytest.mark.parametrize("model", [LINE, PLANE, UNGM], ids=["line", "plane", "UNGM"])
def test_its_variance_is_a_share_of_that_of_bootstrap(model, proposal, at_most):
    """Geometric mean over series; on one alone it may hang on a step that hardly a particle survives."""

    def variance(proposal, z):
        return np.var([hf.ParticleFilter(model, 60, proposal, rng=seed).run(z).log_likelihood for seed in range(50)])

    series = [hf.simulate(model, 10, rng=seed)[1] for seed in range(4)]
    assert np.mean([np.log(variance(proposal, z) / variance(None, z)) for z in series]) < np.log(at_most)


def test_weights_have_a_bound_where_guidance_is_wrong():
    """Of noise v in a step x + v^3, whose sigma points make it far too narrow: without a share unguided they are huge."""
    model = SimpleNamespace(
        dim=1,
        noise_dim=1,
        initial=hf.GaussianMixture([1.0], [[0.0]], [[1.0]]),
        transition=lambda x, noise, dt, control, step: x + noise**3,
        observation_mean=lambda x, step: x,
        observation_covariance=lambda step: np.eye(1),
        log_likelihood=lambda z, x, step: -0.5 * (z[0] - x[:, 0]) ** 2,
    )
    particles, seen = Particles.equal(np.zeros((2000, 1))), Observation.read(model, [0.0], 1)

    def largest(share):
        proposal = hf.RankedProposal(defensive_share=share, randomised=True)
        moved = proposal.propose(Transition(model), particles, np.random.default_rng(0), copy.copy(seen))
        return np.exp(moved.log_weights + np.log(2000) - seen.log_likelihood(moved.x)).max()

    assert largest(0.1) <= 10.0
    assert largest(0.5) <= 2.0
    assert largest(0.0) > 10.0


def test_the_share_and_no_more_keeps_its_noise(monkeypatch):
    """Each with the same chance, over many draws."""
    kept = []

    def noted(self, chosen, z, unguided, share):
        kept.append(unguided)
        return z, np.zeros(len(z))

    monkeypatch.setattr("herdfilter.filters.proposals.lookahead.NoiseUpdate.draw_mixed", noted)
    particles, rng = Particles.equal(np.zeros((32, 1))), np.random.default_rng(0)
    for _ in range(2000):
        hf.RankedProposal(defensive_share=0.3, randomised=True).propose(
            Transition(LINE), particles, rng, Observation.read(LINE, [1.0], 1)
        )
    counts = np.sum(kept, axis=1)
    assert set(counts) <= {9, 10}  # 0.3 of 32: one number in each of as many intervals
    np.testing.assert_allclose(np.mean(kept, axis=0), 0.3, atol=4 * np.sqrt(0.21 / 2000))


def test_the_mixture_of_guided_and_unguided_noise_is_a_density():
    """The mean of N(0, I) over the mixture is one; and where noise was left it is what `draw` finds for it."""
    rng, n = np.random.default_rng(0), 100_000
    ancestors = Ancestors.of(Transition(PLANE), Particles.equal(rng.standard_normal((3, 2))))
    update = ancestors.look_ahead(Observation.read(PLANE, [3.0], 1))[1]
    chosen, z = rng.integers(3, size=n), rng.standard_normal((n, 2))
    unguided = rng.random(n) < 0.2
    noise, log_ratio = update.draw_mixed(chosen, z, unguided, 0.2)
    ratio = np.exp(log_ratio)
    assert abs(ratio.mean() - 1) < 4 * ratio.std() / np.sqrt(n)
    guided, own = update.draw(chosen, z)
    np.testing.assert_array_equal(noise, np.where(unguided[:, None], z, guided))
    np.testing.assert_allclose(ratio[~unguided], 1 / (0.8 * np.exp(-own[~unguided]) + 0.2), rtol=1e-12)
    again = update.draw_mixed(chosen, guided, np.ones(n, dtype=bool), 0.2)[1]
    np.testing.assert_allclose(again, -np.log(0.8 * np.exp(-own) + 0.2), atol=1e-9)


@pytest.mark.parametrize("proposal", [GUIDED, BLIND], ids=["guided", "blind"])
@pytest.mark.parametrize("model", [PLANE, SIMULATED], ids=["plane", "simulated"])
def test_a_seed_gives_the_same_bits_and_another_one_other_bits(model, proposal):
    one, same, other = (hf.ParticleFilter(model, 50, proposal, rng=seed).run(READINGS) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.means, same.means)
    np.testing.assert_array_equal(one.log_likelihoods, same.log_likelihoods)
    assert (one.means != other.means).all()


def test_without_it_no_random_number_is_drawn_and_the_numbers_are_those_of_the_compiled_loop():
    model, rng = hf.models.BearingsTracking(), np.random.default_rng(5)
    z, before = hf.simulate(model, 60, rng=2)[1], np.random.default_rng(5).bit_generator.state
    fixed, loop = (hf.ParticleFilter(m, 200, hf.RankedProposal(), rng=rng).run(z) for m in (model, model.compiled()))
    assert rng.bit_generator.state == before
    np.testing.assert_allclose(fixed.means, loop.means, rtol=1e-9, atol=1e-9)
    drawn = [hf.ParticleFilter(m, 200, GUIDED, rng=0).run(z) for m in (model, model.compiled())]
    assert not compiled_loop.takes(hf.ParticleFilter(model.compiled(), 200, GUIDED))
    np.testing.assert_allclose(drawn[0].means, drawn[1].means, rtol=1e-9, atol=1e-9)
    assert np.abs(drawn[0].means - fixed.means).max() > 1e-3


def test_a_flag_that_is_none_is_named():
    with pytest.raises(ValueError, match="randomised: expected True or False, got 'yes'"):
        hf.RankedProposal(randomised="yes")
