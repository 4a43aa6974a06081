"""Models that are written twice, in NumPy and as compiled functions of one state, for `compiled_study.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from evaluations import CASES as FOUR

import herdfilter as hf
from herdfilter.models.compiled import CompiledModel
from herdfilter.study.scenario import load_scenario


class Case(NamedTuple):
    """A model in NumPy, its compiled functions and what they are told, and the steps of a run."""

    model: Callable[[], Any]
    f: Callable[..., Any]
    h: Callable[..., Any]
    parameters: Callable[[Any], Any]
    dt: float = 1.0
    steps: int = 60

    def compiled(self) -> CompiledModel:
        """Return the model of compiled functions."""
        model = self.model()
        prior = model.initial
        return CompiledModel(
            self.f,
            self.h,
            lambda dt: model.transition_covariance(dt, 1),
            model.observation_covariance(1),
            prior.means[0],
            prior.covariances[0],
            observation_circular=getattr(model, "observation_circular", ()),
            parameters=self.parameters(model),
        )


def nothing(model: Any) -> Sequence[float]:
    """Tell the functions nothing."""
    return ()


def matrix(dt: float, model: Any) -> np.ndarray:
    """Tell the matrix of a linear motion."""
    return np.asarray(model.transition_mean(np.eye(model.dim), dt, None, 1)).T.ravel()


def of_lorenz(model: Any) -> Sequence[float]:
    """Tell the number of substeps; the rates are the usual ones."""
    return (0.25 / 0.01,)


def swinging(x, dt, out):
    """Do as `evaluations.pendulum`."""
    out[0] = x[0] + dt * x[1]
    out[1] = x[1] - dt * 9.81 * np.sin(x[0])


def deflection(x):
    """Do as `evaluations.pendulum`."""
    return np.sin(x[0])


def convection(x, dt, parameters, out):
    """Do as `models.Lorenz63`, by the same Runge-Kutta steps."""
    count = int(parameters[0] + 0.5)
    h = dt / count
    a = x[0]
    b = x[1]
    c = x[2]
    for _ in range(count):
        ax = 10.0 * (b - a)
        ay = a * (28.0 - c) - b
        az = a * b - 8.0 / 3.0 * c
        u = a + 0.5 * h * ax
        v = b + 0.5 * h * ay
        w = c + 0.5 * h * az
        bx = 10.0 * (v - u)
        by = u * (28.0 - w) - v
        bz = u * v - 8.0 / 3.0 * w
        u = a + 0.5 * h * bx
        v = b + 0.5 * h * by
        w = c + 0.5 * h * bz
        cx = 10.0 * (v - u)
        cy = u * (28.0 - w) - v
        cz = u * v - 8.0 / 3.0 * w
        u = a + h * cx
        v = b + h * cy
        w = c + h * cz
        a += h / 6.0 * (ax + 2.0 * (bx + cx) + 10.0 * (v - u))
        b += h / 6.0 * (ay + 2.0 * (by + cy) + u * (28.0 - w) - v)
        c += h / 6.0 * (az + 2.0 * (bz + cz) + u * v - 8.0 / 3.0 * w)
    out[0] = a
    out[1] = b
    out[2] = c


def first(x):
    """See the first coordinate."""
    return x[0]


def all_three(x, out):
    """See all coordinates."""
    for a in range(3):
        out[a] = x[a]


def linear(x, parameters, out):
    """Multiply by the matrix among the parameters."""
    d = out.size
    for a in range(d):
        out[a] = 0.0
        for b in range(d):
            out[a] += parameters[a * d + b] * x[b]


def polar(x, out):
    """See range and bearing of the first two coordinates."""
    out[0] = np.hypot(x[0], x[1])
    out[1] = np.arctan2(x[1], x[0])


def turned_polar(x, out):
    """See range and bearing of the first and third coordinate."""
    out[0] = np.hypot(x[0], x[2])
    out[1] = np.arctan2(x[2], x[0])


def bearing(x):
    """See the bearing of the first and third coordinate."""
    return np.arctan2(x[2], x[0])


def coupled(x, out):
    """Do as `evaluations.squares`."""
    out[0] = 0.8 * x[0] + 1.5 * np.sin(x[1])
    out[1] = 0.8 * x[1] + 1.5 * np.sin(x[0])


def half_squares(x, out):
    """Do as `evaluations.squares`."""
    out[0] = 0.5 * x[0] ** 2
    out[1] = 0.5 * x[1] ** 2


def turn(x, dt, out):
    """Do as `models.CoordinatedTurn`."""
    half = 0.5 * x[4] * dt
    chord = np.sin(half) / half if abs(half) > 1e-9 else 1.0
    along = dt * np.cos(half) * chord
    across = dt * np.sin(half) * chord
    sin = np.sin(2.0 * half)
    cos = np.cos(2.0 * half)
    out[0] = x[0] + along * x[1] - across * x[3]
    out[1] = cos * x[1] - sin * x[3]
    out[2] = x[2] + across * x[1] + along * x[3]
    out[3] = sin * x[1] + cos * x[3]
    out[4] = x[4]


def from_the_right(x):
    """See the distance from (2, 0)."""
    return np.hypot(x[0] - 2.0, x[1])


def from_both_sides(x, out):
    """See the distances from (-1, 0) and (1, 0)."""
    out[0] = np.hypot(x[0] + 1.0, x[1])
    out[1] = np.hypot(x[0] - 1.0, x[1])


def well(x, dt):
    """Do as `models.DoubleWell`."""
    decay = np.exp(-8.0 * dt)
    return x[0] / np.sqrt(decay + (1.0 - decay) * x[0] ** 2)


def of_scenario(name: str) -> Callable[[], Any]:
    """Return a function that makes the model of a named scenario."""
    return lambda: load_scenario(name).build_model()


def own_form(model: Any) -> CompiledModel:
    """Return the compiled form that a model of the package has."""
    compiled: CompiledModel = model.compiled()
    return compiled


CASES = {
    "pendulum": Case(FOUR["pendulum"].model, swinging, deflection, nothing, 0.05),
    "Lorenz-63, one seen": Case(FOUR["Lorenz-63"].model, convection, first, of_lorenz, 0.25),
    "range and bearing": Case(FOUR["range and bearing"].model, linear, polar, partial(matrix, 1.0)),
    "squares": Case(FOUR["squares"].model, coupled, half_squares, nothing),
    "bearings_only": Case(
        of_scenario("bearings_only"), linear, bearing, partial(matrix, 1.0), steps=24
    ),
    "coordinated_turn": Case(of_scenario("coordinated_turn"), turn, turned_polar, nothing),
    "sharp_range": Case(of_scenario("sharp_range"), linear, from_the_right, partial(matrix, 1.0)),
    "mirror_ranges": Case(
        of_scenario("mirror_ranges"), linear, from_both_sides, partial(matrix, 1.0), steps=30
    ),
    "lorenz63": Case(of_scenario("lorenz63"), convection, all_three, of_lorenz, 0.25),
    "double_well": Case(of_scenario("double_well"), well, first, nothing, 0.2),
    "ungm": Case(hf.models.UNGM, None, None, nothing),
    "bearings": Case(hf.models.BearingsTracking, None, None, nothing, 0.1),
}
"""Name -> case; of the last two the package has the compiled form."""


def forms(name: str) -> tuple[Any, CompiledModel]:
    """Return the model of a case in NumPy and compiled."""
    case = CASES[name]
    model = case.model()
    return model, own_form(model) if case.f is None else case.compiled()
