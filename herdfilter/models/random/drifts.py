"""Drifts that settle: linear, rotating, wells, saturating and populations.

A drift is a function of states (n, d) -> (n, d). Beside that, it tells its natural scale in each coordinate, which noise is
measured by; which multiples of it leave the system what it is; and after how many steps it has forgotten its start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from herdfilter._checks import Array
from herdfilter.models.random._numbers import listed, names


class Drift(Protocol):
    """What a drift is."""

    kind: ClassVar[str]
    noise_range: ClassVar[tuple[float, float]]

    @property
    def dim(self) -> int:
        """Dimension of the state."""

    @property
    def settled(self) -> int:
        """Steps after which the start is forgotten."""

    @property
    def scale(self) -> Array:
        """Natural scale of each coordinate, (d,)."""

    @property
    def words(self) -> str:
        """The drift in words."""

    def __call__(self, x: Array) -> Array:
        """States one step on, without noise, (n, d) -> (n, d)."""


@dataclass(frozen=True, eq=False)
class Linear:
    """``A x`` with a stable matrix A, (d, d)."""

    matrix: Array

    kind: ClassVar[str] = "linear"
    noise_range: ClassVar = (0.01, 10.0)
    settled: ClassVar = 300

    @property
    def dim(self) -> int:
        """Dimension of the state."""
        return len(self.matrix)

    @property
    def scale(self) -> Array:
        """One: the system has none of its own."""
        return np.ones(self.dim)

    @property
    def words(self) -> str:
        """The drift in words."""
        sizes = np.sort(np.abs(np.linalg.eigvals(self.matrix)))[::-1]
        return f"{self.kind}, A x with eigenvalues of size {listed(sizes)}; rows of A: {listed(self.matrix)}"

    def __call__(self, x: Array) -> Array:
        """States one step on."""
        return x @ self.matrix.T


class Rotating(Linear):
    """``A x`` with eigenvalues in complex pairs: a damped rotation."""

    kind: ClassVar[str] = "rotating"


@dataclass(frozen=True, eq=False)
class Wells:
    """The exact flow of ``dx/dt = x - x^3 / width^2`` in the first coordinates; the others decay; then neighbours mix."""

    width: Array
    time: float
    decay: Array
    coupling: float

    kind: ClassVar[str] = "wells"
    noise_range: ClassVar = (0.03, 2.0)
    settled: ClassVar = 60

    @property
    def dim(self) -> int:
        """Dimension of the state."""
        return len(self.width) + len(self.decay)

    @property
    def scale(self) -> Array:
        """Half the distance of two wells; as much as the first of them elsewhere."""
        return np.concatenate([self.width, np.full(len(self.decay), self.width[0])])

    @property
    def words(self) -> str:
        """The drift in words."""
        m = len(self.width)
        text = (
            f"double wells at +-{listed(self.width)} in {names(range(m))}: dx/dt = x - x^3 / width^2 for a time of "
            f"{self.time:.3g}"
        )
        if len(self.decay):
            text += f"; {names(range(m, self.dim))} times {listed(self.decay)}"
        return text + (f"; then {self.coupling:.3g} of the way to the next coordinate" if self.coupling else "")

    def __call__(self, x: Array) -> Array:
        """States one step on."""
        m, growth = len(self.width), np.exp(self.time)
        moved = np.empty_like(x)
        squared = (x[:, :m] / self.width) ** 2
        moved[:, :m] = growth * x[:, :m] / np.sqrt(1 + squared * (growth**2 - 1))
        moved[:, m:] = x[:, m:] * self.decay
        if self.coupling:
            moved += self.coupling * (np.take(moved, np.arange(-1, self.dim - 1), axis=1) - moved)
        return moved


@dataclass(frozen=True, eq=False)
class Saturating:
    """A random network, ``keep x + B tanh(W x + b)``."""

    keep: float
    outward: Array
    inward: Array
    bias: Array

    kind: ClassVar[str] = "saturating"
    noise_range: ClassVar = (0.01, 10.0)
    settled: ClassVar = 60

    @property
    def dim(self) -> int:
        """Dimension of the state."""
        return len(self.bias)

    @property
    def scale(self) -> Array:
        """Size of the rows of B."""
        return np.linalg.norm(self.outward, axis=1)

    @property
    def words(self) -> str:
        """The drift in words."""
        return (
            f"saturating, {self.keep:.3g} x + B tanh(W x + b), b = {listed(self.bias)}; rows of B: "
            f"{listed(self.outward)}; rows of W: {listed(self.inward)}"
        )

    def __call__(self, x: Array) -> Array:
        """States one step on."""
        moved = np.tanh(x @ self.inward.T + self.bias) @ self.outward.T
        moved += self.keep * x
        return moved


@dataclass(frozen=True, eq=False)
class Population:
    """Logarithms of the numbers of competing species, ``x + r (1 - C e^x)`` (Ricker), with x cut off at both ends."""

    rate: Array
    competition: Array

    kind: ClassVar[str] = "population"
    noise_range: ClassVar = (0.03, 2.0)
    settled: ClassVar = 25
    lowest: ClassVar = -4.0
    highest: ClassVar = 1.5

    @property
    def dim(self) -> int:
        """Dimension of the state."""
        return len(self.rate)

    @property
    def scale(self) -> Array:
        """Half a unit of the logarithm."""
        return np.full(self.dim, 0.5)

    @property
    def words(self) -> str:
        """The drift in words."""
        limits = f"{self.lowest:g} and {self.highest:g}"
        text = f"population, x + r (1 - C exp x) with x between {limits}, r = {listed(self.rate)}"
        return text + (f"; rows of C: {listed(self.competition)}" if self.dim > 1 else "")

    def __call__(self, x: Array) -> Array:
        """States one step on."""
        moved = np.clip(x, self.lowest, self.highest)
        crowd = np.exp(moved)
        moved += self.rate * (1 - (crowd @ self.competition.T if self.dim > 1 else crowd))
        return moved
