"""Chaotic flows and limit cycles, all bounded.

A step starts from the state cut off to a box around the attractor: on the attractor it is the original system, and noise
cannot drive it away.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from herdfilter._checks import Array
from herdfilter.models.random._numbers import listed


@dataclass(frozen=True, eq=False)
class Flow:
    """A differential equation, integrated over one step by a few classical Runge-Kutta steps."""

    substeps: int
    integration_step: float

    kind: ClassVar[str] = "chaotic flow"
    noise_range: ClassVar = (0.01, 0.3)
    memory: ClassVar = 8.0

    @property
    def settled(self) -> int:
        """Steps to a time `memory`: about ten times the time in which neighbours part, or a few turns of a cycle."""
        return math.ceil(self.memory / (self.substeps * self.integration_step))

    @property
    @abstractmethod
    def box(self) -> tuple[Array, Array]:
        """Corners of the box to which states are cut off, each (d,)."""

    @abstractmethod
    def rate(self, x: Array) -> Array:
        """Time derivative of states, (d, n) -> (d, n): coordinates first, so that each is contiguous."""

    @property
    @abstractmethod
    def system(self) -> str:
        """Name and parameters."""

    @property
    def words(self) -> str:
        """The drift in words."""
        lower, upper = self.box
        time = self.substeps * self.integration_step
        return (
            f"{self.system}; {time:.3g} time units a step, by {self.substeps} Runge-Kutta steps from the state cut off to "
            f"{listed(lower)} .. {listed(upper)}"
        )

    def __call__(self, x: Array) -> Array:
        """States one step on."""
        h = self.integration_step
        y = np.ascontiguousarray(np.clip(x, *self.box).T)
        for _ in range(self.substeps):
            k1 = self.rate(y)
            k2 = self.rate(y + (h / 2) * k1)
            k3 = self.rate(y + (h / 2) * k2)
            k4 = self.rate(y + h * k3)
            k2 += k3
            k2 *= 2
            k2 += k1
            k2 += k4
            k2 *= h / 6
            y += k2
        return np.ascontiguousarray(y.T)


@dataclass(frozen=True, eq=False)
class Lorenz(Flow):
    """Lorenz's equations of 1963."""

    rho: float = 28.0

    dim: ClassVar[int] = 3

    @property
    def scale(self) -> Array:
        """Spread of the attractor."""
        return np.array([8.0, 9.0, 8.5])

    @property
    def box(self) -> tuple[Array, Array]:
        """Three times the attractor's half width about its middle, but for what is below zero."""
        return np.array([-40.0, -50.0, -10.0]), np.array([40.0, 50.0, 70.0])

    @property
    def system(self) -> str:
        """Name and parameters."""
        return f"chaotic flow of Lorenz (1963), sigma = 10, rho = {self.rho:.3g}, beta = 8/3"

    def rate(self, x: Array) -> Array:
        """Time derivative."""
        change = np.empty_like(x)
        np.subtract(x[1], x[0], out=change[0])
        change[0] *= 10.0
        np.subtract(self.rho, x[2], out=change[1])
        change[1] *= x[0]
        change[1] -= x[1]
        np.multiply(x[0], x[1], out=change[2])
        change[2] -= (8.0 / 3.0) * x[2]
        return change


@dataclass(frozen=True, eq=False)
class Roessler(Flow):
    """Roessler's equations: a spiral that folds back."""

    c: float = 5.7

    dim: ClassVar[int] = 3
    memory: ClassVar = 60.0

    @property
    def scale(self) -> Array:
        """Spread of the attractor."""
        return np.array([5.0, 4.7, 2.5])

    @property
    def box(self) -> tuple[Array, Array]:
        """The third coordinate would run away below zero."""
        return np.array([-20.0, -20.0, 0.0]), np.array([20.0, 20.0, 40.0])

    @property
    def system(self) -> str:
        """Name and parameters."""
        return f"chaotic flow of Roessler, a = b = 0.2, c = {self.c:.3g}"

    def rate(self, x: Array) -> Array:
        """Time derivative."""
        change = np.empty_like(x)
        np.add(x[1], x[2], out=change[0])
        np.negative(change[0], out=change[0])
        np.multiply(x[1], 0.2, out=change[1])
        change[1] += x[0]
        np.subtract(x[0], self.c, out=change[2])
        change[2] *= x[2]
        change[2] += 0.2
        return change


@dataclass(frozen=True, eq=False)
class LorenzRing(Flow):
    """Lorenz's equations of 1996 on a ring of d places."""

    dim: int = 4
    forcing: float = 8.0

    @property
    def scale(self) -> Array:
        """Spread of the attractor."""
        return np.full(self.dim, 3.6)

    @property
    def box(self) -> tuple[Array, Array]:
        """About twice the width of the attractor."""
        return np.full(self.dim, -20.0), np.full(self.dim, 25.0)

    @property
    def system(self) -> str:
        """Name and parameters."""
        return f"chaotic flow of Lorenz (1996) on a ring of {self.dim}, forcing {self.forcing:.3g}"

    def rate(self, x: Array) -> Array:
        """Time derivative."""
        ring = np.concatenate([x[-2:], x, x[:1]])
        change = ring[3:] - ring[:-3]
        change *= ring[1:-2]
        change -= x
        change += self.forcing
        return change


@dataclass(frozen=True, eq=False)
class VanDerPol(Flow):
    """Van der Pol's oscillators, position and velocity of each in turn, coupled by springs."""

    dim: int = 2
    stiffness: float = 1.0
    spring: float = 0.0

    kind: ClassVar[str] = "limit cycle"
    noise_range: ClassVar = (0.01, 1.0)
    memory: ClassVar = 30.0

    @property
    def scale(self) -> Array:
        """Spread on the cycle."""
        return np.tile([1.4, 1.5], self.dim // 2)

    @property
    def box(self) -> tuple[Array, Array]:
        """Twice the size of the cycle, at most."""
        edge = np.tile([3.0, 6.0], self.dim // 2)
        return -edge, edge

    @property
    def system(self) -> str:
        """Name and parameters."""
        text = f"limit cycle of van der Pol, x'' = {self.stiffness:.3g} (1 - x^2) x' - x, position and velocity in turn"
        return text + (f", a spring of {self.spring:.3g} to the next" if self.dim > 2 else "")

    def rate(self, x: Array) -> Array:
        """Time derivative."""
        place, speed = x[0::2], x[1::2]
        change = np.empty_like(x)
        change[0::2] = speed
        pull = place * place
        np.subtract(1.0, pull, out=pull)
        pull *= speed
        pull *= self.stiffness
        pull -= place
        if self.dim > 2:
            pull += self.spring * (np.roll(place, 1, axis=0) - place)
        change[1::2] = pull
        return change
