"""Observation noise whose covariance depends on the state: ``observation_covariance(step, x)``."""

import numpy as np
import pytest
from helpers import model_of, normal, plane

import herdfilter as hf
from herdfilter.filters.kalman.gaussian import update_gaussians
from herdfilter.filters.kalman.rules import OptimalPoints, PointRule, ScaledSigmaPoints, moment_rule
from herdfilter.filters.observation import Observation
from herdfilter.filters.particles import Particles
from herdfilter.filters.transition import Transition

LINEAR = plane(H=[[1.0, 0.5], [0.0, 1.0]], R=[[0.7, 0.2], [0.2, 0.5]])
KALMAN = {
    "extended": hf.ExtendedKalmanFilter,
    "unscented": hf.UnscentedKalmanFilter,
    "cubature": hf.CubatureKalmanFilter,
    "smart sampling": lambda model: hf.SmartSamplingKalmanFilter(model, 20),
    "ensemble": lambda model: hf.EnsembleKalmanFilter(model, 200, rng=0),
    "flow": lambda model: hf.DaumHuangFilter(model, 200, rng=0),
    "flow, each by itself": lambda model: hf.DaumHuangFilter(model, 200, rng=0, local=True),
}


class Spreading:
    """A linear observation with noise of covariance ``R + a b'``, where a and b are linear in the state."""

    dim, initial = 2, LINEAR.initial
    H, R, slopes = np.asarray(LINEAR.H), np.asarray(LINEAR.R), np.array([[0.6, -0.2], [0.1, 0.4]])

    def transition_mean(self, x, dt, control, step):
        return LINEAR.transition_mean(x, dt, control, step)

    def transition_covariance(self, dt, step):
        return LINEAR.transition_covariance(dt, step)

    def observation_mean(self, x, step):
        return x @ self.H.T

    def observation_covariance(self, step, x):
        a = x @ self.slopes.T
        return self.R + a[:, :, None] * a[:, None]

    def expected(self, mean, covariance):
        return self.R + self.slopes @ (np.outer(mean, mean) + covariance) @ self.slopes.T


COUNTS = model_of(  # the log of a rate, which walks, seen through counts: Poisson's variance is the mean
    normal([1.5], 0.3),
    transition_mean=lambda x, dt, control, step: 1.5 + 0.9 * (x - 1.5),
    transition_covariance=lambda dt, step: np.array([[0.05 * dt]]),
    observation_mean=lambda x, step: np.exp(x),
    observation_covariance=lambda step, x: np.exp(x)[:, :, None],
    log_likelihood=lambda z, x, step: z[0] * x[:, 0] - np.exp(x[:, 0]),
    sample_observation=lambda x, rng, step: rng.poisson(np.exp(x)).astype(float),
)


def best_linear(mean, P, H, R, z):
    S = H @ P @ H.T + R
    gain, residual = P @ H.T @ np.linalg.inv(S), z - H @ mean
    log_density = -0.5 * (residual @ np.linalg.solve(S, residual) + np.linalg.slogdet(2 * np.pi * S)[1])
    return mean + gain @ residual, P - gain @ S @ gain.T, log_density


MEANS = np.array([[0.5, 1.0], [-2.0, 0.3], [0.0, 0.0]])
SPREADS = np.array([[[2.0, 0.3], [0.3, 1.0]], [[0.1, 0.0], [0.0, 0.4]], [[1.0, -0.5], [-0.5, 1.0]]])
RULES = {
    "unscented": moment_rule("unscented"),
    "scaled": PointRule(ScaledSigmaPoints(0.1, 2.0, 0.0)),
    "cubature": moment_rule("cubature"),
    "smart sampling": PointRule(OptimalPoints(20)),
    "without a mean of its own": lambda *given: moment_rule("cubature")(*given),
    "extended": moment_rule("extended"),
}


@pytest.mark.parametrize("kept", [[0, 1], [1]], ids=["whole", "part"])
@pytest.mark.parametrize("rule", RULES)
def test_the_update_is_the_best_linear_one(rule, kept):
    """All moments involved are of second degree, which the points have exactly; slopes take the noise at the mean."""
    model, z = Spreading(), np.full(2, np.nan)
    z[kept] = np.array([1.2, -0.4])[kept]
    after = update_gaussians(Observation(model, z, 1), MEANS, SPREADS, RULES[rule])
    for mean, P, *found in zip(MEANS, SPREADS, *after, strict=True):
        R = model.expected(mean, 0.0 * P if rule == "extended" else P)[np.ix_(kept, kept)]
        for value, exact in zip(found, best_linear(mean, P, model.H[kept], R, z[kept]), strict=True):
            np.testing.assert_allclose(value, exact, rtol=1e-6, atol=1e-7)


def test_one_covariance_of_all_gaussians_is_each_ones():
    seen, rule = Observation(Spreading(), np.array([1.2, -0.4]), 1), RULES["unscented"]
    one, each = SPREADS[:1], np.repeat(SPREADS[:1], 3, axis=0)
    for ours, theirs in zip(
        update_gaussians(seen, MEANS, one, rule), update_gaussians(seen, MEANS, each, rule), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_the_ensemble_tends_to_the_best_linear_update():
    model, z = Spreading(), np.array([1.2, -0.4])
    ensemble = hf.EnsembleKalmanFilter(model, 40_000, rng=1)
    ensemble.predict()
    mean, P = LINEAR.F @ LINEAR.initial.mean, LINEAR.F @ LINEAR.initial.covariance @ LINEAR.F.T + LINEAR.Q
    R = model.expected(mean, P)
    np.testing.assert_allclose(ensemble.predicted_observation()[1], model.H @ P @ model.H.T + R, atol=0.08)
    ensemble.update(z)
    exact = best_linear(mean, P, model.H, R, z)
    for value, wanted in zip((ensemble.mean, ensemble.covariance, ensemble.log_likelihood), exact, strict=True):
        np.testing.assert_allclose(value, wanted, atol=0.03)


def test_the_predicted_observation_has_the_expected_noise():
    model = Spreading()
    kalman = hf.UnscentedKalmanFilter(model)
    kalman.predict()
    expected = model.H @ kalman.covariance @ model.H.T + model.expected(kalman.mean, kalman.covariance)
    np.testing.assert_allclose(kalman.predicted_observation()[1], expected, rtol=1e-9)
    model.log_likelihood = lambda z, x, step: -((z[0] - x[:, 0]) ** 2)
    pf = hf.ParticleFilter(model, 50, rng=1, resample_below=0.0)
    pf.run([[0.1]])
    pf.predict()
    expected = model.H @ pf.covariance @ model.H.T + model.expected(pf.mean, pf.covariance)
    np.testing.assert_allclose(pf.predicted_observation()[1], expected, rtol=1e-9)


def test_simulated_noise_has_the_covariance_of_its_state():
    model, states = Spreading(), np.array([[0.0, 0.0], [4.0, -1.0]])
    x = np.repeat(states, 20_000, axis=0)
    drawn = hf.models.contract.sample_observation(model, x, np.random.default_rng(3), 1) - x @ model.H.T
    for state, noise in zip(states, np.split(drawn, 2), strict=True):
        R = model.observation_covariance(1, state[None])[0]
        np.testing.assert_allclose(noise.T @ noise / len(noise), R, atol=0.04 * R.max())


class Fixed:
    """The linear model, whose observation covariance takes the states and does not look at them."""

    def __getattr__(self, name):
        return getattr(LINEAR, name)

    def observation_covariance(self, step, x):
        return np.repeat(LINEAR.observation_covariance(step)[None], len(x), axis=0)


def same_results(make):
    _, observations = hf.simulate(LINEAR, 3, rng=4)
    observations[1, 0] = np.nan
    ours, theirs = make(Fixed()).run(observations), make(LINEAR).run(observations)
    for name in ("means", "covariances", "log_likelihood"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))


@pytest.mark.parametrize("name", KALMAN)
def test_a_constant_is_the_same_either_way(name):
    same_results(KALMAN[name])


def test_a_constant_is_the_same_either_way_for_every_proposal(of_moments):
    same_results(lambda model: hf.ParticleFilter(model, 20, of_moments, rng=5))


def test_a_constant_is_simulated_the_same_either_way():
    for ours, theirs in zip(hf.simulate(Fixed(), 5, rng=6), hf.simulate(LINEAR, 5, rng=6), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-14)  # states up to 3, five steps


TRUTH, SEEN = hf.simulate(COUNTS, 15, rng=7)
EXACT = hf.GridFilter(COUNTS, -3.0, 6.0, 400).run(SEEN)


def test_every_proposal_that_looks_ahead_tends_to_the_posterior_of_counts(observing):
    result = hf.ParticleFilter(COUNTS, 300, observing, rng=8).run(SEEN)
    errors = (result.means - EXACT.means) / np.sqrt(EXACT.covariances[:, :, 0])
    assert np.sqrt(np.mean(errors**2)) < 0.2


@pytest.mark.parametrize("name", KALMAN)
def test_every_filter_without_weights_takes_counts(name):
    result = KALMAN[name](COUNTS).run(SEEN)
    errors = (result.means - EXACT.means) / np.sqrt(EXACT.covariances[:, :, 0])
    assert np.sqrt(np.mean(errors**2)) < 0.5


def test_the_flow_with_weights_is_the_optimal_proposal_where_each_particle_knows_its_noise():
    """On a linear observation the weight is the predicted density of the observation, whatever was drawn."""

    model = model_of(
        normal([0.0, 0.0]),
        transition_mean=lambda x, dt, control, step: x,
        transition_covariance=lambda dt, step: np.diag([0.5, 0.0]),  # the noise's log variance stays what it is
        observation_mean=lambda x, step: x[:, :1],
        observation_covariance=lambda step, x: np.exp(x[:, 1])[:, None, None],
        observation_jacobian=lambda x, step: np.repeat([[[1.0, 0.0]]], len(x), axis=0),
    )
    rng, z = np.random.default_rng(9), np.array([0.7])
    x = rng.normal(size=(30, 2))
    particles = Particles(x, np.full(30, -np.log(30)))
    after = hf.FlowProposal().propose(Transition(model), particles, rng, Observation(model, z, 1))
    S = 0.5 + np.exp(x[:, 1])
    expected = -0.5 * ((z - x[:, 0]) ** 2 / S + np.log(2 * np.pi * S))
    np.testing.assert_allclose(after.log_weights + np.log(30), expected, rtol=1e-9)


WRONG = {
    "one for all": (np.eye(2), r"shape \(\d+, 2, 2\) from the model at step 2, got \(2, 2\)"),
    "one too few": (lambda R: R[1:], r"shape \(\d+, 2, 2\) from the model at step 2, got \(\d+, 2, 2\)"),
    "variances alone": (lambda R: R[:, 0], r"shape \(\d+, 2, 2\) from the model at step 2, got \(\d+, 2\)"),
    "negative": (lambda R: -R, "positive semi-definite matrices, got an eigenvalue of -.* at step 2$"),
    "asymmetric": (lambda R: R + np.eye(2, k=-1), "symmetric matrices, got an asymmetry of .* at step 2$"),
    "NaN": (lambda R: R + np.nan, "finite numbers, got .* at step 2$"),
    "infinite in a row": (lambda R: np.where(np.arange(len(R))[:, None, None], R, np.inf), "finite numbers"),
    "complex": (lambda R: 1j * R, "numbers of shape .*, got complex numbers from the model at step 2$"),
    "None": (lambda R: None, r"shape .*, got \(\)"),
    "too large": (lambda R: 1e301 * R, "variances up to 1e.300, got .*; choose larger units from .* at step 2$"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_named_with_its_step(wrong):
    change, message = WRONG[wrong]

    class Wrong(Spreading):
        def observation_covariance(self, step, x):
            right = super().observation_covariance(step, x)
            return right if step == 1 else change(right) if callable(change) else change

        def log_likelihood(self, z, x, step):
            return -0.5 * ((z - x) ** 2).sum(axis=1)

    uses = [*KALMAN.values(), lambda model: hf.ParticleFilter(model, 20, hf.GuidedProposal(), rng=1)]
    for make in uses:
        with pytest.raises(ValueError, match=f"^observation_covariance: expected .*{message}") as caught:
            make(Wrong()).run([[0.1, 0.2]] * 3)
        assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match=r"^observation_covariance: expected "):
        hf.models.contract.sample_observation(Wrong(), MEANS, np.random.default_rng(1), 2)
