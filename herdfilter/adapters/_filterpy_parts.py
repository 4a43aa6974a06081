"""Transitions and observations of filterpy's filters as functions of many states."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from herdfilter._checks import Array, shown
from herdfilter.adapters._calls import Calls


class Matrix:
    """An observation ``H x``."""

    def __init__(self, H: Array) -> None:
        self.H = H

    def __call__(self, x: Array) -> Array:
        return x @ self.H.T

    def jacobian(self, x: Array, step: int) -> Array:
        """H for each state, (n, k, d)."""
        return np.broadcast_to(self.H, (len(x), *self.H.shape))


class Slopes:
    """The Jacobian of an observation of k entries."""

    def __init__(self, function: Calls, k: int) -> None:
        self.function, self.k = function, k

    def jacobian(self, x: Array, step: int) -> Array:
        """Jacobians at states (n, d), (n, k, d)."""
        return self.function(x).reshape(len(x), self.k, -1)


class Timed:
    """A transition ``fx(x, dt)``."""

    def __init__(self, fx: Calls, unit: float, control: str | None) -> None:
        self.fx, self.unit, self.control = fx, unit, control

    def __call__(self, x: Array, dt: float, control: Any) -> Array:
        if control is None:
            return self.fx(x, dt * self.unit)
        if self.control is None:
            raise ValueError(
                f"control: expected None, got {shown(control)}; name the argument of fx that takes it, as in "
                "from_filterpy(kf, control='u')"
            )
        return self.fx(x, dt * self.unit, **{self.control: control})


class Linear:
    """The transition ``F x + B u`` of a KalmanFilter or ExtendedKalmanFilter."""

    def __init__(self, F: Array, B: Any) -> None:
        self.F = F.copy()
        self.B = None if np.ndim(B) == 0 else np.array(B, dtype=np.float64)

    def __call__(self, x: Array, dt: float, control: Any) -> Array:
        moved = x @ self.F.T
        if control is None:
            return moved
        if self.B is None:
            raise ValueError(f"control: expected None, as the filter has no B, got {shown(control)}")
        return moved + np.ravel(self.B @ np.ravel(control))

    def jacobian(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """Return F for each state, (n, d, d)."""
        return np.broadcast_to(self.F, (len(x), *self.F.shape))


class Predicted:
    """The ``predict_x`` of an ExtendedKalmanFilter's own class, and the F that it leaves."""

    def __init__(self, kf: Any) -> None:
        self.kf = copy.deepcopy(kf)
        self.F, self.shape = np.array(kf.F, dtype=np.float64), np.shape(kf.x)

    def __call__(self, x: Array, dt: float, control: Any) -> Array:
        return np.array([np.ravel(self._after(state, control).x) for state in x])

    def jacobian(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """Return the F of each state, (n, d, d)."""
        return np.array([self._after(state, control).F for state in x])

    def _after(self, state: Array, control: Any) -> Any:
        kf = copy.copy(self.kf)
        kf.F, kf.x = self.F.copy(), state.reshape(self.shape).copy()
        kf.predict_x(0 if control is None else control)
        return kf
