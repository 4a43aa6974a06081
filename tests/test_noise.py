"""Noise that nobody told: the exact maximum of a linear model, jumps, what a series cannot tell, bad input."""

import pickle

import numpy as np
import pytest
from helpers import CHAIN, EYE, cases, on_a_line, position_and_speed, refuses
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

import herdfilter as hf
from herdfilter.noise import fit_quadratic


def chain(Q, R):
    return hf.models.LinearGaussian(CHAIN.F, EYE, Q * EYE, R * EYE, np.zeros(2), EYE)


def dense(model, z):
    """Log-density of the entries of z (T, 2) that are not missing, from their joint covariance under a chain."""
    F, steps = model.F, np.eye(len(z))
    noise = np.kron(steps, model.transition_covariance(1.0, 1))
    noise[:2, :2] += F @ F.T
    states = np.linalg.inv(np.eye(z.size) - np.kron(np.eye(len(z), k=-1), F))
    joint = states @ noise @ states.T + np.kron(steps, model.observation_covariance(1))
    present = ~np.isnan(z.ravel())
    return multivariate_normal.logpdf(z.ravel()[present], cov=joint[np.ix_(present, present)])


@cases("what", pytest.param("scale", marks=pytest.mark.slow), "diagonal")
def test_a_linear_model_gets_the_exact_maximum(what):
    z = hf.simulate(CHAIN, 30, rng=5)[1]
    z[5:9, 0] = np.nan
    z[20:22] = np.nan
    fit = hf.fit_noise(chain(5.0, 0.2), [None if np.isnan(row).all() else row for row in z], what)

    def loss(logs):
        Q, R = np.reshape([5.0, 0.2], (2, 1)) * np.exp(logs).reshape(2, -1)
        return -dense(chain(Q, R), z)

    best = minimize(loss, np.zeros(len(fit.factors)), method="BFGS")
    assert fit.log_likelihood == pytest.approx(-best.fun, rel=1e-6)
    assert dense(fit.model, z) == pytest.approx(fit.log_likelihood, rel=1e-9)


@pytest.mark.slow
def test_a_whole_covariance_is_found():
    """Of positions that are observed almost exactly the steps are known: their covariance is the maximum."""
    model = hf.models.LinearGaussian(EYE, EYE, EYE, 1e-6 * EYE, np.zeros(2), 1e-6 * EYE)
    true = [[2.0, -1.2], [-1.2, 1.0]]
    steps = np.random.default_rng(1).multivariate_normal([0, 0], true, 60)
    fit = hf.fit_noise(model, np.cumsum(steps, axis=0), {"Q": "full"})
    exact = steps.T @ steps / 60
    assert fit.covariances["Q"] == pytest.approx(exact, rel=0.01)
    errors = np.sqrt((exact**2 + np.outer(exact.diagonal(), exact.diagonal())) / 60)
    assert fit.standard_errors["Q"] == pytest.approx(errors, rel=0.03)


@pytest.mark.slow
def test_the_noise_of_a_nonlinear_model_lies_within_its_intervals():
    z = hf.simulate(hf.models.UNGM(), 60, rng=1)[1]
    guess = hf.models.UNGM(process_variance=30.0, observation_variance=0.2)
    fit = hf.fit_noise(guess, z, n_particles=100)
    for true, (_, lower, upper) in zip([1 / 3, 5.0], fit.factors.values(), strict=True):
        assert lower < true < upper < 30 * lower
    assert fit.maximum.message == "converged"
    # any filter takes the model, also in another process
    model = pickle.loads(pickle.dumps(fit.model))
    result = hf.make_filter("bootstrap", model, 500, rng=0).run(z)
    assert result.log_likelihood == pytest.approx(fit.log_likelihood, abs=5)


def test_series_add_their_log_likelihoods():
    z = hf.simulate(on_a_line(0.9), 20, rng=1)[1]
    single = hf.fit_noise(on_a_line(0.9), z)
    pair = hf.fit_noise(on_a_line(0.9), [z, z])
    assert pair.log_likelihood == pytest.approx(2 * single.log_likelihood, rel=1e-6)
    errors = np.sqrt(2) * pair.maximum.standard_errors
    assert errors == pytest.approx(single.maximum.standard_errors, rel=0.1)


def test_what_a_series_cannot_tell_is_named():
    """A constant in white noise moves too little to be told; of a sensor that never reads, nothing is known."""
    z = np.random.default_rng(3).standard_normal((60, 1))
    fit = hf.fit_noise(on_a_line(), z)
    assert fit.unidentified == ("Q",)
    assert "unidentified=('Q',)" in repr(fit)
    assert fit.standard_errors["R"] == pytest.approx(z.var() * np.sqrt(2 / 60), rel=0.1)
    half = hf.fit_noise(CHAIN, np.column_stack([z, np.full(60, np.nan)]), {"R": "diagonal"})
    assert half.unidentified == ("R[1, 1]",)


@pytest.mark.slow
def test_a_moving_sensor_is_fitted_as_the_model_itself():
    model = position_and_speed(0.1 * EYE, 2.0)
    z = hf.simulate(position_and_speed(EYE, 0.5), 40, rng=2)[1]
    own = hf.fit_noise(model, z)

    def at(place):
        return hf.Sensor(lambda x: x[:, :1] - place, [[2.0]])

    readings = [(t, at(t / 9), reading - t / 9) for t, reading in enumerate(z, 1)]
    fit = hf.fit_noise(model, readings)
    assert fit.log_likelihood == pytest.approx(own.log_likelihood, rel=1e-6)
    assert fit.sensors[readings[3][1]].covariance == pytest.approx(own.covariances["R"], rel=0.05)


def test_a_quadratic_finds_a_maximum_among_jumps():
    """Correlation 0.8; beyond a line there is no likelihood."""
    covariance = np.array([[0.04, 0.08], [0.08, 0.25]])
    rng = np.random.default_rng(0)

    def f(theta):
        u = theta - [0.5, -0.7]
        value = 7 - 0.5 * u @ np.linalg.solve(covariance, u) + 0.2 * rng.standard_normal()
        return -np.inf if theta[0] > 0.9 else value

    found = fit_quadratic(f, np.zeros(2), ["a", "b"])
    error = found.theta - [0.5, -0.7]
    assert error @ np.linalg.solve(covariance, error) < 0.2
    assert found.covariance == pytest.approx(covariance, rel=0.4)


def flat(x):
    return x


TAILS = hf.models.from_functions(
    flat, flat, [[1.0]], [[1.0]], [0.0], [[1.0]], log_likelihood=lambda z, x: -np.abs(z - x[:, 0])
)
MULTIPLIED = hf.models.from_functions(
    lambda x, noise: x * noise, flat, None, [[1.0]], [1.0], [[1.0]], noise_dim=1
)

test_bad_input_is_named = refuses(
    hf.fit_noise,
    (CHAIN, [], "observations, what: expected an observation, and Q or R, got none"),
    (CHAIN, [EYE[0]], "diag", "what: unknown 'diag'; did you mean 'diagonal'?"),
    (on_a_line(Q=0.0), [1.0], {"Q": "full"}, "Q: expected a positive definite matrix"),
    (TypeError, MULTIPLIED, [1.0], "a fit of Q needs transition_mean and transition_covariance"),
    (TypeError, TAILS, [1.0], "a fit of R needs additive Gaussian noise, got a log_likelihood of"),
)
