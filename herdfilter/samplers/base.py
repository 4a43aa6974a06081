"""The sampler contract."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter.mixture import GaussianMixture, as_mixture, equal_weights
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

    def sample(
        self, mixture: GaussianMixture, n: int, rng: np.random.Generator | None = None
    ) -> Points:
        """Return `n` weighted points that represent `mixture`."""


class MixtureSampler(Sampler):
    """Base class of the samplers here: a subclass has `draw`, and `sample` checks what a user asks for."""

    draws = True
    """False if a subclass overrides `sample`: then `draw` alone would pass by what that adds."""

    def __init_subclass__(cls) -> None:
        cls.draws = cls.sample is MixtureSampler.sample

    def sample(
        self, mixture: GaussianMixture, n: int, rng: np.random.Generator | int | None = None
    ) -> Points:
        """Return `n` points that represent `mixture`; `rng`, a generator, a seed or None, is used for random draws only."""
        check_dim("mixture", self, as_mixture("mixture", mixture).dim, "")
        generator = rng if rng is None else _checks.as_generator(rng)
        x, weights = self.draw(mixture, _checks.check_count("n", n), generator)
        # Points of huge mixtures may be infinite.
        return Points.unchecked(_checks.as_array("x", x, (None, None)), weights)

    def draw(
        self, mixture: GaussianMixture, n: int, rng: np.random.Generator | None
    ) -> tuple[Array, Array]:
        """Return points (n, d) and their weights (n,), which sum to 1; unchecked."""
        raise NotImplementedError


class RatioSampler(MixtureSampler):
    """Base class of samplers that know the densities at their points: a subclass has `draw_weighted`."""

    weighs = True
    """False if a subclass overrides `draw` or `sample`: then `draw_weighted` alone would pass by what that adds."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.weighs = cls.draws and cls.draw is RatioSampler.draw

    def draw(
        self, mixture: GaussianMixture, n: int, rng: np.random.Generator | None
    ) -> tuple[Array, Array]:
        """See `MixtureSampler`; `rng` is not used."""
        return self.draw_weighted(mixture, n, None)[0], equal_weights(n)

    def draw_weighted(
        self, mixture: GaussianMixture, n: int, target_weights: Array | None
    ) -> tuple[Array, Array | None]:
        """Return points (n, d), and the log-ratios (n,) of a target, the same components with other weights, to the mixture.

        All components share one covariance if there is a target.
        """
        raise NotImplementedError


def draw_points(
    sampler: Sampler, mixture: GaussianMixture, n: int, rng: np.random.Generator | None
) -> Points:
    """Draw points with a sampler, for a request that is valid; raise TypeError unless it returns `Points`."""
    if isinstance(sampler, MixtureSampler) and sampler.draws:
        return Points.unchecked(*sampler.draw(mixture, n, rng))
    points = sampler.sample(mixture, n, rng)
    if not isinstance(points, Points):
        raise TypeError(
            f"sampler: expected herdfilter.Points from {type(sampler).__name__}.sample, got {type(points).__name__}"
        )
    return points


def check_dim(name: str, sampler: Any, dim: int, user: str) -> None:
    """Raise ValueError if a sampler, or one that it wraps, serves fewer dimensions than `dim`; `user` precedes its name."""
    largest = getattr(sampler, "largest_dim", None)
    if largest is not None and dim > largest:
        raise ValueError(
            f"{name}: {user}{type(sampler).__name__} expected dimension {largest}, got {dim}; "
            "KernelHerding, SobolSampling and RandomSampling take any"
        )
    if hasattr(sampler, "sampler"):
        check_dim(name, sampler.sampler, dim, user)
