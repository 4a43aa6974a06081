"""Which entries of a vector are angles, found out by trying the functions that subtract, add and average such vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from herdfilter._checks import Array
from herdfilter.angles import wrap_angles

TRIED = (3.0, -3.0, 4.0, -4.0, 2 * np.pi + 0.1)
"""Differences at which an angle in radians, wrapped once or as often as it takes, differs from a number; or does not."""

FAR = 400.0
"""A difference at which degrees wrap."""


def circular_entries(name: str, residual: Callable[[Any, Any], Any], base: Array) -> tuple[int, ...]:
    """Return the entries in which a residual function wraps differences at 2 pi.

    Parameters
    ----------
    name : str
        Of the function, for errors.
    residual : callable
        Two vectors (d,) -> their difference (d,).
    base : ndarray, shape (d,)
        A vector to try it at.

    Raises
    ------
    ValueError
        If an entry is neither the plain difference nor the one wrapped to within pi, or depends on other entries.
    """
    if residual is np.subtract:
        return ()
    size, circular = len(base), []
    small = 0.1 * (1 + np.arange(size)) / size
    if _apart(_at(name, residual, base, small), small, base):
        raise ValueError(_refused(name, f"{_at(name, residual, base, small)} for {small}"))
    for i in range(size):
        found = {t: _one(name, residual, base, i, t) for t in TRIED}
        if all(abs(found[t] - _wrapped(t)) < 1e-6 for t in TRIED):
            circular.append(i)
            continue
        found[FAR] = _one(name, residual, base, i, FAR)
        for t, value in found.items():
            if abs(value - t) > 1e-6:
                degrees = "; degrees are to be turned into radians" if abs(value - FAR + 360) < 1e-6 else ""
                raise ValueError(_refused(name, f"{value:.6g} for {t:.6g} in entry {i}{degrees}"))
    return tuple(circular)


def check_addition(name: str, add: Callable[[Any, Any], Any], base: Array, circular: tuple[int, ...]) -> None:
    """Raise ValueError unless a function adds vectors (d,), but for whole turns of the circular entries."""
    if add is np.add:
        return
    small = 0.1 * (1 + np.arange(len(base))) / len(base)
    added = np.ravel(add(base.copy(), small.copy()))
    if added.shape != base.shape or np.abs(wrap_angles(added - base - small, circular)).max() > 1e-6:
        raise ValueError(f"{name}: expected a sum, its angles wrapped or not, got {added} for {base} and {small}: {_ADVICE}")


def check_mean(name: str, mean: Callable[[Any, Any], Any] | None, base: Array, circular: tuple[int, ...]) -> None:
    """Raise ValueError unless a function (points (m, d), weights (m,)) -> (d,) averages near points, those about pi too."""
    if mean is None:
        return
    size, count = len(base), 2 * len(base) + 1
    weights = (1.0 + np.arange(count)) / (count * (count + 1) / 2)
    offsets = 1e-3 * np.sin(np.outer(1 + np.arange(count), 1 + np.arange(size)))
    across = base.copy()
    across[list(circular)] = np.pi
    for centre in (base, across):
        points = wrap_angles(centre + offsets, circular)
        expected = centre + weights @ offsets
        averaged = np.ravel(mean(points.copy(), weights.copy()))
        if averaged.shape != base.shape or np.abs(wrap_angles(averaged - expected, circular)).max() > 1e-6:
            raise ValueError(
                f"{name}: expected the weighted mean, circular in the entries {circular} that the residual function wraps, "
                f"got {averaged} for points about {centre}: {_ADVICE}"
            )


_ADVICE = "herdfilter knows numbers and angles in radians; set it to None where those will do"


def _at(name: str, residual: Callable[[Any, Any], Any], base: Array, difference: Array) -> Array:
    found = np.ravel(np.asarray(residual(base + difference, base.copy()), dtype=np.float64))
    if found.shape != base.shape:
        raise ValueError(f"{name}: expected {len(base)} entries, got {len(found)}")
    return found


def _one(name: str, residual: Callable[[Any, Any], Any], base: Array, i: int, t: float) -> float:
    difference = np.zeros(len(base))
    difference[i] = t
    found = _at(name, residual, base, difference)
    value, found[i] = found[i], 0.0
    if np.abs(found).max() > 1e-6:
        raise ValueError(_refused(name, f"{found} in entries other than {i}, the only one that differs"))
    return float(value)


def _apart(found: Array, expected: Array, base: Array) -> bool:
    return bool(np.abs(found - expected).max() > 1e-9 * (1 + np.abs(base).max()))


def _wrapped(t: float) -> float:
    return (t + np.pi) % (2 * np.pi) - np.pi


def _refused(name: str, got: str) -> str:
    return f"{name}: expected differences, wrapped to within pi where they are of angles, got {got}: {_ADVICE}"
