"""The sampler contract."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from herdfilter._checks import as_generator, check_count
from herdfilter.mixture import GaussianMixture, as_mixture
from herdfilter.points import Points


@runtime_checkable
class Sampler(Protocol):
    """Anything that turns a mixture into n points.

    A deterministic sampler ignores `rng` and returns the same points for the same input, to the last bit on machines of one
    kind; on others, up to what their rounding makes of it.

    A sampler that does not serve every dimension says so by an attribute ``largest_dim``; proposals ask for it before a run.

    Examples
    --------
    >>> class Corners:
    ...     # Four points at one standard deviation of every coordinate
    ...     def sample(self, mixture, n=4, rng=None):
    ...         signs = np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])
    ...         return hf.Points(mixture.mean + signs * np.sqrt(np.diag(mixture.covariance)))
    >>> isinstance(Corners(), hf.Sampler)
    True
    >>> points = Corners().sample(hf.GaussianMixture([1.0], [[5, 0]], np.diag([4.0, 1.0])))
    >>> print(points.mean, points.covariance.tolist())
    [5. 0.] [[4.0, 0.0], [0.0, 1.0]]
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


def asked(mixture: Any, n: Any, rng: Any) -> int:
    """Return the number of points that a sampler is asked for, after a check of all that it is given."""
    as_mixture("mixture", mixture)
    if rng is not None:
        as_generator(rng)
    return check_count("n", n)


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
            f"sampler: expected herdfilter.Points from {type(sampler).__name__}.sample, got {type(points).__name__}"
        )
    return points


def check_dim(name: str, sampler: Any, dim: int, user: str) -> None:
    """Raise ValueError if a sampler, or the one that it is built on, serves fewer dimensions than these.

    `name` is what has the dimension, and `user` what uses the sampler; both are for the message.
    """
    largest = getattr(sampler, "largest_dim", None)
    if largest is not None and dim > largest:
        raise ValueError(
            f"{name}: {user}{type(sampler).__name__} expected dimension {largest}, got {dim}; "
            "KernelHerding, SobolSampling and RandomSampling take any"
        )
    if hasattr(sampler, "sampler"):
        check_dim(name, sampler.sampler, dim, user)
