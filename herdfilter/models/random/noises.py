"""Transitions: a drift and its noise, in each of the three forms that the model contract knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from herdfilter._checks import Array
from herdfilter.models.random._numbers import listed
from herdfilter.models.random.drifts import Drift


def spread_words(factor: Array) -> str:
    """Write the standard deviations of noise ``factor e``, and how far its entries are correlated."""
    sd = np.linalg.norm(factor, axis=1)
    correlation = np.abs((factor / sd[:, None]) @ (factor / sd[:, None]).T - np.eye(len(sd))).max()
    return f"standard deviation {listed(sd)}" + (f", correlated up to {correlation:.2f}" if correlation > 1e-9 else "")


@dataclass(frozen=True, eq=False)
class Motion:
    """A drift f, and the factor L of its noise, which has d rows and at most d columns."""

    drift: Drift
    factor: Array

    @property
    def dim(self) -> int:
        """Dimension of the state."""
        return len(self.factor)


@dataclass(frozen=True, eq=False)
class Additive(Motion):
    """``f(x) + L e`` with e standard normal."""

    @property
    def kind(self) -> str:
        """Label of the noise."""
        return "additive" if self.factor.shape[1] == len(self.factor) else "rank-deficient"

    @property
    def words(self) -> str:
        """The noise in words."""
        rank, dim = self.factor.shape[1], len(self.factor)
        text = "additive Gaussian, " + spread_words(self.factor)
        return text if rank == dim else text + f", of rank {rank} in {dim} dimensions"

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """States (n, d) one step on, without noise; `dt` and `control` have no meaning."""
        return self.drift(x)

    def transition_covariance(self, dt: float, step: int) -> Array:
        """Covariance of the noise, (d, d)."""
        return self.factor @ self.factor.T


@dataclass(frozen=True, eq=False)
class StateDependent(Motion):
    """``f(x) + exp(g tanh(w x + b)) L e``: louder on one side of the state space than on the other."""

    strength: float
    direction: Array
    offset: float

    kind: ClassVar[str] = "multiplicative"

    @property
    def noise_dim(self) -> int:
        """Dimension of the standard normal noise."""
        return len(self.factor)

    @property
    def words(self) -> str:
        """The noise in words."""
        return (
            f"multiplicative, Gaussian, {spread_words(self.factor)}, times exp({self.strength:.3g} tanh(w x + b)), "
            f"w = {listed(self.direction)}, b = {self.offset:.3g}, x before the step"
        )

    def transition(self, x: Array, noise: Array, dt: float, control: Any, step: int) -> Array:
        """States (n, d) one step on under standard normal noise (n, d)."""
        loudness = np.tanh(x @ self.direction + self.offset)
        loudness *= self.strength
        moved = noise @ self.factor.T
        moved *= np.exp(loudness, out=loudness)[:, None]
        moved += self.drift(x)
        return moved


@dataclass(frozen=True, eq=False)
class RandomScale(Motion):
    """``f(x) + exp(g e_0) L e``: the noise has a standard deviation that is itself drawn at every step."""

    strength: float

    kind: ClassVar[str] = "multiplicative"

    @property
    def noise_dim(self) -> int:
        """Dimension of the standard normal noise."""
        return len(self.factor) + 1

    @property
    def words(self) -> str:
        """The noise in words."""
        return (
            f"multiplicative, Gaussian, {spread_words(self.factor)}, times exp({self.strength:.3g} e), e standard normal "
            "and drawn anew for each step"
        )

    def transition(self, x: Array, noise: Array, dt: float, control: Any, step: int) -> Array:
        """States (n, d) one step on under standard normal noise (n, d + 1)."""
        moved = noise[:, 1:] @ self.factor.T
        moved *= np.exp(self.strength * noise[:, :1])
        moved += self.drift(x)
        return moved


@dataclass(frozen=True, eq=False)
class Simulated(Motion):
    """``f(x) + s L e`` that can only be simulated: s makes the noise Student's t, or is large in rare jumps.

    Without `jump_share` the noise has `freedom` degrees of freedom.
    """

    freedom: float = 3.0
    jump_share: float = 0.0
    jump_size: float = 1.0

    kind: ClassVar[str] = "only simulable"

    @property
    def words(self) -> str:
        """The noise in words."""
        law = (
            f"times {self.jump_size:.3g} in {100 * self.jump_share:.3g} % of the steps"
            if self.jump_share
            else f"times a factor that makes it Student's t with {self.freedom:.3g} degrees of freedom"
        )
        return f"only simulable, Gaussian, {spread_words(self.factor)}, {law}"

    def sample_transition(self, x: Array, rng: np.random.Generator, dt: float, control: Any, step: int) -> Array:
        """Draw a successor of each state, (n, d) -> (n, d)."""
        n = len(x)
        moved = rng.standard_normal(x.shape) @ self.factor.T
        if self.jump_share:
            scale = np.where(rng.random(n) < self.jump_share, self.jump_size, 1.0)
        else:
            scale = 1 / np.sqrt(rng.chisquare(self.freedom, n) / self.freedom)
        moved *= scale[:, None]
        moved += self.drift(x)
        return moved
