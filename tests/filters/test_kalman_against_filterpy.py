"""On a nonlinear model without angles the filters give filterpy's numbers."""

import filterpy.kalman
import numpy as np
import pytest
from filterpy.kalman.CubatureKalmanFilter import spherical_radial_sigmas
from helpers import cases
from numpy.testing import assert_allclose

import herdfilter as hf


class Pendulum:
    """Deflection and rate of a damped pendulum, of which the horizontal deflection and the height are seen."""

    dim = 2
    start = np.array([0.8, 0.0])
    spread = np.array([[0.1, 0.02], [0.02, 0.2]])
    Q = np.array([[0.002, 0.001], [0.001, 0.004]])
    R = np.diag([0.02, 0.05])
    dt = 0.2

    @property
    def initial(self):
        return hf.GaussianMixture([1.0], [self.start], self.spread)

    def transition_mean(self, x, dt, control, step):
        rate = x[:, 1] - dt * (4.0 * np.sin(x[:, 0]) + 0.1 * x[:, 1])
        return np.column_stack([x[:, 0] + dt * rate, rate])

    def transition_covariance(self, dt, step):
        return self.Q

    def observation_mean(self, x, step):
        return np.column_stack([np.sin(x[:, 0]), 1 - np.cos(x[:, 0])])

    def observation_covariance(self, step):
        return self.R

    def f(self, x, dt):
        return self.transition_mean(x[None], dt, None, 0)[0]

    def h(self, x):
        return self.observation_mean(x[None], 0)[0]

    def slope_f(self, x, dt):
        propagate = dt * 4.0 * np.cos(x[0])
        return np.array([[1 - dt * propagate, dt * (1 - 0.1 * dt)], [-propagate, 1 - 0.1 * dt]])

    def slope_h(self, x):
        return np.array([[np.cos(x[0]), 0.0], [np.sin(x[0]), 0.0]])


@pytest.fixture
def model():
    return Pendulum()


@pytest.fixture
def observations(model):
    return hf.simulate(model, 25, rng=1, dt=model.dt)[1]


def prepared(kf, model):
    kf.x = model.start.copy()
    kf.P = model.spread.copy()
    kf.Q = model.Q
    kf.R = model.R
    return kf


def same_numbers(kf, ours, observations, model, update=lambda kf, z: kf.update(z)):
    for z in observations:
        kf.predict()
        ours.predict(model.dt)
        assert_allclose(ours.mean, kf.x.ravel(), rtol=0, atol=1e-8)
        assert_allclose(ours.covariance, kf.P, rtol=0, atol=1e-8)
        update(kf, z)
        record = ours.update(z)
        assert_allclose(record.mean, kf.x.ravel(), rtol=0, atol=1e-8)
        assert_allclose(record.covariance, kf.P, rtol=0, atol=1e-8)
        assert record.log_likelihood == pytest.approx(kf.log_likelihood, abs=1e-8)


def test_extended(model, observations):
    class Nonlinear(filterpy.kalman.ExtendedKalmanFilter):
        def predict_x(self, u=0):
            self.F = model.slope_f(self.x, model.dt)
            self.x = model.f(self.x, model.dt)

    same_numbers(
        prepared(Nonlinear(2, 2), model),
        hf.ExtendedKalmanFilter(model),
        observations,
        model,
        lambda kf, z: kf.update(z, model.slope_h, model.h),
    )


@cases(
    "points options",
    (filterpy.kalman.JulierSigmaPoints(2, kappa=-0.5), {"kappa": -0.5}),
    (
        filterpy.kalman.MerweScaledSigmaPoints(2, 0.3, 2.0, 0.5),
        {"alpha": 0.3, "beta": 2.0, "kappa": 0.5},
    ),
    ids=["negative kappa", "scaled"],
)
def test_unscented(model, observations, points, options):
    same_numbers(
        prepared(
            filterpy.kalman.UnscentedKalmanFilter(2, 2, model.dt, model.h, model.f, points), model
        ),
        hf.UnscentedKalmanFilter(model, **options),
        observations,
        model,
    )


def test_cubature(model, observations):
    """filterpy updates with the propagated points, which lack the transition noise; the algorithm draws new ones."""

    def update(kf, z):
        kf.sigmas_f = spherical_radial_sigmas(kf.x, kf.P)
        kf.update(z[:, None])

    kf = filterpy.kalman.CubatureKalmanFilter(2, 2, model.dt, model.h, model.f)
    same_numbers(prepared(kf, model), hf.CubatureKalmanFilter(model), observations, model, update)
