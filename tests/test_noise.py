"""Noise that nobody told: the exact maximum of a linear model, jumps, what a series cannot tell, bad input."""

import pickle

import numpy as np
import pytest
from helpers import CHAIN, EYE, cases, on_a_line, position_and_speed, refuses
from scipy.optimize import minimize

import herdfilter as hf
from herdfilter.noise import fit_quadratic

WRONG = hf.models.LinearGaussian(CHAIN.F, CHAIN.H, 5.0 * EYE, 0.2 * EYE, np.zeros(2), EYE)


def dense(model, z):
    """Log-density of all entries of z (T, k) that are present, from their joint covariance under a linear model."""
    steps = len(z)
    covariances = [model.initial.covariance]
    for k in range(steps):
        covariances.append(
            model.F @ covariances[-1] @ model.F.T + model.transition_covariance(1.0, k + 1)
        )
    joint = np.zeros((steps, z.shape[1], steps, z.shape[1]))
    for s in range(steps):
        propagated = covariances[s + 1]
        for t in range(s, steps):
            joint[t, :, s] = model.H @ propagated @ model.H.T
            joint[s, :, t] = joint[t, :, s].T
            propagated = model.F @ propagated
        joint[s, :, s] += model.observation_covariance(s + 1)
    present = ~np.isnan(z.ravel())
    joint = joint.reshape(z.size, z.size)[np.ix_(present, present)]
    whitened = np.linalg.solve(np.linalg.cholesky(joint), z.ravel()[present])
    return -0.5 * (whitened @ whitened + np.linalg.slogdet(2 * np.pi * joint)[1])


@cases("what missing", ("scale", False), ("diagonal", True))
def test_a_linear_model_gets_the_exact_maximum(what, missing):
    z = hf.simulate(CHAIN, 60, rng=5)[1]
    if missing:
        z[5:12, 0] = np.nan
        z[20:23] = np.nan
    observations = [None if np.isnan(row).all() else row for row in z]
    fit = hf.fit_noise(WRONG, observations, what)

    def loss(logs):
        factors = np.exp(np.repeat(logs, 4 // len(logs))).reshape(2, 2)
        Q, R = (np.diag(f) @ start for f, start in zip(factors, (WRONG.Q, WRONG.R), strict=True))
        return -dense(hf.models.LinearGaussian(CHAIN.F, CHAIN.H, Q, R, np.zeros(2), EYE), z)

    best = minimize(loss, np.zeros(len(fit.factors)), method="BFGS")
    assert fit.log_likelihood == pytest.approx(-best.fun, rel=1e-6)
    assert dense(fit.model, z) == pytest.approx(fit.log_likelihood, rel=1e-9)
    off = (fit.maximum.theta - best.x) / fit.maximum.standard_errors
    assert off == pytest.approx(np.zeros(len(off)), abs=0.1)
    assert fit.maximum.smooth


def test_a_whole_covariance_is_found():
    """Of positions that are observed almost exactly the steps are known: their covariance is the maximum."""
    true = [[2.0, -1.2], [-1.2, 1.0]]
    model = hf.models.LinearGaussian(EYE, EYE, EYE, 1e-6 * EYE, np.zeros(2), 1e-6 * EYE)
    steps = np.random.default_rng(1).multivariate_normal([0, 0], true, 60)
    fit = hf.fit_noise(model, np.cumsum(steps, axis=0), {"Q": "full"})
    exact = steps.T @ steps / len(steps)
    assert fit.covariances["Q"] == pytest.approx(exact, rel=0.01)
    errors = np.sqrt((exact**2 + np.outer(exact.diagonal(), exact.diagonal())) / len(steps))
    assert fit.standard_errors["Q"] == pytest.approx(errors, rel=0.03)
    assert list(fit.factors) == ["Q[0, 0]", "Q[1, 1]"]
    assert "R" not in fit.covariances


def fall(x, dt):
    return x + dt * np.column_stack([x[:, 1], -9.81 * np.sin(x[:, 0])])


def across(x):
    return np.sin(x[:, 0])


def pendulum(Q, R):
    return hf.models.from_functions(
        fall, across, Q * np.diag([5e-5, 0.01]), [[R]], [1.5, 0.0], 0.1 * EYE
    )


def test_the_noise_of_a_nonlinear_model_lies_within_its_intervals():
    z = hf.simulate(pendulum(1.0, 0.01), 100, rng=1, dt=0.05)[1]
    fit = hf.fit_noise(pendulum(5.0, 0.002), z, n_particles=100, dt=0.05)
    for true, (factor, lower, upper) in zip([0.2, 5.0], fit.factors.values(), strict=True):
        assert lower < true < upper
        assert upper / lower < 100 or factor < 1
    assert not fit.maximum.smooth
    assert fit.maximum.message == "converged"
    # any filter takes the model, also in another process
    model = pickle.loads(pickle.dumps(fit.model))
    for name in ("bootstrap", "ekf"):
        hf.make_filter(name, model, 50, rng=0).run(
            hf.simulate(model, 5, rng=0, dt=0.05)[1], dt=0.05
        )


def test_series_add_their_log_likelihoods():
    z = hf.simulate(on_a_line(0.9), 50, rng=1)[1]
    single = hf.fit_noise(on_a_line(0.9), z)
    pair = hf.fit_noise(on_a_line(0.9), [z, z])
    assert pair.log_likelihood == pytest.approx(2 * single.log_likelihood, rel=1e-6)
    assert pair.maximum.theta == pytest.approx(single.maximum.theta, abs=0.01)
    errors = pair.maximum.standard_errors * np.sqrt(2)
    assert errors == pytest.approx(single.maximum.standard_errors, rel=0.1)


def test_what_a_series_cannot_tell_is_named():
    """A constant in white noise moves too little to be told; of a sensor that never reads, nothing is known."""
    z = np.random.default_rng(3).standard_normal((60, 1))
    fit = hf.fit_noise(on_a_line(), z)
    assert fit.unidentified == ("Q",)
    assert fit.covariances["Q"] < 1e-6
    assert np.isnan(fit.standard_errors["Q"])
    assert fit.covariances["R"] == pytest.approx(z.var(), rel=0.1)
    assert fit.standard_errors["R"] == pytest.approx(z.var() * np.sqrt(2 / 60), rel=0.1)
    assert "unidentified=('Q',)" in repr(fit)
    half = hf.fit_noise(CHAIN, np.column_stack([z, np.full(60, np.nan)]), {"R": "diagonal"})
    assert half.unidentified == ("R[1, 1]",)
    assert half.factors["R[1, 1]"][0] == 1


def position(x):
    return x[:, :1]


def at(place):
    """A sensor that stands somewhere and reads the distance along the line, with its sign."""
    return hf.Sensor(lambda x: x[:, :1] - place, [[2.0]])


def test_sensors_are_fitted_as_the_model_itself():
    model = position_and_speed(0.1 * EYE, 2.0)
    z = hf.simulate(position_and_speed(EYE, 0.5), 40, rng=2)[1]
    own = hf.fit_noise(model, z)
    places = np.linspace(0, 5, len(z))
    readings = [(t, at(p), z[t - 1] - p) for t, p in enumerate(places, 1)]
    fit = hf.fit_noise(model, readings)
    assert fit.log_likelihood == pytest.approx(own.log_likelihood, rel=1e-6)
    assert fit.covariances["sensor 1"] == pytest.approx(own.covariances["R"], rel=0.05)
    fitted = [(t, fit.sensors[sensor], reading) for t, sensor, reading in readings]
    assert hf.UnscentedKalmanFilter(fit.model).run(fitted).log_likelihood == pytest.approx(
        fit.log_likelihood, rel=1e-9
    )


@cases("jump", 0.0, 0.2)
def test_a_quadratic_finds_a_maximum_among_jumps(jump):
    """Correlation 0.8; beyond a line there is no likelihood."""
    covariance = np.array([[0.04, 0.08], [0.08, 0.25]])
    rng = np.random.default_rng(0)

    def f(theta):
        u = theta - [0.5, -0.7]
        rough = jump * rng.standard_normal()
        return -np.inf if theta[0] > 0.9 else -0.5 * u @ np.linalg.solve(covariance, u) + 7 + rough

    found = fit_quadratic(f, np.zeros(2), ["a", "b"])
    error = found.theta - [0.5, -0.7]
    assert error @ np.linalg.solve(covariance, error) < max(0.3 * jump, 1e-12)
    assert found.covariance == pytest.approx(covariance, rel=1e-6 if jump == 0 else 0.4)
    assert found.roughness == pytest.approx(jump, abs=max(0.3 * jump, 1e-6))
    assert found.log_likelihood == pytest.approx(7, abs=max(jump, 1e-6))


def heavy(z, x):
    return -np.log1p((z[0] - x[:, 0]) ** 2)


TAILS = hf.models.from_functions(
    position, position, [[1.0]], [[1.0]], [0.0], [[1.0]], log_likelihood=heavy
)
VARYING = hf.models.from_functions(
    position, position, [[1.0]], lambda x: 1 + x[:, :, None] ** 2, [0.0], [[1.0]]
)
MULTIPLIED = hf.models.from_functions(
    lambda x, noise: x * np.exp(noise), position, None, [[1.0]], [1.0], [[1.0]], noise_dim=1
)
LINE = on_a_line()

test_bad_input_is_named = refuses(
    hf.fit_noise,
    (LINE, [], "observations, what: expected an observation, and Q or R, got none"),
    (LINE, [1.0], {}, "observations, what: expected an observation, and Q or R, got none"),
    (LINE, [1.0], "diag", "what: unknown 'diag'; did you mean 'diagonal'?"),
    (LINE, [1.0], {"S": "scale"}, "observations, what: expected an observation, and Q or R, got"),
    (LINE, [[1.0, 2.0]], r"z: expected shape \(1,\), as observation_mean has, got \(2,\)"),
    (on_a_line(Q=0.0), [1.0], {"Q": "full"}, "Q: expected a positive definite matrix"),
    (LINE, [1.0], "scale", 0, "n_particles: expected an integer of at least 1, got 0"),
    (TypeError, MULTIPLIED, [1.0], "a fit of Q needs transition_mean and transition_covariance"),
    (TypeError, TAILS, [1.0], "a fit of R needs additive Gaussian noise, got a log_likelihood of"),
    (TypeError, VARYING, [1.0], "a fit of R needs observation_covariance.step., the same for all"),
    (TypeError, hf.models.StochasticVolatility(), [1.0], "a fit of R needs observation_mean and"),
    (TypeError, hf.models.WithClutter(LINE, 0.9, 0.01), [[1.0]], "a fit of R needs additive Gauss"),
)
