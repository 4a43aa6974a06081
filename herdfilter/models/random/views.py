"""What sensors show of a state, before their noise: functions of states (n, d) -> (n, k)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from herdfilter._checks import Array
from herdfilter.models.random._numbers import combination, listed, names


class View(Protocol):
    """What a view is."""

    kind: ClassVar[str]

    @property
    def words(self) -> str:
        """The view in words."""

    def __call__(self, x: Array) -> Array:
        """Return what is shown of states, (n, d) -> (n, k)."""


@dataclass(frozen=True, eq=False)
class Linear:
    """``H x + b``."""

    matrix: Array
    offset: Array

    kind: ClassVar[str] = "linear sensor"

    @property
    def words(self) -> str:
        """The view in words."""
        return combination(self.matrix, self.offset)

    def __call__(self, x: Array) -> Array:
        """Return what is shown of states."""
        seen = x @ self.matrix.T
        seen += self.offset
        return seen


@dataclass(frozen=True, eq=False)
class Partial:
    """Some coordinates as they are."""

    dims: tuple[int, ...]

    kind: ClassVar[str] = "partial"

    @property
    def words(self) -> str:
        """The view in words."""
        return f"the coordinates {names(self.dims)}"

    def __call__(self, x: Array) -> Array:
        """Return what is shown of states."""
        return np.take(x, self.dims, axis=1)


@dataclass(frozen=True, eq=False)
class Square(Linear):
    """``(H x + b)^2``, which leaves signs open."""

    kind: ClassVar[str] = "square"

    @property
    def words(self) -> str:
        """The view in words."""
        return f"squares of {super().words}"

    def __call__(self, x: Array) -> Array:
        """Return what is shown of states."""
        seen = super().__call__(x)
        return np.square(seen, out=seen)


@dataclass(frozen=True, eq=False)
class Saturating(Linear):
    """``tanh(H x + b)``, which tells far states apart no more."""

    kind: ClassVar[str] = "saturating sensor"

    @property
    def words(self) -> str:
        """The view in words."""
        return f"tanh of {super().words}"

    def __call__(self, x: Array) -> Array:
        """Return what is shown of states."""
        seen = super().__call__(x)
        return np.tanh(seen, out=seen)


@dataclass(frozen=True, eq=False)
class Intensity(Linear):
    """``exp(H x + b)`` between two bounds: the mean of counts."""

    kind: ClassVar[str] = "counts"
    lowest: ClassVar = 0.02
    highest: ClassVar = 300.0

    @property
    def words(self) -> str:
        """The view in words."""
        return f"exp of {super().words}, between {self.lowest:g} and {self.highest:g}"

    def __call__(self, x: Array) -> Array:
        """Return what is shown of states."""
        return np.exp(np.clip(super().__call__(x), np.log(self.lowest), np.log(self.highest)))


@dataclass(frozen=True, eq=False)
class Range:
    """Distances from sensors (k, m), of the place ``P x + b`` in m dimensions."""

    matrix: Array
    offset: Array
    sensors: Array

    kind: ClassVar[str] = "range"

    @property
    def place(self) -> str:
        """The place and the sensors in words."""
        return f"the place ({combination(self.matrix, self.offset)}) from sensors at {listed(self.sensors)}"

    @property
    def words(self) -> str:
        """The view in words."""
        return f"the distance of {self.place}"

    def offsets(self, x: Array) -> Array:
        """Vectors from the sensors to the places, (n, d) -> (n, k, m)."""
        return (x @ self.matrix.T + self.offset)[:, None] - self.sensors

    def __call__(self, x: Array) -> Array:
        """Return what is shown of states."""
        away = self.offsets(x)
        return np.sqrt(np.einsum("nkm,nkm->nk", away, away))


@dataclass(frozen=True, eq=False)
class Bearing(Range):
    """Directions from sensors (k, 2), in radians, of the place ``P x + b`` in a plane."""

    kind: ClassVar[str] = "bearing"

    @property
    def words(self) -> str:
        """The view in words."""
        return f"the bearing of {self.place}"

    def __call__(self, x: Array) -> Array:
        """Return what is shown of states."""
        away = self.offsets(x)
        return np.arctan2(away[..., 1], away[..., 0])
