"""Every model, run through the contract that filters rely on."""

import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from helpers import assert_jacobian, cases, refusal
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from herdfilter.models import (
    UNGM,
    BallisticReentry,
    BearingsOnly,
    BearingsTracking,
    CirclingRange,
    ConstantVelocity,
    CoordinatedTurn,
    DoubleWell,
    LandmarkLocalisation,
    LinearGaussian,
    Lorenz63,
    Lorenz96,
    RadarTracking,
    RangeOnly,
    RangeTracking,
    StochasticVolatility,
)
from herdfilter.models.contract import circular_dims, wrap_angles
from herdfilter.models.resolved import Measurement, Motion, Transition


@dataclass
class Case:
    model: Any
    dt: float = 1.0
    control: Any = None
    angles: tuple = ()  # of an observation


CASES = {
    "ungm": Case(UNGM()),
    "bearings": Case(BearingsTracking(), dt=0.3, angles=(0, 1)),
    "lorenz63": Case(Lorenz63(), dt=0.25),
    "linear gaussian": Case(
        LinearGaussian(
            F=[[0.9, 0.2], [-0.2, 0.9]],
            H=[[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]],
            Q=[[1.0, 0.3], [0.3, 0.5]],
            R=[[1.0, 0.2, 0.0], [0.2, 2.0, 0.1], [0.0, 0.1, 0.5]],
            initial_mean=[1.0, -1.0],
            initial_covariance=[[2.0, 0.5], [0.5, 1.0]],
        )
    ),
    "lorenz96": Case(Lorenz96(), dt=0.05),
    "landmarks": Case(LandmarkLocalisation(), dt=0.5, control=[1.0, 0.3], angles=(1, 3, 5)),
    "radar": Case(RadarTracking(radar=[30.0, -20.0, 5.0]), dt=0.5, angles=(1, 2)),
    "range only": Case(RangeOnly([[0, 0], [20, 0], [5, 15]]), dt=0.5, control=[0.4, -0.1, 0.2]),
    "bearings only": Case(BearingsOnly(), dt=1.5, angles=(0,)),
    "constant velocity": Case(
        ConstantVelocity(0.3, 2.0, [1.0, -2.0, 3.0, 0.5], np.diag([4.0, 1.0, 2.0, 0.5])), dt=1.7
    ),
    "coordinated turn": Case(CoordinatedTurn(), dt=1.5, angles=(1,)),
    "re-entry": Case(BallisticReentry(), dt=0.3, angles=(1,)),
    "stochastic volatility": Case(StochasticVolatility()),
    "double well": Case(DoubleWell(observed_every=1), dt=0.2),
    "ranges": Case(RangeTracking(sensors=[[-1, 0], [1, 0], [0, 2]]), dt=0.7),
    "circling": Case(CirclingRange(range_sd=0.2)),
}

ADDITIVE = [name for name, case in CASES.items() if hasattr(case.model, "observation_mean")]


@pytest.fixture(params=CASES, ids=list(CASES))
def case(request):
    return CASES[request.param]


def drawn(model):
    return Motion(model).sample_initial(50, default_rng(3))


states = pytest.fixture(lambda case: drawn(case.model))


def observe(case, x, step=1, seed=4):
    return Measurement(case.model).sample(x, default_rng(seed), step)


def test_states_and_transitions_are_as_documented_and_pickled(case, states):
    assert states.shape == (50, case.model.dim)
    assert np.isfinite(states).all()
    moved = case.model.transition_mean(states, case.dt, case.control, 1)
    Q = case.model.transition_covariance(case.dt, 1)
    assert moved.shape == states.shape
    assert Q.shape == (case.model.dim, case.model.dim)
    assert_array_equal(Q, Q.T)
    pickled = pickle.loads(pickle.dumps(case.model))
    assert_array_equal(pickled.transition_mean(states, case.dt, case.control, 1), moved)


def test_each_state_is_treated_alone(case, states):
    """A particle's successor and likelihood do not depend on the particles beside it, and it is left as it was."""
    z = observe(case, states[:1])[0]
    before = states.copy()
    together = case.model.transition_mean(states, case.dt, case.control, 2)
    likelihoods = case.model.log_likelihood(z, states, 2)
    assert likelihoods.shape == (50,)
    assert np.isfinite(likelihoods).all()
    for i in (0, 17, 49):
        one = states[i : i + 1]
        assert_allclose(
            case.model.transition_mean(one, case.dt, case.control, 2)[0], together[i], rtol=1e-13
        )
        alone = case.model.log_likelihood(z, one, 2)
        # a narrow likelihood tells a state from one that differs in the last places
        near = case.model.log_likelihood(z, one * (1 + 2.0**-40 * np.eye(one.shape[1])), 2)
        units = 2.0**-52 * 2.0**40 * np.abs(near - alone).sum()
        assert_allclose(alone, likelihoods[i : i + 1], rtol=1e-12, atol=4 * units)
    transition = Transition(case.model, case.dt, case.control, 1)
    transition.propagate(states, np.zeros((len(states), transition.noise_dim)))
    assert_array_equal(states, before)
    with refusal(rf"z: expected shape \({len(z)},\), got \({len(z) + 1},\)"):
        case.model.log_likelihood(np.append(z, 0.0), states, 1)


@cases(
    "name", *[name for name, case in CASES.items() if hasattr(case.model, "observation_jacobian")]
)
def test_jacobians_are_the_derivatives(name):
    """At states drawn at step 0, without the few whose difference passes the jump of an angle."""
    case = CASES[name]
    model = case.model
    x = drawn(case.model)
    scale = np.sqrt(np.diagonal(np.cov(x.T).reshape(model.dim, model.dim)))
    # rounding is in proportion to the state, not to its spread
    scale = np.maximum(scale, 1e-3 * np.abs(x).max(axis=0))
    scale = np.where(scale > 0, scale, 1.0)
    seen = model.observation_mean(x, 1)
    angles = list(getattr(model, "observation_circular", ()))
    x = x[(np.abs(seen[:, angles]) < 3.1).all(axis=1)]
    assert len(x) > 10
    assert_jacobian(
        lambda x: model.observation_jacobian(x, 1), lambda x: model.observation_mean(x, 1), x, scale
    )
    if hasattr(model, "transition_jacobian"):
        assert_jacobian(
            lambda x: model.transition_jacobian(x, case.dt, case.control, 1),
            lambda x: model.transition_mean(x, case.dt, case.control, 1),
            x,
            scale,
        )


def assert_standard(z):
    """Draws (d, n) have the mean and the covariance of a standard normal, to 4.5 standard errors."""
    d, n = z.shape
    assert np.abs(z.mean(axis=1)).max() < 4.5 / np.sqrt(n)
    assert np.abs(z @ z.T / n - np.eye(d)).max() < 4.5 * np.sqrt(2 / n)


def test_simulated_transitions_have_the_stated_mean_and_covariance(case, states):
    n = 10_000
    x = np.repeat(states[:1], n, axis=0)
    noise = default_rng(5).standard_normal((n, Motion(case.model).noise_dim))
    moved = Transition(case.model, case.dt, case.control, 3).propagate(x, noise)
    mean = case.model.transition_mean(states[:1], case.dt, case.control, 3)[0]
    Q = case.model.transition_covariance(case.dt, 3)
    offset = wrap_angles(moved - mean, circular_dims(case.model))
    sd = np.where(np.diag(Q) > 0, np.sqrt(np.diag(Q)), 1.0)
    values, vectors = np.linalg.eigh(Q / np.outer(sd, sd))
    noisy = values > 1e-9  # the other directions have no noise
    along = (offset / sd) @ vectors
    assert_allclose(along[:, ~noisy], 0, atol=1e-6)
    whitened = (along[:, noisy] / np.sqrt(values[noisy])).T
    assert_standard(whitened)


@cases("case", "linear gaussian", "radar", "double well", indirect=True)
def test_observations_have_the_stated_mean_and_covariance(case, states):
    n = 10_000
    z = observe(case, np.repeat(states[:1], n, axis=0))
    R = case.model.observation_covariance(1)
    offset = z - case.model.observation_mean(states[:1], 1)
    whitened = np.linalg.solve(np.linalg.cholesky(R), offset.T)
    assert_standard(whitened)


@cases("case", *ADDITIVE, ids=list(ADDITIVE), indirect=True)
def test_likelihood_is_the_gaussian_density_of_wrapped_residuals(case, states):
    """Angles a full turn on are the same; a part of an observation has the marginal of its density."""
    model = case.model
    R = np.atleast_2d(model.observation_covariance(1))
    means = model.observation_mean(states, 1)
    turns = np.zeros(len(R))
    turns[list(case.angles)] = 2 * np.pi
    assert tuple(getattr(model, "observation_circular", ())) == case.angles
    for z in (observe(case, states[:1])[0] + turn * turns for turn in (-1, 0, 1)):
        residuals = wrap_angles(z - means, np.flatnonzero(turns))
        parts = [list(range(len(R)))]
        if getattr(model, "partial_observations", False):
            parts += [[i] for i in range(len(R))]
        for part in parts:
            expected = stats.multivariate_normal(cov=R[np.ix_(part, part)]).logpdf(
                residuals[:, part]
            )
            given = np.where(np.isin(np.arange(len(R)), part), z, np.nan)
            assert_allclose(model.log_likelihood(given, states, 1), expected, rtol=1e-8)


@cases("name", "constant velocity", "coordinated turn", "double well", "landmarks")
def test_two_short_steps_are_one_long_one(name):
    case = CASES[name]
    model = case.model
    states = drawn(case.model)
    both = model.transition_mean(states, 0.5, case.control, 1)
    second = model.transition_mean(
        model.transition_mean(states, 0.2, case.control, 1), 0.3, case.control, 2
    )
    assert_allclose(second, both, rtol=1e-11, atol=1e-12 * np.abs(both).max())
