"""The sampler contract."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points


@runtime_checkable
class Sampler(Protocol):
    """Anything that turns a mixture into n points.

    A deterministic sampler ignores `rng` and returns the same points for the same input, to the last bit on machines of one
    kind; on others, up to what their rounding makes of it.
    """

    def sample(self, mixture: GaussianMixture, n: int, rng: np.random.Generator | None = None) -> Points:
        """Return `n` weighted points that represent `mixture`."""
        ...


def as_sampler(name: str, sampler: Any) -> Sampler:
    """Return `sampler` if it follows the contract.

    Raises
    ------
    TypeError
        If it is a class, or has no method ``sample``.
    """
    if isinstance(sampler, type):
        raise TypeError(f"{name}: expected an instance, got the class {sampler.__name__}")
    if not isinstance(sampler, Sampler):
        raise TypeError(f"{name}: expected an object with sample(mixture, n, rng), got {sampler!r}")
    return sampler


def drawn(sampler: Sampler, mixture: GaussianMixture, n: int, rng: np.random.Generator | None) -> Points:
    """Return what the sampler draws.

    Raises
    ------
    TypeError
        If these are not `Points`.
    """
    points = sampler.sample(mixture, n, rng)
    if not isinstance(points, Points):
        raise TypeError(
            f"sampler: expected herdfilter.Points from {type(sampler).__name__}.sample, "
            f"got {type(points).__name__}"
        )
    return points
