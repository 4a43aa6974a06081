"""Integrated motions solve their differential equations, written out one number at a time."""

import numpy as np
from helpers import cases
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp

from herdfilter.models import BallisticReentry, DoubleWell, Lorenz63, Lorenz96
from herdfilter.models.random import drifts


def lorenz(t, x):
    return [10 * (x[1] - x[0]), x[0] * (28 - x[2]) - x[1], x[0] * x[1] - 8 / 3 * x[2]]


def ring(t, x):
    d = len(x)
    return [(x[(i + 1) % d] - x[i - 2]) * x[i - 1] - x[i] + 8.0 for i in range(d)]


def reentry(t, s):
    """Julier and Uhlmann's equations of motion."""
    x, y, vx, vy, c = s
    R = np.sqrt(x * x + y * y)
    V = np.sqrt(vx * vx + vy * vy)
    D = -0.59783 * np.exp(c) * np.exp((6374 - R) / 13.406) * V
    G = -3.986e5 / R**3
    return [vx, vy, D * vx + G * x, D * vy + G * y, 0.0]


def solved(rate, starts, time):
    return np.array(
        [solve_ivp(rate, (0, time), s, "DOP853", rtol=1e-11, atol=1e-11).y[:, -1] for s in starts]
    )


FLOWS = {
    "lorenz": (drifts.lorenz(20, 0.01, 28.0), 0.2, lorenz, [[1.0, 2.0, 20.0], [-8.0, 3.0, 30.0]]),
    "ring": (drifts.lorenz_ring(20, 0.01, 5, 8.0), 0.2, ring, [[1.0, 2.0, 3.0, -4.0, 5.0]]),
}


@cases("name", *FLOWS)
def test_a_random_models_drift_solves_its_equations(name):
    flow, time, rate, starts = FLOWS[name]
    assert_allclose(flow.f(np.array(starts)), solved(rate, starts, time), rtol=1e-4, atol=1e-4)


def test_the_double_wells_flow_is_exact():
    starts = np.array([[-2.0], [-0.1], [0.0], [0.3], [1.0], [4.0]])
    moved = DoubleWell().transition_mean(starts, 0.3, None, 1)
    assert_allclose(moved, solved(lambda t, x: 4 * x - 4 * x**3, starts, 0.3), atol=1e-8)


@cases(
    "make rate time atol",
    (Lorenz63, lorenz, 0.123, 5e-4),
    (lambda **k: Lorenz96(dim=7, **k), ring, 0.2, 1e-5),
)
def test_lorenz_systems_are_integrated_to_fourth_order(make, rate, time, atol):
    """Over a time that is no multiple of the step, too."""
    states = make().initial.sample(2, np.random.default_rng(0))
    exact = solved(rate, states, time)

    def error(step):
        moved = make(integration_step=step).transition_mean(states, time, None, 1)
        return np.abs(moved - exact).max()

    assert error(0.01) < atol
    errors = [error(time / n) for n in (13, 26, 52)]
    assert_allclose(np.log2(np.divide(errors[:-1], errors[1:])), 4.0, atol=0.4)


def test_reentry_is_integrated_by_fine_euler_steps():
    """Over 100 s, in which the air has slowed the vehicle down to an eighth; the error falls with the step."""
    start = np.array([[6500.4, 349.14, -1.8093, -6.7967, 0.6932]])
    (exact,) = solved(reentry, start, 100)
    assert np.hypot(*exact[2:4]) < 0.2 * np.hypot(*start[0, 2:4])
    models = [BallisticReentry(integration_step=h) for h in (0.1, 0.05, 0.025)]
    errors = [
        np.linalg.norm(model.transition_mean(start, 100.0, None, 1)[0] - exact) for model in models
    ]
    assert errors[0] < 1.0  # km, after more than 500
    assert_allclose(np.divide(errors[:-1], errors[1:]), 2.0, rtol=0.1)  # a method of first order
