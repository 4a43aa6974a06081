"""Transitions and observations of filterpy's filters as functions of many states."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from types import MethodType
from typing import Any

import numpy as np

from herdfilter._checks import Array, one_of, short_repr
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
                f"control: expected None, got {short_repr(control)}; name the argument of fx that takes it, as in "
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
            raise ValueError(f"control: expected None, as the filter has no B, got {short_repr(control)}")
        return moved + np.ravel(self.B @ np.ravel(control))

    def jacobian(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """Return F for each state, (n, d, d)."""
        return np.broadcast_to(self.F, (len(x), *self.F.shape))


class Predicted:
    """The ``predict_x`` of an ExtendedKalmanFilter's own class, and the F that it leaves."""

    def __init__(self, kf: Any) -> None:
        self.kf = copy.deepcopy(kf)
        self.F, self.Q, self.shape = np.array(kf.F, dtype=np.float64), np.array(kf.Q), np.shape(kf.x)

    def __call__(self, x: Array, dt: float, control: Any) -> Array:
        return np.array([np.ravel(self._after(state, control).x) for state in x])

    def jacobian(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """Return the F of each state, (n, d, d)."""
        return np.array([self._after(state, control).F for state in x])

    def _after(self, state: Array, control: Any) -> Any:
        kf = copy.copy(self.kf)
        kf.F, kf.x = self.F.copy(), state.reshape(self.shape).copy()
        if "predict_x" in vars(kf):  # it is bound to what this is a copy of
            kf.predict_x = MethodType(kf.predict_x.__func__, kf)
        kf.predict_x(0 if control is None else control)
        if not np.array_equal(kf.Q, self.Q):
            raise ValueError(
                f"{type(kf).__name__}.predict_x: expected it to set x and F, got another Q; write a model with this noise"
            )
        return kf


STEPS = ("predict", "update", "compute_process_sigmas", "cross_variance")
"""What methods begin with that predict and update."""

MATRICES = ("F", "B", "Q", "H", "R")


def check_methods(kf: Any, kind: type, ignore: Sequence[str]) -> None:
    """Raise TypeError where a filter predicts or updates by another method than filterpy's, or computes a matrix anew.

    It does not call them: what they do may depend on time and state.
    """
    steps = [name for name in vars(kind) if name.startswith(STEPS)]
    ignored = {one_of("ignore", name, [*steps, *MATRICES]) for name in ignore}
    for name in (*steps, *MATRICES):
        wrong, instead = "", "write it as f of from_functions, or as transition of a model, or "
        if name in MATRICES:
            if isinstance(getattr(type(kf), name, None), property):
                wrong, instead = "a matrix, got a property, whose value now would stay", ""
        elif name == "predict_x":  # may be another, but has to move the copy that it is called on
            if name in vars(kf) and getattr(kf.predict_x, "__self__", None) is not kf:
                wrong, instead = f"a method of this filter, got {short_repr(kf.predict_x)}", ""
        elif not _is_own(kf, kind, name):
            wrong = f"{kind.__name__}'s own, got another, which would be lost"
            instead = "give its function of the state as hx, and " if name == "update" else instead
        if wrong and name not in ignored:
            last = f"convert with ignore=[{name!r}] if it changes no part of the model"
            raise TypeError(f"{type(kf).__name__}.{name}: expected {wrong}; {instead}{last}")


def _is_own(kf: Any, kind: type, name: str) -> bool:
    """Whether a method is the one that filterpy has written for this class, not a wrapper, and is bound to this filter."""
    method = getattr(kf, name)
    function = getattr(method, "__func__", method)
    module = getattr(function, "__globals__", {}).get("__name__", "")
    written = module.startswith("filterpy.") and function.__qualname__ == f"{kind.__name__}.{name}"
    return written and method.__self__ is kf
