"""The posterior Cramer-Rao bound: exact where the Kalman filter is, below every filter elsewhere."""

import dataclasses

import numpy as np
import pytest
from helpers import Walk, WithJacobians, cases, refuses
from numpy.random import default_rng
from numpy.testing import assert_allclose

import herdfilter as hf
from herdfilter.models import UNGM, BearingsTracking, LinearGaussian, UniformBox
from herdfilter.study import posterior_cramer_rao_bound
from herdfilter.study.bounds import _initial_bound

SMOOTH = LinearGaussian(
    F=[[1.0, 0.3], [-0.2, 0.9]],
    H=[[1.0, 0.5]],
    Q=[[0.4, 0.1], [0.1, 0.3]],
    R=[[0.7]],
    initial_mean=[0.0, 1.0],
    initial_covariance=[[2.0, 0.3], [0.3, 1.0]],
)


@cases(
    "model",
    SMOOTH,
    dataclasses.replace(SMOOTH, Q=[[0.0, 0.0], [0.0, 0.5]]),
    dataclasses.replace(SMOOTH, Q=np.zeros((2, 2)), F=[[1.0, 0.0], [0.0, 0.0]]),
    ids=["plane", "noise in one direction", "no noise, singular transition"],
)
def test_it_is_the_kalman_filters_covariance(model):
    _, observations = hf.simulate(model, 12, 0)
    exact = hf.ExtendedKalmanFilter(model).run(observations).covariances
    bound = posterior_cramer_rao_bound(model, 12, runs=3, rng=0)
    assert_allclose(bound, exact, atol=1e-8)


def published(mean, variance, Q, transition, slope, information):
    """Information form of Tichavsky and others, eq. 21 to 25, with derivatives by hand and truths of its own."""
    rng = default_rng(5)
    J = 1 / variance
    bounds = []
    x = mean + np.sqrt(variance) * rng.standard_normal(200000)
    for step in range(1, 7):
        F = slope(x)
        x = transition(x, step) + np.sqrt(Q) * rng.standard_normal(len(x))
        D11 = (F**2).mean() / Q
        D12 = -F.mean() / Q
        D22 = 1 / Q + information(x)
        J = D22 - D12**2 / (J + D11)
        bounds.append(1 / J)
    return bounds


def test_ungm_by_the_published_recursion():
    expected = published(
        0.0,
        5.0,
        10.0,
        lambda x, step: 0.5 * x + 25 * x / (1 + x**2) + 8 * np.cos(1.2 * step),
        lambda x: 0.5 + 25 * (1 - x**2) / (1 + x**2) ** 2,
        lambda x: (x**2).mean() / 100,
    )
    for model in (UNGM(), WithJacobians()):
        bound = posterior_cramer_rao_bound(model, 6, runs=20000, rng=1)
        assert_allclose(bound[:, 0, 0], expected, rtol=0.05)


def test_no_filter_on_bearings_is_below():
    model = BearingsTracking(initial_covariance=np.diag([0.1, 0.1, 0.5, 0.5]))
    bound = posterior_cramer_rao_bound(model, 15, dt=0.1, runs=2000, rng=0)
    lowest = (bound[:, 0, 0] + bound[:, 1, 1]).mean()
    squared = []
    for seed in range(40):
        truth, observations = hf.simulate(model, 15, seed, dt=0.1)
        errors = hf.ParticleFilter(model, 300, rng=0).run(observations, dt=0.1).means - truth
        squared.append((errors[:, :2] ** 2).sum(axis=1).mean())
    assert np.mean(squared) + 3 * np.std(squared) / np.sqrt(40) > lowest
    assert lowest > 0.04 * np.mean(squared)  # it says something


test_bad_input_is_named = refuses(
    lambda name, value: posterior_cramer_rao_bound(
        Walk(transition_mean=UNGM().transition_mean, **{name: value}), 3, rng=0
    ),
    (
        TypeError,
        "initial",
        UniformBox([-1.0], [1.0]),
        "initial: expected a GaussianMixture.*, got UniformBox",
    ),
    (
        "transition_covariance",
        lambda dt, step: np.zeros((1, 1)),
        "transition_covariance: expected noise in every direction",
    ),
    (
        "observation_covariance",
        lambda step: np.zeros((1, 1)),
        "observation_covariance: expected a positive definite matrix at step 1",
    ),
)


def test_information_of_overlapping_components_is_the_integral_over_their_density():
    """The mean of the squared score, (d log p / dx)^2, by quadrature; in two dimensions of a product."""
    weights = np.array([0.3, 0.7])
    means = np.array([-1.0, 1.5])
    sds = np.array([0.8, 1.3])
    x = np.linspace(-12, 14, 20001)
    parts = weights * np.exp(-0.5 * ((x[:, None] - means) / sds) ** 2) / (sds * np.sqrt(2 * np.pi))
    density = parts.sum(axis=1)
    slope = (parts * (means - x[:, None]) / sds**2).sum(axis=1)
    expected = (slope**2 / density).sum() * (x[1] - x[0])
    mixture = hf.GaussianMixture(weights, means[:, None], (sds**2)[:, None, None])
    draws = mixture.sample(40000, default_rng(1))
    assert 1 / _initial_bound(mixture, draws)[0, 0] == pytest.approx(expected, rel=0.03)
    plane = hf.GaussianMixture(
        weights, np.column_stack([means, [0, 0]]), [np.diag([s**2, 4.0]) for s in sds]
    )
    bound = _initial_bound(plane, plane.sample(40000, default_rng(2)))
    assert_allclose(bound, np.diag([1 / expected, 4.0]), rtol=0.03, atol=0.1)


def test_noise_in_directions_that_no_axis_has_bounds_as_much_as_along_one():
    """A rotation and units of the state rotate and scale the bound; Q is singular, and f bends within its range."""

    def bent(angle, unit):
        c = np.cos(angle)
        s = np.sin(angle)
        to = np.array([[c, -s], [s, c]]) * unit
        back = np.linalg.inv(to)

        def f(x):
            y = x @ back.T
            return (
                np.column_stack([y[:, 0] + 0.1 * y[:, 1], 0.9 * y[:, 1] + np.sin(y[:, 1])]) @ to.T
            )

        model = hf.models.from_functions(
            f=f,
            h=lambda x: x @ back.T[:, :1],
            Q=to @ np.diag([0.0, 0.3]) @ to.T,
            R=[[0.5]],
            initial_mean=to @ [0.3, 0.2],
            initial_covariance=to @ to.T,
        )
        return back @ posterior_cramer_rao_bound(model, 4, runs=4000, rng=0) @ back.T

    straight = bent(0.0, 1.0)
    for angle, unit in ((0.6, 1.0), (0.0, 1e-4), (2.0, 1e3)):
        assert_allclose(bent(angle, unit), straight, rtol=0.1, atol=0.02)


def test_what_varies_in_the_slope_of_a_transition_weighs_in_the_bound():
    """The published recursion on x + a sin(x), whose slope varies about as much as it is certain."""
    bend = 0.8
    model = hf.models.from_functions(
        f=lambda x: x + bend * np.sin(x),
        h=lambda x: x,
        Q=[[0.5]],
        R=[[4.0]],
        initial_mean=[1.0],
        initial_covariance=[[1.0]],
    )
    expected = published(
        1.0,
        1.0,
        0.5,
        lambda x, step: x + bend * np.sin(x),
        lambda x: 1 + bend * np.cos(x),
        lambda x: 1 / 4,
    )
    bound = posterior_cramer_rao_bound(model, 6, runs=20_000, rng=1)
    assert_allclose(bound[:, 0, 0], expected, rtol=0.02)
