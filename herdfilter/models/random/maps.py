"""Chaotic maps, all bounded: one that would escape starts from the state cut off to where its attractor ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from herdfilter._checks import Array
from herdfilter.models.random._numbers import listed


@dataclass(frozen=True, eq=False)
class Henon:
    """Henon's map ``(1 - a x^2 + y, b x)`` with x cut off where the attractor ends."""

    a: float
    b: float

    dim: ClassVar[int] = 2
    kind: ClassVar[str] = "chaotic map"
    noise_range: ClassVar = (0.01, 0.3)
    settled: ClassVar = 25
    edge: ClassVar = 1.5

    @property
    def scale(self) -> Array:
        """Spread of the attractor."""
        return np.array([0.7, 0.7 * self.b])

    @property
    def words(self) -> str:
        """The drift in words."""
        return f"chaotic map of Henon, (1 - {self.a:.3g} x1^2 + x2, {self.b:.3g} x1) with x1 cut off at +-{self.edge:g}"

    def __call__(self, x: Array) -> Array:
        """States one step on."""
        first = np.clip(x[:, 0], -self.edge, self.edge)
        moved = np.empty_like(x)
        moved[:, 0] = x[:, 1] + (1 - self.a * first * first)
        moved[:, 1] = self.b * first
        return moved


@dataclass(frozen=True, eq=False)
class Ikeda:
    """Ikeda's map ``1 + u z exp(i (0.4 - 6 / (1 + |z|^2)))`` of a plane, a contraction but for a turn."""

    u: float

    dim: ClassVar[int] = 2
    kind: ClassVar[str] = "chaotic map"
    noise_range: ClassVar = (0.01, 0.3)
    settled: ClassVar = 25

    @property
    def scale(self) -> Array:
        """Spread of the attractor."""
        return np.array([0.4, 0.6])

    @property
    def words(self) -> str:
        """The drift in words."""
        return f"chaotic map of Ikeda, 1 + {self.u:.3g} z exp(i (0.4 - 6 / (1 + |z|^2))) with z = x1 + i x2"

    def __call__(self, x: Array) -> Array:
        """States one step on."""
        first, second = x[:, 0], x[:, 1]
        turn = 0.4 - 6 / (1 + first * first + second * second)
        cos, sin = self.u * np.cos(turn), self.u * np.sin(turn)
        moved = np.empty_like(x)
        moved[:, 0] = 1 + first * cos - second * sin
        moved[:, 1] = first * sin + second * cos
        return moved


@dataclass(frozen=True, eq=False)
class CoupledSines:
    """Coupled maps ``a sin x``, which fold like logistic maps and cannot escape."""

    gain: Array
    coupling: float

    kind: ClassVar[str] = "chaotic map"
    noise_range: ClassVar = (0.01, 0.3)
    settled: ClassVar = 25

    @property
    def dim(self) -> int:
        """Dimension of the state."""
        return len(self.gain)

    @property
    def scale(self) -> Array:
        """Spread of the attractor."""
        return 0.6 * self.gain

    @property
    def words(self) -> str:
        """The drift in words."""
        text = f"chaotic maps a sin x with a = {listed(self.gain)}"
        return text + (f", then {self.coupling:.3g} of the way to the next coordinate" if self.coupling else "")

    def __call__(self, x: Array) -> Array:
        """States one step on."""
        moved = np.sin(x)
        moved *= self.gain
        if self.coupling:
            moved += self.coupling * (np.take(moved, np.arange(-1, self.dim - 1), axis=1) - moved)
        return moved
