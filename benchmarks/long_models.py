"""Models of the long runs, and their posteriors on a grid: loops over the masses, and the distance of particles to them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

import herdfilter as hf
from herdfilter.models.compiled import CompiledModel

MODELS = ("zeros", "linear", "growth", "bearing", "two wells")

TURN = 0.5
"""Angle of the two wells' coordinates, in radians."""


def decay(x, parameters):
    return parameters[0] * x[0]


def itself(x):
    return x[0]


def bearing(x):
    return np.arctan(x[0])


def flow(x, parameters):
    return x[0] / np.sqrt(parameters[0] + (1 - parameters[0]) * x[0] ** 2)


def turned_flow(x, parameters, out):
    left, c, s = parameters
    u, v = c * x[0] + s * x[1], c * x[1] - s * x[0]
    u, v = u / np.sqrt(left + (1 - left) * u**2), v / np.sqrt(left + (1 - left) * v**2)
    out[0], out[1] = c * u - s * v, s * u + c * v


def both(x, out):
    out[0], out[1] = x[0], x[1]


@dataclass(frozen=True)
class Case:
    """A stationary model, and the grid that holds the posterior of each of its parts.

    Attributes
    ----------
    model : CompiledModel
        What the filters are given.
    part : CompiledModel
        The model of one dimension of each part; the model itself unless there are two.
    reach, points : float, int
        The grid goes from -reach to reach.
    turn : float
        Angle of the parts' coordinates.
    drift : float
        Amplitude of what the growth model adds to its state, times cos(1.2 step).
    zero : bool
        Whether all observations are 0 and not simulated ones.
    """

    model: CompiledModel
    part: CompiledModel
    reach: float
    points: int
    turn: float = 0.0
    drift: float = 0.0
    zero: bool = False

    @property
    def grid(self) -> np.ndarray:
        """Places of the masses, (points,)."""
        return np.linspace(-self.reach, self.reach, self.points)

    @property
    def spacing(self) -> float:
        """Distance of two of them."""
        return 2 * self.reach / (self.points - 1)

    @property
    def noise(self) -> float:
        """Standard deviation of the transition noise."""
        return float(np.sqrt(self.part.Q(1.0, 1)[0, 0]))

    @property
    def spread(self) -> float:
        """Standard deviation of the observation noise."""
        return float(np.sqrt(self.part.R(1)[0, 0]))

    @property
    def rotation(self) -> np.ndarray:
        """Matrix that turns states (n, d), from the right, into the parts' coordinates."""
        c, s = np.cos(self.turn), np.sin(self.turn)
        return np.array([[c, -s], [s, c]]) if self.model.dim == 2 else np.eye(1)


def cases() -> dict[str, Case]:
    """Return the models by name."""
    left = np.exp(-8 * 0.2)  # of the squared distance from a well, after a time of 0.2
    linear = hf.models.CompiledModel(
        decay, itself, [[1.0]], [[0.25]], [0.0], [[1.0]], parameters=[0.9]
    )
    growth = hf.models.UNGM().compiled()
    seen = hf.models.CompiledModel(
        decay, bearing, [[1.0]], [[0.04]], [0.0], [[1.0]], parameters=[0.95]
    )
    well = hf.models.CompiledModel(
        flow, itself, [[0.1]], [[0.25]], [0.0], [[0.5]], parameters=[left]
    )
    turned = [left, np.cos(TURN), np.sin(TURN)]
    wells = hf.models.CompiledModel(
        turned_flow,
        both,
        0.1 * np.eye(2),
        0.25 * np.eye(2),
        [0.0] * 2,
        0.5 * np.eye(2),
        parameters=turned,
    )
    return {
        "zeros": Case(linear, linear, 18.0, 361, zero=True),
        "linear": Case(linear, linear, 18.0, 361),
        "growth": Case(growth, growth, 45.0, 451, drift=8.0),
        "bearing": Case(seen, seen, 25.0, 401),
        "two wells": Case(wells, well, 4.0, 201, TURN),
    }


@njit(cache=True, nogil=True)
def point_masses(mass, moved, drift, kernel, seen, z, spread, lower, spacing):
    """Return the posterior masses on the grid at each step, (T, N), from those of the step before the first."""
    size, half = len(mass), len(kernel) // 2
    kept = np.zeros((len(z), size))
    for k in range(len(z)):
        cells, after = np.zeros(size), np.zeros(size + 2 * half)
        for i in range(
            size
        ):  # to the four points around where a grid point is carried, as cubic interpolation weighs
            place = (moved[i] + drift[k] - lower) / spacing
            cell = int(np.floor(place))
            if mass[i] > 1e-18 and 1 <= cell < size - 2:
                t = place - cell
                cells[cell - 1] -= mass[i] * t * (t - 1) * (t - 2) / 6
                cells[cell] += mass[i] * (t + 1) * (t - 1) * (t - 2) / 2
                cells[cell + 1] -= mass[i] * (t + 1) * t * (t - 2) / 2
                cells[cell + 2] += mass[i] * (t + 1) * t * (t - 1) / 6
        for i in range(size):
            if cells[i] != 0.0:
                for j in range(len(kernel)):
                    after[i + j] += cells[i] * kernel[j]
        nearest, total = np.inf, 0.0
        for i in range(size):
            if after[i + half] > 1e-30:
                nearest = min(nearest, ((z[k] - seen[i]) / spread) ** 2)
        for i in range(size):
            if after[i + half] > 1e-30:
                kept[k, i] = after[i + half] * np.exp(
                    (nearest - ((z[k] - seen[i]) / spread) ** 2) / 2
                )
                total += kept[k, i]
        for i in range(size):
            kept[k, i] /= total
        mass = kept[k]
    return kept


@njit(cache=True, nogil=True)
def kolmogorov(masses, lower, spacing, x, weights):
    """Return the largest difference of the distribution functions of sorted particles (T, n) and of masses (T, N)."""
    size = masses.shape[1]
    largest, cdf = np.zeros(len(x)), np.zeros(size)
    for k in range(len(x)):
        m, total = masses[k], 0.0
        for i in range(1, size - 1):  # the trapezoidal rule with its first correction
            cdf[i] = total + m[i] / 2 - (m[i + 1] - m[i - 1]) / 24
            total += m[i]
        cdf[size - 1] = 1.0
        below = 0.0
        for j in range(x.shape[1]):
            place = min(max((x[k, j] - lower) / spacing, 0.0), size - 1.001)
            i = int(place)
            t = place - i
            # Hermite's cubic: the masses are the slopes
            value = (1 + 2 * t) * (1 - t) ** 2 * cdf[i] + t * (1 - t) ** 2 * m[i]
            value += t * t * (3 - 2 * t) * cdf[i + 1] - t * t * (1 - t) * m[i + 1]
            largest[k] = max(largest[k], abs(value - below), abs(value - below - weights[k, j]))
            below += weights[k, j]
    return largest
