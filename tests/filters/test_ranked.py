"""Ranked particles: ancestors at even steps, balanced noise, exact weights."""

import numpy as np
import pytest
from helpers import Simulated, cases, model_of, normal, on_a_line, refusal
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

import herdfilter as hf
from herdfilter.filters import Observation, Particles, Transition
from herdfilter.filters.kalman.rules import UNSCENTED_RULE
from herdfilter.filters.proposals.lookahead import update_noise
from herdfilter.filters.resampling.base import ranked_members
from herdfilter.samplers.balanced import SETS, balanced_noise, hilbert_order


@cases("n dim", (64, 1), (1000, 6))
def test_balanced_noise_has_the_moments_of_a_standard_normal_and_any_run_of_it_is_balanced(n, dim):
    random = default_rng(0).standard_normal((n, dim))
    for turn in range(SETS):
        z = balanced_noise(n, dim, turn)
        assert_allclose(z.mean(axis=0), 0, atol=1e-12)
        assert_allclose(z.T @ z / n, np.eye(dim), atol=1e-12)
        runs, other = (x.reshape(-1, n // 4, dim).mean(axis=1) for x in (z, random))
        assert (runs**2).mean() < 0.5 * (other**2).mean()
    assert not np.array_equal(balanced_noise(n, dim, 0), balanced_noise(n, dim, 1))


@cases("k dim", (1, 3), (2, 3), (3, 2))
def test_guidance_is_kalmans_update_of_the_noise(k, dim):
    """Of a linear observation y = c + H v + r, against the textbook's formulas."""
    rng = default_rng(k)
    H = rng.standard_normal((k, dim))
    R = np.diag(rng.uniform(0.01, 1, k))
    points, weights = UNSCENTED_RULE.points(dim)
    residuals = rng.standard_normal((4, k))
    group = np.array([1, 0, 1, 0])
    seen = np.stack([points @ (2 * H).T, points @ H.T])  # of the two gains the second is tested
    guidance, _ = update_noise(seen, weights, points, residuals, np.stack([2 * R, R]), group)
    S = H @ H.T + R
    assert_allclose(
        guidance.means[::2], residuals[::2] @ np.linalg.solve(S, H), rtol=1e-9, atol=1e-12
    )
    z = rng.standard_normal((5000, dim))
    drawn, log_ratio = guidance.draw(np.full(5000, 2), z)
    covariance = np.eye(dim) - H.T @ np.linalg.solve(S, H)
    factor = np.linalg.lstsq(z, drawn - guidance.means[2], rcond=None)[0].T
    assert_allclose(factor @ factor.T, covariance, atol=1e-9)
    updated = hf.GaussianMixture([1.0], [guidance.means[2]], covariance)
    prior = normal(np.zeros(dim))
    assert_allclose(log_ratio, prior.log_density(drawn) - updated.log_density(drawn), atol=1e-8)
    evidence = hf.GaussianMixture([1.0], [np.zeros(k)], S)
    assert_allclose(guidance.log_densities[::2], evidence.log_density(residuals[::2]), rtol=1e-9)


@cases("k", 1, 2)
def test_the_share_that_will_count_is_predicted_from_sigma_points(k):
    """Of a quadratic observation exactly: by the weights that its values at the points give."""
    rng = default_rng(k)
    dim = 3
    m = 50
    slopes = rng.standard_normal((dim, k))
    bends = 0.3 * rng.standard_normal((dim, k))
    R = np.diag(rng.uniform(0.5, 2, k))

    def seen(noise):
        return noise @ slopes + noise**2 @ bends

    points, weights = UNSCENTED_RULE.points(dim)
    residual = rng.standard_normal(k)
    one = np.zeros(1, dtype=np.int64)
    update, _ = update_noise(seen(points)[None], weights, points, residual[None], R[None], one)
    z = rng.standard_normal((m, dim))
    log_weights = rng.standard_normal(m)
    away = residual - seen(z)
    relative = np.exp(log_weights - 0.5 * (away @ np.linalg.inv(R) * away).sum(axis=1))
    expected = relative.sum() ** 2 / (m * (relative**2).sum())
    assert 1 / m < expected < 1
    assert update.share(z, log_weights) == pytest.approx(expected, rel=1e-9)


def growing(dim):
    """Populations that grow by random factors, within wide bounds; each is counted with a standard deviation of 0.5."""
    return model_of(
        normal(np.full(dim, 5.0), 0.25),
        noise_dim=dim,
        transition=lambda x, noise, dt, control, step: np.clip(
            x * np.exp(np.minimum(0.1 * noise, 700.0)), 0.01, 1e4
        ),
        observation_mean=lambda x, step: x,
        observation_covariance=lambda step: 0.25 * np.eye(dim),
        log_likelihood=lambda z, x, step: -2.0 * ((z - x) ** 2).sum(axis=1),
    )


@cases("proposal dim", (hf.RankedProposal(), 1), (hf.AutomaticProposal(), 2))
def test_a_jump_of_the_truth_throws_no_particles_out_of_reach(dim, proposal):
    """Kalman's update takes the factor for linear in its noise, and overshoots: none may be further off than before."""
    model = growing(dim)
    rng = default_rng(0)
    z = np.where(np.arange(30) < 10, 5.0, 60.0)[:, None] + 0.5 * rng.standard_normal((30, dim))
    result = hf.ParticleFilter(model, 100, proposal).run(z)
    assert np.isfinite(result.log_likelihood)
    assert result.means.max() < 120
    assert np.abs(result.means[-1] - 60).max() < 2


def test_bad_parameters_are_named():
    with refusal("noise_dim: RankedProposal with QuantileSampling expected dimension 1, got 3"):
        hf.ParticleFilter(hf.models.Lorenz63(), 10, hf.RankedProposal(hf.QuantileSampling()))
    weighted = hf.AutomaticProposal(hf.KernelHerding(weights="line-search"))
    with refusal("sampler: expected points of equal weight, got weights from"):
        hf.ParticleFilter(hf.models.linear_chain(2), 10, weighted).run([[0.0, 0.0]])
    with refusal(r"model: expected at most 62 dimensions .*, got 63"):
        hf.ParticleFilter(hf.models.linear_chain(63), 10, hf.RankedProposal())


@cases("share", 0.0, 0.3)
def test_ancestors_have_their_share_of_the_updated_weights_and_of_those_before(share):
    """(1 - a) w' + a w: counted over particles so far apart that each successor tells its ancestor."""
    model = on_a_line(Q=0.01, R=400.0)
    x = 10.0 * np.arange(8.0)[:, None]
    before = default_rng(3).dirichlet(np.full(8, 2.0))
    seen = Observation.read(model, [20.0], 1)
    particles = Particles(x, np.log(before), n_next=4000)
    moved = hf.RankedProposal(defensive_share=share).propose(
        Transition(model), particles, default_rng(0), seen
    )
    counts = np.bincount(np.rint(moved.x[:, 0] / 10).astype(int), minlength=8)
    after = before * np.exp(-0.5 * (20.0 - x[:, 0]) ** 2 / 400.01)
    assert_allclose(
        counts / 4000, (1 - share) * after / after.sum() + share * before, atol=1 / 4000
    )
    posterior = moved.normalised()[0]
    found = np.bincount(np.rint(moved.x[:, 0] / 10).astype(int), posterior.weights, minlength=8)
    assert_allclose(found, after / after.sum(), atol=3 / 4000)


@cases("circular", (), (0,))
def test_ancestors_are_those_of_the_shares_whatever_the_weights_sum_to(circular):
    """Along the curve in a plane, too, whose middle the weights decide; states far from the origin."""
    rng = default_rng(4)
    x = 3.0 + rng.standard_normal((60, 2))
    weights = rng.dirichlet(np.full(60, 0.3))
    expected = ranked_members(x, weights, circular, 200)
    for total in (1e-3, 50.0):
        assert_array_equal(ranked_members(x, total * weights, circular, 200), expected)
    order = hilbert_order(x, weights, circular)
    below = np.cumsum(weights[order])
    assert_array_equal(expected, order[np.searchsorted(below, (np.arange(200) + 0.5) / 200)])


def test_where_a_transition_can_only_be_simulated_weights_are_kept_until_less_than_half_count():
    model = Simulated()
    rng = default_rng(0)
    x = rng.standard_normal((100, model.dim))
    for spread, kept in ((0.5, True), (3.0, False)):
        log_weights = spread * rng.standard_normal(100)
        particles = Particles(x, log_weights - np.logaddexp.reduce(log_weights))
        assert (particles.ess > 50) == kept
        moved = hf.RankedProposal().propose(Transition(model), particles, rng)
        assert np.allclose(moved.log_weights, particles.log_weights if kept else -np.log(100))
