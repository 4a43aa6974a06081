"""Motions, observations and noise of the models, worked out by hand or from the formulas of their sources."""

import numpy as np
from helpers import EYE, cases
from numpy.testing import assert_allclose
from scipy.linalg import block_diag

from herdfilter.models import (
    UNGM,
    BallisticReentry,
    BearingsOnly,
    BearingsTracking,
    ConstantVelocity,
    CoordinatedTurn,
    LandmarkLocalisation,
    Lorenz63,
    Lorenz96,
    RadarTracking,
    RangeOnly,
)

PI = np.pi
ROBOT = LandmarkLocalisation()
BEACONS = RangeOnly([[0.0, 0.0], [30.0, 0.0], [0.0, 40.0]], position_noise=0.2, heading_noise=0.03)
X = 1.0
Y = -2.0
H = 0.7
V = 1.5
W = 0.4
T = 0.8  # Thrun, Burgard and Fox, eq. 5.9
ARC = [
    X - V / W * np.sin(H) + V / W * np.sin(H + W * T),
    Y + V / W * np.cos(H) - V / W * np.cos(H + W * T),
    H + W * T,
]


@cases(
    "model x dt control expected",
    (UNGM(), [-2.0], 1.0, None, [-1.0 - 10.0 + 8 * np.cos(3.6)]),
    (BearingsOnly(), [-0.05, 0.001, 0.7, -0.055], 1.0, None, [-0.049, 0.001, 0.645, -0.055]),
    (CoordinatedTurn(), [5.0, 3.0, 7.0, -4.0, 0.0], 2.0, None, [11.0, 3.0, -1.0, -4.0, 0.0]),
    (ROBOT, [X, Y, H], T, [V, W], ARC),
    (ROBOT, [1, 2, PI / 2], 2.0, [3.0, 1e-11], [1, 8, PI / 2]),
    (BEACONS, [1, 2, PI], 1.0, [3.0, 0.5, -0.1], [-2.0, 1.5, PI - 0.1]),
)
def test_a_step_without_noise(model, x, dt, control, expected):
    moved = model.transition_mean(np.array([x], dtype=float), dt, control, 3)
    assert_allclose(moved, [expected], rtol=1e-12, atol=1e-9)


@cases(
    "model x expected",
    (BearingsTracking(sensors=[[0, 0], [1, 1]]), [0.0, 1.0, 5.0, 5.0], [PI / 2, PI]),
    (RadarTracking(radar=[-6, 0, 1]), [-7, 0, 0, 0, 0, 0], [np.sqrt(2), PI, -PI / 4]),
    (LandmarkLocalisation([[-5.0, 0.0]]), [0, 0, -3.0], [5.0, 3 - PI]),
    (Lorenz96(dim=5, observed_every=2), np.arange(5.0), [0, 2, 4]),
)
def test_an_observation_without_noise(model, x, expected):
    seen = model.observation_mean(np.array([x], dtype=float), 1)
    assert_allclose(seen, [expected], atol=1e-14)
    assert np.shape(model.observation_covariance(1)) == (len(expected),) * 2


KNOWN = ConstantVelocity(0.3, 2.0, np.zeros(2), EYE)


@cases(
    "model dt expected",
    (Lorenz63(noise_rate=0.4), 0.25, 0.1 * np.eye(3)),
    (KNOWN, 5.0, 0.3 * np.array([[125 / 3, 25 / 2], [25 / 2, 5]])),
    (BEACONS, 4.0, np.diag([0.16, 0.16, 0.0036])),
    (BallisticReentry(), 0.1, np.diag([0, 0, 2.4064e-5, 2.4064e-5, 1e-6])),
    (BearingsOnly(), 1.0, 1e-6 * np.kron(EYE, [[0.25, 0.5], [0.5, 1.0]])),
    (CoordinatedTurn(), 2.0, block_diag(*[0.1 * np.array([[8 / 3, 2], [2, 2]])] * 2, 3.5e-4)),
)
def test_noise_grows_with_time(model, dt, expected):
    assert_allclose(model.transition_covariance(dt, 1), expected, rtol=1e-12)
