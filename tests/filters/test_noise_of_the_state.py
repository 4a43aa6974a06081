"""Observation noise whose covariance depends on the state: ``observation_covariance(step, x)``."""

import numpy as np
from helpers import EYE, assert_same, cases, model_of, normal, plane, refusal
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

import herdfilter as hf
from herdfilter.filters.kalman.gaussian import update_gaussians
from herdfilter.filters.kalman.rules import OptimalPoints, PointRule, ScaledSigmaPoints, moment_rule

LINEAR = plane(H=[[1.0, 0.5], [0.0, 1.0]], R=[[0.7, 0.2], [0.2, 0.5]])
KALMAN = {
    "extended": hf.ExtendedKalmanFilter,
    "unscented": hf.UnscentedKalmanFilter,
    "cubature": hf.CubatureKalmanFilter,
    "smart sampling": lambda model: hf.SmartSamplingKalmanFilter(model, 20),
    "ensemble": lambda model: hf.EnsembleKalmanFilter(model, 200, rng=0),
    "flow, each by itself": lambda model: hf.DaumHuangFilter(model, 200, rng=0, local=True),
}


class Spreading:
    """A linear observation with noise of covariance ``R + a b'``, where a and b are linear in the state."""

    dim = 2
    initial = LINEAR.initial
    H = np.asarray(LINEAR.H)
    R = np.asarray(LINEAR.R)
    slopes = np.array([[0.6, -0.2], [0.1, 0.4]])

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


COUNTS = (
    model_of(  # the log of a rate, which walks, seen through counts: Poisson's variance is the mean
        normal([1.5], 0.3),
        transition_mean=lambda x, dt, control, step: 1.5 + 0.9 * (x - 1.5),
        transition_covariance=lambda dt, step: np.array([[0.05 * dt]]),
        observation_mean=lambda x, step: np.exp(x),
        observation_covariance=lambda step, x: np.exp(x)[:, :, None],
        log_likelihood=lambda z, x, step: z[0] * x[:, 0] - np.exp(x[:, 0]),
        sample_observation=lambda x, rng, step: rng.poisson(np.exp(x)).astype(float),
    )
)


def best_linear(mean, P, H, R, z):
    S = H @ P @ H.T + R
    gain = P @ H.T @ np.linalg.inv(S)
    log_density = multivariate_normal(H @ mean, S).logpdf(z)
    return mean + gain @ (z - H @ mean), P - gain @ S @ gain.T, log_density


MEANS = np.array([[0.5, 1.0], [-2.0, 0.3], [0.0, 0.0]])
SPREADS = np.array([[[2.0, 0.3], [0.3, 1.0]], [[0.1, 0.0], [0.0, 0.4]], [[1.0, -0.5], [-0.5, 1.0]]])
RULES = {
    "unscented": moment_rule("unscented"),
    "scaled": PointRule(ScaledSigmaPoints(0.1, 2.0, 0.0)),
    "cubature": moment_rule("cubature"),
    "smart sampling": PointRule(OptimalPoints(20)),
    "extended": moment_rule("extended"),
}


@cases("rule kept", *zip(RULES, [[0, 1], [1], [0, 1], [1], [1]], strict=True))
def test_the_update_is_the_best_linear_one(rule, kept):
    """All moments involved are of second degree, which the points have exactly; slopes take the noise at the mean."""
    model = Spreading()
    z = np.full(2, np.nan)
    z[kept] = np.array([1.2, -0.4])[kept]
    means, factors, log_densities = update_gaussians(
        hf.Observation(model, z, 1), MEANS, np.linalg.cholesky(SPREADS), RULES[rule]
    )
    for mean, P, *found in zip(
        MEANS, SPREADS, means, factors @ factors.mT, log_densities, strict=True
    ):
        R = model.expected(mean, 0.0 * P if rule == "extended" else P)[np.ix_(kept, kept)]
        for value, exact in zip(
            found, best_linear(mean, P, model.H[kept], R, z[kept]), strict=True
        ):
            assert_allclose(value, exact, rtol=1e-6, atol=1e-7)


def test_the_predicted_observation_has_the_expected_noise():
    model = Spreading()
    model.log_likelihood = lambda z, x, step: -((z[0] - x[:, 0]) ** 2)
    for online in (
        hf.UnscentedKalmanFilter(model),
        hf.ParticleFilter(model, 50, rng=1, resample_below=0.0),
    ):
        online.run([[0.1, 0.2]])
        online.predict()
        expected = model.H @ online.covariance @ model.H.T + model.expected(
            online.mean, online.covariance
        )
        assert_allclose(online.predicted_observation()[1], expected, rtol=1e-9)


class Fixed:
    """The linear model, whose observation covariance takes the states and does not look at them."""

    def __getattr__(self, name):
        return getattr(LINEAR, name)

    def observation_covariance(self, step, x):
        return np.repeat(LINEAR.observation_covariance(step)[None], len(x), axis=0)


def same_results(make, tolerance=1e-14):
    """Some ten sums a step round differently, over three steps: results of order 1 agree to 45 units in the last place."""
    _, observations = hf.simulate(LINEAR, 3, rng=4)
    observations[1, 0] = np.nan
    # the first observation is one of the initial state
    ours, theirs = (make(model).run(observations, dt=[0, 1, 1]) for model in (Fixed(), LINEAR))
    assert_same(
        ours, theirs, "means", "covariances", "log_likelihood", rtol=tolerance, atol=tolerance
    )


@cases("name", *KALMAN)
def test_a_constant_is_the_same_either_way(name):
    same_results(KALMAN[name])


def test_a_constant_is_the_same_either_way_for_every_proposal(of_moments, request):
    """Herding puts the n-th of 20 points at a flat maximum: a rounding moves it n times as far, and later ones with it."""
    tolerance = 1e-12 if "herding" in request.node.name else 1e-14
    same_results(lambda model: hf.ParticleFilter(model, 20, of_moments, rng=5), tolerance)


_, SEEN = hf.simulate(COUNTS, 15, rng=7)
EXACT = hf.GridFilter(COUNTS, -3.0, 6.0, 400).run(SEEN)


def relative_error(online):
    """Root mean square over the series of the error of the mean, in standard deviations of the posterior."""
    errors = (online.run(SEEN).means - EXACT.means) / np.sqrt(EXACT.covariances[:, :, 0])
    return np.sqrt(np.mean(errors**2))


def test_every_proposal_that_looks_ahead_tends_to_the_posterior_of_counts(observing):
    assert relative_error(hf.ParticleFilter(COUNTS, 300, observing, rng=8)) < 0.2


@cases("name", "unscented", "ensemble", "flow, each by itself")
def test_filters_without_weights_take_counts(name):
    assert relative_error(KALMAN[name](COUNTS)) < 0.5


@cases(
    "make", *KALMAN.values(), lambda model: hf.ParticleFilter(model, 20, hf.GuidedProposal(), rng=1)
)
def test_what_is_wrong_is_named_with_its_step(make):
    for change, message in (
        (lambda R: EYE, r"shape \(\d+, 2, 2\) from the model at step 2, got \(2, 2\)"),
        (lambda R: -R, "positive semi-definite matrices, got an eigenvalue of -.* at step 2$"),
        (lambda R: R + np.eye(2, k=-1), "symmetric matrices, got an asymmetry of .* at step 2$"),
        (lambda R: R + np.nan, "finite numbers, got .* at step 2$"),
        (
            lambda R: 1e301 * R,
            "variances up to 1e.300, got .*; choose larger units from .* at step 2$",
        ),
    ):
        model = Spreading()
        right = model.observation_covariance
        model.observation_covariance = lambda step, x, c=change, r=right: (
            r(step, x) if step == 1 else c(r(step, x))
        )
        model.log_likelihood = lambda z, x, step: -0.5 * ((z - x) ** 2).sum(axis=1)
        with refusal(f"^observation_covariance: expected .*{message}"):
            make(model).run([[0.1, 0.2]] * 3)
