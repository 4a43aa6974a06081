"""Observations: a view, its noise, and the steps at which there is one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array
from herdfilter.angles import wrap_angles
from herdfilter.models.parts import as_observation
from herdfilter.models.random._numbers import listed
from herdfilter.models.random.views import View


@dataclass(frozen=True)
class Schedule:
    """Observed at `length` steps out of every `period`, from step `first` on; at every step unless given."""

    period: int = 1
    length: int = 1
    first: int = 1

    def missing(self, step: int) -> bool:
        """Whether there is no observation at a step."""
        return (step - self.first) % self.period >= self.length

    @property
    def words(self) -> str:
        """The schedule in words."""
        if self.period == 1:
            return "at every step"
        steps = f"steps {self.first} to {self.first + self.length - 1}" if self.length > 1 else f"step {self.first}"
        return f"at {steps} and every {self.period} steps later, else missing"


@dataclass(frozen=True, eq=False)
class Gaussian:
    """A view with independent Gaussian noise of standard deviations `sd`, (k,)."""

    view: View
    sd: Array
    schedule: Schedule

    @property
    def size(self) -> int:
        """Number of entries of an observation."""
        return len(self.sd)

    @property
    def words(self) -> str:
        """What is observed, in words."""
        return f"{self.view.words}; {self.schedule.words}"

    @property
    def noise_words(self) -> str:
        """The noise in words."""
        return f"Gaussian, standard deviation {listed(self.sd)}"

    def scaled(self, x: Array) -> Array:
        """Return the view in standard deviations of its noise, (n, d) -> (n, k), as a grid must resolve it."""
        return self.view(x) / self.sd

    def observation_mean(self, x: Array, step: int) -> Array:
        """Mean of the observation, (n, d) -> (n, k)."""
        return self.view(x)

    def observation_covariance(self, step: int) -> Array:
        """Covariance of the observation's noise, (k, k)."""
        return np.diag(self.sd**2)

    def log_likelihood(self, z: ArrayLike, x: Array, step: int) -> Array:
        """Log-density of observation `z`, shape (k,), at each state; (n, d) -> (n,)."""
        scaled = self.residuals(z, x)
        peak = np.log(self.sd).sum() + 0.5 * self.size * math.log(2 * math.pi)
        return -0.5 * np.einsum("ij,ij->i", scaled, scaled) - peak

    def residuals(self, z: ArrayLike, x: Array) -> Array:
        """Difference of the observation from its mean at each state, in standard deviations, (n, k)."""
        scaled = self.view(x)
        np.subtract(as_observation(z, self.size), scaled, out=scaled)
        scaled /= self.sd
        return scaled

    def noise(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """Draw noise of unit scale."""
        return rng.standard_normal(shape)

    def sample_observation(self, x: Array, rng: np.random.Generator, step: int) -> Array:
        """Draw an observation of each state, (n, d) -> (n, k); NaN at a step without."""
        if self.schedule.missing(step):
            return np.full((len(x), self.size), np.nan)
        seen = self.view(x)
        seen += self.sd * self.noise(seen.shape, rng)
        return seen


@dataclass(frozen=True, eq=False)
class Angle(Gaussian):
    """Angles with Gaussian noise, in radians."""

    @property
    def observation_circular(self) -> tuple[int, ...]:
        """Indices of the angles: all entries."""
        return tuple(range(self.size))

    def residuals(self, z: ArrayLike, x: Array) -> Array:
        """Difference, the short way round, in standard deviations."""
        difference = as_observation(z, self.size) - self.view(x)
        return wrap_angles(difference, self.observation_circular) / self.sd

    def sample_observation(self, x: Array, rng: np.random.Generator, step: int) -> Array:
        """Draw angles between -pi and pi."""
        return wrap_angles(super().sample_observation(x, rng, step), self.observation_circular)


@dataclass(frozen=True, eq=False)
class HeavyTailed(Gaussian):
    """A view with noise from Student's t distribution, of scale `sd` and `freedom` degrees of freedom, above 2."""

    freedom: float

    @property
    def noise_words(self) -> str:
        """The noise in words."""
        return f"Student's t with {self.freedom:.3g} degrees of freedom, scale {listed(self.sd)}"

    def noise(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """Draw noise of unit scale."""
        return rng.standard_t(self.freedom, shape)

    def observation_covariance(self, step: int) -> Array:
        """Covariance of the observation's noise, (k, k)."""
        return np.diag(self.sd**2 * self.freedom / (self.freedom - 2))

    def log_likelihood(self, z: ArrayLike, x: Array, step: int) -> Array:
        """Log-density of observation `z`, shape (k,), at each state; (n, d) -> (n,)."""
        nu, scaled = self.freedom, self.residuals(z, x)
        peak = math.lgamma((nu + 1) / 2) - math.lgamma(nu / 2) - 0.5 * math.log(nu * math.pi)
        np.square(scaled, out=scaled)
        scaled /= nu
        return self.size * peak - np.log(self.sd).sum() - 0.5 * (nu + 1) * np.log1p(scaled).sum(axis=1)


@dataclass(frozen=True, eq=False)
class Counts:
    """Independent Poisson counts, whose means are the view.

    Their variance is their mean, different from state to state: there is no one `observation_covariance`, and thus no
    `observation_mean` either, so that no Kalman filter takes a wrong one.
    """

    view: View
    size: int
    schedule: Schedule

    @property
    def words(self) -> str:
        """What is observed, in words."""
        return f"counts with mean {self.view.words}; {self.schedule.words}"

    @property
    def noise_words(self) -> str:
        """The noise in words."""
        return "Poisson"

    def scaled(self, x: Array) -> Array:
        """Return the view in standard deviations of the counts: twice their root has a variance of one."""
        return 2 * np.sqrt(self.view(x))

    def log_likelihood(self, z: ArrayLike, x: Array, step: int) -> Array:
        """Log-probability of counts `z`, shape (k,), at each state; (n, d) -> (n,)."""
        z = as_observation(z, self.size)
        if not (z >= 0).all():
            raise ValueError(f"z: expected counts of at least 0, got {z}")
        mean = self.view(x)
        return np.log(mean) @ z - mean.sum(axis=1) - sum(math.lgamma(count + 1) for count in z)

    def sample_observation(self, x: Array, rng: np.random.Generator, step: int) -> Array:
        """Draw counts at each state, (n, d) -> (n, k); NaN at a step without."""
        if self.schedule.missing(step):
            return np.full((len(x), self.size), np.nan)
        return rng.poisson(self.view(x)).astype(np.float64)
