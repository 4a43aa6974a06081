"""Particles with a Kalman filter for the linear part of each: exact where all is linear, and for every proposal."""

import copy

import numpy as np
import pytest
from helpers import EYE, assert_same, cases, refusal
from numpy.testing import assert_allclose, assert_array_equal

import herdfilter as hf

HERDED = hf.MappedSampling(hf.KernelHerding())
PROPOSALS = {
    "bootstrap": hf.BootstrapProposal(),
    "auxiliary": hf.AuxiliaryProposal(),
    "guided": hf.GuidedProposal(),
    "sqmc": hf.SequentialQuasiMonteCarlo(),
    "ranked": hf.RankedProposal(),
    "ranked-herded": hf.RankedProposal(HERDED),
    "auto": hf.AutomaticProposal(),
    "herded": hf.HerdedProposal(hf.KernelHerding()),
    "herded-quantile": hf.HerdedProposal(hf.QuantileSampling()),
    "augmented": hf.AugmentedProposal(hf.GaussianFit(), HERDED),
    "guided-augmented": hf.GuidedAugmentedProposal(hf.GaussianFit(), HERDED),
}
EXACT = {"auto": hf.AutomaticProposal(HERDED), "guided-augmented": PROPOSALS["guided-augmented"]}
"""One Gaussian, points with its moments."""

F = np.array([[0.8, 0.5, 0.2], [0.0, 0.9, 0.3], [0.1, 0.0, 0.7]])
H = np.array([[1.0, 0.0, 0.3], [0.0, 1.0, 0.0]])
Q = 0.1 * np.eye(3) + 0.05
R = np.diag([0.2, 0.5])
PLAIN = hf.models.LinearGaussian(F, H, Q, R, [0.0, 1.0, -1.0], np.eye(3) + 0.3)
LINEAR = hf.models.ConditionallyLinear(PLAIN, [1, 2])
_, Z = hf.simulate(PLAIN, steps=12, rng=3)
KALMAN = hf.ExtendedKalmanFilter(PLAIN).run(Z)


class Curved:
    """The linear part drives an angle and is seen through a slope that depends on it; noises are correlated."""

    dim = 3
    circular = (0,)
    linear = (1, 2)
    partial_observations = True
    initial = hf.GaussianMixture([0.5, 0.5], [[0.0, 0.2, 0.0], [2.5, -0.2, 1.0]], 0.2 * np.eye(3))

    def transition_mean(self, x, dt, control, step):
        turn = x[:, 0] + 0.3 * np.sin(x[:, 0]) + dt * np.cos(x[:, 0]) * x[:, 1]
        return np.column_stack(
            [turn, 0.9 * x[:, 1] + 0.1 * x[:, 2], 0.9 * x[:, 2] + np.sin(x[:, 0])]
        )

    def transition_covariance(self, dt, step):
        return np.array([[0.05, 0.02, 0.0], [0.02, 0.1, 0.0], [0.0, 0.0, 0.05]])

    def observation_mean(self, x, step):
        return np.column_stack([np.sin(x[:, 0]) + x[:, 2], np.cos(x[:, 0]) * x[:, 1]])

    def observation_covariance(self, step):
        return 0.2 * EYE


CURVED = Curved()
SEEN = hf.simulate(CURVED, steps=15, rng=5)[1]


def run(proposal, n=100, model=LINEAR, z=Z, seed=0, **options):
    return hf.ParticleFilter(
        model, n, hf.RaoBlackwellisedProposal(proposal), rng=seed, **options
    ).run(z)


def rms(means, exact):
    return np.sqrt(np.mean((means - exact) ** 2))


@cases("name linear", ("auto", [1, 2]), ("guided-augmented", [2]), ("auto", [0]))
def test_one_gaussian_with_the_right_moments_is_the_kalman_filter(name, linear):
    """Also where steps are missing, in whole or in part."""
    z = Z.copy()
    z[2] = np.nan
    z[5, 0] = np.nan
    z[7, 1] = np.nan
    exact = hf.ExtendedKalmanFilter(PLAIN).run(z)
    result = run(EXACT[name], 60, hf.models.ConditionallyLinear(PLAIN, linear), z)
    assert_same(result, exact, "means", "covariances", atol=1e-08)
    assert result.log_likelihood == pytest.approx(exact.log_likelihood, abs=1e-8)


@cases("name", "auxiliary", "ranked-herded", "herded-quantile", "augmented")
def test_the_error_falls_to_the_kalman_filter_with_the_number_of_particles(name):
    few, many = (
        np.mean([rms(run(PROPOSALS[name], n, seed=k).means, KALMAN.means) for k in range(4)])
        for n in (40, 360)
    )
    assert many < 0.6 * few
    assert many < 0.05


def test_a_part_that_is_known_leaves_the_kalman_filter_exactly():
    """The nonlinear part starts at a point, moves without noise, and turns the matrices of the linear part."""

    def move(x):
        a = x[:, 0]
        return np.column_stack(
            [a + 0.5, np.cos(a) * x[:, 1] + np.sin(a) * x[:, 2], np.cos(a) * x[:, 2] - 0.5]
        )

    noise = np.diag([0.0, 0.1, 0.2])
    start = np.diag([0.0, 1.0, 2.0])
    plain = hf.models.from_functions(
        move, lambda x: np.sin(x[:, :1]) * x[:, 1:2] + x[:, 2:], noise, [[0.3]], [0.2, 1, 0], start
    )
    _, z = hf.simulate(plain, steps=20, rng=1)
    kalman = hf.UnscentedKalmanFilter(plain).run(z)
    for name in ("bootstrap", "ranked", "sqmc"):
        result = run(PROPOSALS[name], 5, hf.models.ConditionallyLinear(plain, [1, 2]), z)
        assert_same(result, kalman, "means", "covariances", atol=1e-08)
        assert result.log_likelihood == pytest.approx(kalman.log_likelihood, abs=1e-8)


@cases("name", "guided", "sqmc")
def test_the_likelihood_has_no_bias(name):
    logs = np.array([run(PROPOSALS[name], 20, z=Z[:5], seed=k).log_likelihood for k in range(60)])
    ratios = np.exp(logs - KALMAN.log_likelihoods[:5].sum())
    assert abs(ratios.mean() - 1) < 4 * ratios.std() / np.sqrt(len(ratios))


@pytest.fixture(scope="module")
def plain():
    """What very many particles for the whole state find."""
    return hf.ParticleFilter(CURVED, 20_000, rng=0).run(SEEN)


@cases("name", "auxiliary", "sqmc", "ranked", "auto")
def test_a_curved_model_agrees_with_many_plain_particles(name, plain):
    """Slopes depend on the state, an angle wraps, the noises are correlated and the prior has two components."""
    exact = plain.means
    sd = np.sqrt(np.diagonal(plain.covariances, axis1=1, axis2=2))
    found = run(PROPOSALS[name], 400, CURVED, SEEN)
    assert rms(found.means[:, 1:] / sd[:, 1:], exact[:, 1:] / sd[:, 1:]) < 0.08
    assert found.log_likelihood == pytest.approx(plain.log_likelihood, abs=0.5)
    spread = np.diagonal(found.covariances, axis1=1, axis2=2)[:, 1:] / sd[:, 1:] ** 2
    assert np.median(spread) == pytest.approx(1, abs=0.1)


@cases("name", "bootstrap", "auto")
def test_several_sensors_at_one_step_update_the_linear_part_in_turn(name):
    """Two sensors with independent noise are one observation of both."""
    first, second = (hf.Sensor(lambda x, i=i: x @ H[i], [[R[i, i]]]) for i in (0, 1))
    exact = hf.ExtendedKalmanFilter(PLAIN)
    pf = hf.ParticleFilter(LINEAR, 1000, hf.RaoBlackwellisedProposal(PROPOSALS[name]), rng=0)
    for z in Z[:4]:
        exact.predict()
        exact.update(z)
        pf.predict()
        pf.update(z[:1], first)
        pf.update(z[1:], second)
    assert_same(pf, exact, "mean", "covariance", atol=0.08)


def test_what_cannot_be_done_is_refused_in_one_line():
    part = hf.RaoBlackwellisedProposal()
    box = copy.copy(CURVED)
    box.initial = hf.models.UniformBox([0, 0, 0], [1, 1, 1])
    for model, message in (
        (PLAIN, "LinearGaussian has no linear: take herdfilter"),
        (hf.models.WithClutter(LINEAR, 0.9, 0.1), "got scans; take the model without WithClutter"),
        (box, r"needs a GaussianMixture, as .*, got UniformBox"),
        (
            hf.models.JumpMarkov([LINEAR, LINEAR], [[0.9, 0.1], [0.1, 0.9]]),
            "needs a model without modes",
        ),
    ):
        with refusal(message, TypeError):
            hf.ParticleFilter(model, 10, part)
    with refusal("got FlowProposal; take RankedProposal", TypeError):
        hf.ParticleFilter(LINEAR, 10, hf.RaoBlackwellisedProposal(hf.FlowProposal()))
    pf = hf.ParticleFilter(
        LINEAR, 10, part, hf.MixtureResampling(hf.GaussianFit(), hf.RandomSampling()), 1.0, rng=0
    )
    with refusal("resampling: expected a scheme that copies particles with their Gaussians"):
        pf.run(Z)


def test_a_state_keeps_the_gaussians_and_a_forecast_knows_of_them():
    """Where all is linear the forecast is Kalman's."""
    one, other = (
        hf.ParticleFilter(LINEAR, 400, hf.RaoBlackwellisedProposal(hf.RankedProposal()))
        for _ in range(2)
    )
    kalman = hf.ExtendedKalmanFilter(PLAIN)
    levels = [0.05, 0.5, 0.95]
    for online in (one, kalman):
        online.run(Z[:6])
    one.predict()
    other.restore(one.state)
    assert_array_equal(other.covariance, one.covariance)
    kalman.predict()
    ahead = other.forecast(3)
    exact = kalman.forecast(3)
    sd = np.sqrt(np.diagonal(exact.observation_covariances, axis1=1, axis2=2))[:, None]
    assert_allclose(ahead.means, exact.means, atol=0.05)
    assert_allclose(ahead.covariances, exact.covariances, atol=0.1)
    assert_allclose(ahead.quantiles(levels), exact.quantiles(levels), atol=0.15)
    assert_allclose(
        (ahead.observation_quantiles(levels) - exact.observation_quantiles(levels)) / sd,
        0,
        atol=0.15,
    )
    assert_allclose(ahead.observations.std(axis=1), sd[:, 0], rtol=0.1)
