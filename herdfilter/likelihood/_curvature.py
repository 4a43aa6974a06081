"""Gradient, Hessian and roughness of a log-likelihood, by differences."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from herdfilter._checks import Array
from herdfilter.likelihood._function import LogLikelihood

WIDE, NARROW = 0.4, 0.1
"""Steps of the second differences, in standard errors of a parameter given the others."""

CHECKS = 3
"""Fewest second differences at narrow steps, whatever the number of parameters."""

ROUGH = 0.005
"""Of a log-likelihood: rougher ones may move a maximum by a tenth of a standard error."""


@dataclass
class Curvature:
    """Gradient and Hessian of a log-likelihood at x, by differences; only of parameters that are not at a bound.

    Attributes
    ----------
    steps : ndarray, shape (p,)
        Standard error of each parameter given the others.
    roughness : ndarray, shape (p,)
        Largest unexpected part of narrow second differences along each parameter.
    """

    x: Array
    free: np.ndarray
    steps: Array
    gradient: Array
    covariance: Array | None
    roughness: Array

    @property
    def smooth(self) -> bool:
        return not (self.roughness > ROUGH).any()

    @classmethod
    def at(cls, f: LogLikelihood, x: Array, lower: Array, upper: Array, steps: Array) -> Curvature:
        p, room, wide = len(x), np.minimum(x - lower, upper - x), WIDE * steps
        gradient, hessian = np.zeros(p), np.zeros((p, p))
        free = np.array([_settled(f, x, i, wide, room[i]) for i in range(p)])
        which = [i for i in range(p) if free[i]]
        for i in which:
            gradient[i], hessian[i, i] = f.differences(x, i, wide[i])
            for j in [j for j in which if j < i]:
                hessian[i, j] = hessian[j, i] = _mixed(f, x, i, j, wide)
        roughness, slopes = np.full(p, np.nan), np.zeros(p)
        repeats = -(-CHECKS // max(len(which), 1))
        for i in which:
            unexpected = []
            for step in wide[i] * NARROW / WIDE * 0.6 ** np.arange(repeats)[::-1]:
                slopes[i], curvature = f.differences(x, i, step)
                unexpected.append(abs(curvature - hessian[i, i]) * step**2)
            roughness[i] = max(unexpected)
        covariance = _inverse(-hessian[np.ix_(which, which)])
        found = cls(x, free, wide / WIDE, gradient, covariance, roughness)
        if found.smooth:  # then the narrow steps know the slope better
            found.gradient = slopes
        return found

    def moved(self, f: LogLikelihood, x: Array) -> Curvature:
        """Take the gradient anew at x, near by."""
        gradient = np.zeros(len(x))
        for i in range(len(x)):
            if not self.free[i]:
                continue
            gradient[i] = f.differences(x, i, NARROW * self.steps[i])[0]
        return replace(self, x=x, gradient=gradient)

    def newton(self, f: LogLikelihood, lower: Array, upper: Array) -> tuple[Array, float]:
        """Return where Newton's method goes if it is better there, else the best place, and how far it would go.

        The length is in standard errors, infinite where the log-likelihood is not concave.
        """
        if self.covariance is None:
            return f.best(), np.inf
        slope = self.gradient[self.free]
        step = self.covariance @ slope
        length = float(np.sqrt(max(slope @ step, 0.0)))
        ahead = self.x.copy()
        ahead[self.free] += step / max(length, 1.0)
        f(np.clip(ahead, lower, upper))
        return f.best(), length

    def filled(self) -> Array:
        """Covariance (p, p), NaN where there is none."""
        p = len(self.x)
        covariance = np.full((p, p), np.nan)
        if self.covariance is not None:
            covariance[np.ix_(self.free, self.free)] = self.covariance
        return covariance


def _settled(f: LogLikelihood, x: Array, i: int, wide: Array, room: float) -> bool:
    """Fit the step of parameter i, in place, to the curvature along it; False if the parameter is at a bound."""
    for _ in range(4):
        if room <= 0.25 * wide[i]:
            return False
        wide[i] = min(wide[i], room)
        curvature = f.differences(x, i, wide[i])[1]
        wanted = WIDE / np.sqrt(-curvature) if curvature < 0 else 3 * wide[i]
        ratio = min(wanted, room) / wide[i]
        if 0.5 <= ratio <= 2:
            break
        wide[i] *= np.clip(ratio, 0.1, 10)
    return True


def _mixed(f: LogLikelihood, x: Array, i: int, j: int, steps: Array) -> float:
    """Mixed second derivative: two new values, beside those along both parameters."""
    a, b = np.zeros(len(x)), np.zeros(len(x))
    a[i], b[j] = steps[i], steps[j]
    corners = f(x + a + b) + f(x - a - b)
    edges = f(x + a) + f(x - a) + f(x + b) + f(x - b)
    return (corners - edges + 2 * f(x)) / (2 * steps[i] * steps[j])


def _inverse(information: Array) -> Array | None:
    """Inverse of a matrix (p, p), None if it is not positive definite."""
    if not np.isfinite(information).all():
        return None
    scale = np.sqrt(np.maximum(np.diagonal(information), 1e-300))
    scaled = information / np.outer(scale, scale)
    if information.size and np.linalg.eigvalsh(scaled)[0] <= 1e-10:
        return None
    return np.linalg.inv(scaled) / np.outer(scale, scale)
