"""Checks of what every sampler must do, for a test of your own sampler: `check_sampler`; and mixtures to try it on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.linalg import eigh

from herdfilter._checks import check_count
from herdfilter._repr import listing_of
from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points
from herdfilter.samplers.base import Sampler

__all__ = ["check_sampler", "hostile_mixture", "random_mixture"]
__dir__ = listing_of(globals())


def check_sampler(
    sampler: Sampler,
    *,
    deterministic: bool = True,
    moments: bool = True,
    signed_weights: bool = False,
    sizes: Callable[[int, int], Iterable[int]] | None = None,
    dims: Sequence[int] = (1, 2, 3, 5),
) -> None:
    """Check form, seeds, singular covariances and moments of a sampler; raise one AssertionError that lists all faults.

    Parameters
    ----------
    deterministic : bool
        True promises the same points for any seed; False promises draws that a seed reproduces.
    moments : bool
        Promises a mean better than that of independent draws (up to 4.5 of their standard errors for a random sampler), and
        the variance along every direction within a factor of two, for mixtures of five overlapping components.
    signed_weights : bool
        Weights sum to 1, but may be negative.
    sizes : callable, optional
        ``(dim, components) -> allowed n``, if others are refused.
    dims : sequence of int

    Examples
    --------
    >>> hf.testing.check_sampler(hf.SobolSampling(), dims=(1,))
    """
    case = _Case(sampler, deterministic, signed_weights, sizes)
    checks = {"form": case.form, "seeds": case.seeds, "singular covariances": case.singular}
    if moments:
        checks["moments"] = case.moments
    faults = []
    for (name, check), d in product(checks.items(), dims):
        try:
            check(d)
        except Exception as error:
            faults.append(f"- {name}, d = {d}: {error or type(error).__name__}")
    if faults:
        raise AssertionError("\n".join([f"{sampler!r} has {len(faults)} faults:", *faults]))


@dataclass(frozen=True)
class _Case:
    """A sampler and its promises; each check is called with a dimension."""

    sampler: Sampler
    deterministic: bool
    signed_weights: bool
    sizes: Callable[[int, int], Iterable[int]] | None

    def draw(self, mixture: GaussianMixture, n: int, rng: Any = 0) -> Points:
        d = mixture.dim
        if self.sizes is not None:
            n = min(self.sizes(d, len(mixture)), key=lambda size: abs(size - n))
        rng = None if rng is None else np.random.default_rng(rng)
        points = self.sampler.sample(mixture, n, rng)
        shapes = f"{points.x.shape}, {points.weights.shape}"
        assert shapes == f"({n}, {d}), ({n},)", f"expected shapes ({n}, {d}), ({n},), got {shapes}"
        return points

    def form(self, d: int) -> None:
        for components, n in product((1, 4), (1, 2, 23)):
            points = self.draw(random_mixture(0, d, components), n)
            total = points.weights.sum()
            smallest = points.weights.min()
            assert np.isfinite(points.x).all(), "expected finite points"
            assert abs(total - 1) <= 1e-12, f"expected weights that sum to 1, got {total:.15g}"
            assert self.signed_weights or smallest >= 0, (
                f"expected no negative weight, got {smallest:g}"
            )

    def seeds(self, d: int) -> None:
        mixture = random_mixture(8, d)
        rng = np.random.default_rng(0)
        state = rng.bit_generator.state
        first = self.draw(mixture, 30, rng)
        x = first.x.copy()
        equal = [np.array_equal(self.draw(mixture, 30, seed).x, x) for seed in (rng, 1, None)]
        # the caller owns the points: a sampler that keeps them would return NaN next
        first.x[:] = np.nan
        assert np.array_equal(self.draw(mixture, 30).x, x), "expected the same points once more"
        assert np.array_equal(mixture.means, random_mixture(8, d).means), "the mixture was changed"
        if self.deterministic:
            assert all(equal), "expected the same points from any generator"
            assert rng.bit_generator.state == state, "expected a generator that is left alone"
        else:
            assert not any(equal), "expected other points from another generator"

    def singular(self, d: int) -> None:
        # Covariances without spread in the last dimension: all means lie in one plane, and so must all points.
        flat = np.diag([1.0] * (d - 1) + [0.0])
        for components in (1, 3) if d > 1 else ():
            means = 2 * np.random.default_rng(5).standard_normal((components, d)) @ flat
            mixture = GaussianMixture(np.ones(components), means, flat)
            points = self.draw(mixture, 60)
            off = np.abs(points.x[:, -1]).max()
            assert off < 1e-3, f"expected points within 1e-3 of the mixture's plane, got {off:.3g}"
            # Generalised eigenvalues are the ratios of the variances along all directions, in ascending order.
            low = eigh(points.covariance[:-1, :-1], mixture.covariance[:-1, :-1])[0][0]
            # Points in a plane leave out a direction if the sampler has lost one to the singular covariance.
            assert low > 0.3, f"expected 0.3 of the variance along every direction, got {low:.3g}"

    def moments(self, d: int) -> None:
        for seed, size in product(range(3), (20, 320)):
            mixture = random_mixture(10 + seed, d)
            points = self.draw(mixture, size, seed)
            n = len(points)
            shift = points.mean - mixture.mean
            off = np.sqrt(shift @ np.linalg.solve(mixture.covariance, shift))
            # 4.5 standard errors of independent draws
            allowed = 4.5 * np.sqrt(max(1.0, d / 2) / n)
            if self.deterministic:
                allowed = max(1.0, d / 2) * (0.03 if n >= 100 else 0.2 * max(1.0, np.sqrt(20 / n)))
            assert off <= allowed, (
                f"n = {n}: expected a mean within {allowed:.3g} sd, got {off:.3g}"
            )
            ratios = eigh(points.covariance, mixture.covariance)[0]
            text = f"n = {n}: expected 0.5 to 2 of the variance along any direction, got {ratios}"
            assert n < 100 or 0.5 <= ratios[0] <= ratios[-1] <= 2, text


def random_mixture(seed: int, dim: int, n_components: int = 5) -> GaussianMixture:
    """Return a mixture of overlapping components of random shape, of a total variance of about 10 per dimension.

    Examples
    --------
    >>> hf.testing.random_mixture(seed=1, dim=2, n_components=3)
    GaussianMixture(components=3, dim=2)
    """
    dim = check_count("dim", dim)
    n_components = check_count("n_components", n_components)
    rng = np.random.default_rng(check_count("seed", seed, minimum=0, most=None))
    roots = rng.standard_normal((n_components, dim, dim))
    # Wishart matrices; the identity keeps their smallest eigenvalues away from 0.
    covariances = roots @ roots.transpose(0, 2, 1) / dim + 0.2 * np.eye(dim)
    return GaussianMixture(
        rng.dirichlet(2 * np.ones(n_components)),
        3 * rng.standard_normal((n_components, dim)),
        covariances,
    )


def hostile_mixture(seed: int) -> GaussianMixture:
    """Return one of a wide family of mixtures, of up to 20 components in up to 8 dimensions, on which samplers may fail.

    Examples
    --------
    >>> hf.testing.hostile_mixture(1)
    GaussianMixture(components=13, dim=2, shared)
    """
    rng = np.random.default_rng([check_count("seed", seed, minimum=0, most=None), 77])
    dim = int(rng.choice([1, 2, 3, 4, 6, 8]))
    components = int(rng.integers(1, 21))
    weights = rng.dirichlet(np.full(components, 10 ** rng.uniform(-1, 1)))
    means = 10 ** rng.uniform(-1, 4) * rng.standard_normal((components, dim))
    roots = rng.standard_normal((components, dim, dim))
    kind = rng.choice(["alike", "sizes", "narrow", "flat"])
    if kind == "sizes":
        roots *= 10 ** rng.uniform(-3, 1, (components, 1, 1))
    if kind == "narrow":
        roots *= 10 ** rng.uniform(-4, 0, (components, 1, dim))
    if kind == "flat":
        roots[:, :, : rng.integers(dim)] = 0.0
    covariances = roots @ roots.swapaxes(1, 2)
    return GaussianMixture(weights, means, covariances[0] if rng.random() < 0.3 else covariances)
