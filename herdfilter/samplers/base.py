"""The sampler contract."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from herdfilter._checks import as_generator, check_count, short_repr
from herdfilter.mixture import GaussianMixture, as_mixture
from herdfilter.points import Points


@runtime_checkable
class Sampler(Protocol):
    """A method that turns a mixture into n points.

    A deterministic sampler ignores `rng` and returns the same points for the same input, to the last bit on machines of one
    kind. The optional attribute ``largest_dim`` is the largest dimension it serves; proposals check it before a run.

    Examples
    --------
    >>> class Corners:
    ...     # Four points at one standard deviation of every coordinate
    ...     def sample(self, mixture, n=4, rng=None):
    ...         signs = np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])
    ...         return hf.Points(mixture.mean + signs * np.sqrt(np.diag(mixture.covariance)))
    >>> print(Corners().sample(hf.GaussianMixture([1.0], [[5, 0]], np.eye(2))).mean, isinstance(Corners(), hf.Sampler))
    [5. 0.] True
    """

    def sample(self, mixture: GaussianMixture, n: int, rng: np.random.Generator | None = None) -> Points:
        """Return `n` weighted points that represent `mixture`."""


def as_sampler(name: str, sampler: Any) -> Sampler:
    """Return `sampler` if it follows the contract; raise TypeError if it is a class, or has no method ``sample``."""
    if isinstance(sampler, type):
        raise TypeError(f"{name}: expected an instance, got the class {sampler.__name__}")
    if not isinstance(sampler, Sampler):
        raise TypeError(f"{name}: expected an object with sample(mixture, n, rng), got {short_repr(sampler)}")
    return sampler


def check_request(mixture: Any, n: Any, rng: Any) -> int:
    """Check the arguments of a sampler's `sample`; return the number of points."""
    as_mixture("mixture", mixture)
    if rng is not None:
        as_generator(rng)
    return check_count("n", n)


def draw_points(sampler: Sampler, mixture: GaussianMixture, n: int, rng: np.random.Generator | int | None) -> Points:
    """Draw points with a sampler; raise TypeError unless it returns `Points`."""
    points = sampler.sample(mixture, n, rng if rng is None else as_generator(rng))
    if not isinstance(points, Points):
        raise TypeError(
            f"sampler: expected herdfilter.Points from {type(sampler).__name__}.sample, got {type(points).__name__}"
        )
    return points


def check_dim(name: str, sampler: Any, dim: int, user: str) -> None:
    """Raise ValueError, naming argument and user, if a sampler or the one inside it serves fewer dimensions than `dim`."""
    largest = getattr(sampler, "largest_dim", None)
    if largest is not None and dim > largest:
        raise ValueError(
            f"{name}: {user}{type(sampler).__name__} expected dimension {largest}, got {dim}; "
            "KernelHerding, SobolSampling and RandomSampling take any"
        )
    if hasattr(sampler, "sampler"):
        check_dim(name, sampler.sampler, dim, user)
