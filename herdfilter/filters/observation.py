"""What was observed at a step, read once for the filter, its proposal and Kalman's update alike."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from herdfilter._checks import Array
from herdfilter.angles import moments, wrap_angles
from herdfilter.models import contract


@dataclass(frozen=True, eq=False)
class Observation:
    """An observation, not missing altogether, and what a model makes of it.

    Attributes
    ----------
    model : object
        A state-space model; see `herdfilter.models.contract`.
    z : ndarray
        The observation in the form that the model's ``log_likelihood`` takes; NaN where an entry is missing.
    step : int
        Its time index.
    """

    model: contract.Model
    z: Array
    step: int

    @classmethod
    def read(
        cls, model: contract.Model, z: Any, step: int, partial: bool | None = None
    ) -> Observation | None:
        """Read what a user gives as an observation; None if it is missing.

        It is missing if it is None or NaN in all entries; without `partial`, also if it is NaN in any entry. The model's
        ``partial_observations`` decides unless `partial` is given.

        Raises
        ------
        ValueError
            If `z` is neither None nor an array of numbers.
        """
        if z is None:
            return None
        try:
            numbers = np.asarray(z, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"z: expected None or an array of numbers, got {z!r}") from None
        missing = np.isnan(numbers)
        if partial is None:
            partial = getattr(model, "partial_observations", False)
        return None if (missing.all() if partial else missing.any()) else cls(model, numbers, step)

    def log_likelihood(self, x: Array) -> Array:
        """Log-likelihood of each state (n, d) by the model, (n,), checked."""
        return contract.log_likelihood(self.model, self.z, x, self.step)

    @cached_property
    def vector(self) -> Array:
        """The observation as a vector (k,); a number is one entry.

        Raises
        ------
        ValueError
            If it has more axes, or an entry is infinite.
        """
        z = np.atleast_1d(self.z)
        if np.isinf(z).any():
            raise ValueError(f"z: expected finite numbers, or NaN where missing, got {z} at step {self.step}")
        if z.ndim != 1:
            raise ValueError(f"z: expected a vector, got shape {z.shape} at step {self.step}")
        return z

    @cached_property
    def kept(self) -> np.ndarray:
        """Indices of the entries that are not missing."""
        return np.flatnonzero(~np.isnan(self.vector))

    @cached_property
    def circular(self) -> tuple[int, ...]:
        """Indices of the angle-valued entries."""
        return contract.observation_circular(self.model, len(self.vector))

    @cached_property
    def noise(self) -> Array:
        """Covariance of the noise of the entries kept."""
        noise = contract.observation_covariance(self.model, len(self.vector), self.step)
        return noise if len(self.kept) == len(noise) else noise[np.ix_(self.kept, self.kept)]

    def expect(self, shape: tuple[int, ...], where: str) -> None:
        """Raise ValueError unless the vector has this shape, that of the result of the model's function `where`."""
        if np.shape(np.atleast_1d(self.z)) != shape:
            raise ValueError(f"z: expected shape {shape}, as of {where}, got {np.shape(self.z)}")

    def residuals(self, predictions: Array) -> Array:
        """Entries kept of ``z - predictions``, angles wrapped, (..., k) -> (..., kept)."""
        return wrap_angles(self.vector - predictions, self.circular)[..., self.kept]


def predicted_moments(model: contract.Model, x: Array, weights: Array, step: int) -> tuple[Array, Array]:
    """Mean (k,) and covariance (k, k) of the mean observations of weighted states (n, d), without noise."""
    seen = contract.observation_mean(model, x, step)
    return moments(seen, weights, contract.observation_circular(model, seen.shape[1]))
