"""Checks of what every sampler must do, for a test of your own sampler: `check_sampler`; and mixtures to try it on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
from scipy.linalg import eigh

from herdfilter._checks import check_count
from herdfilter._repr import listing_of
from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points
from herdfilter.samplers.base import Sampler

__all__ = ["check_sampler", "random_mixture"]
__dir__ = listing_of(globals())

Draw = Callable[..., Points]  # of a mixture, a number of points and a seed


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

    def draw(mixture: GaussianMixture, n: int, rng: Any = 0) -> Points:
        if sizes is not None:
            n = min(sizes(mixture.dim, len(mixture)), key=lambda size: abs(size - n))
        points = sampler.sample(mixture, n, None if rng is None else np.random.default_rng(rng))
        shapes = f"{points.x.shape}, {points.weights.shape}"
        expected = f"({n}, {mixture.dim}), ({n},)"
        assert shapes == expected, f"expected shapes {expected}, got {shapes}"
        total = points.weights.sum()
        lowest = points.weights.min()
        assert np.isfinite(points.x).all(), "expected finite points"
        assert abs(total - 1) <= 1e-12, f"expected weights that sum to 1, got {total:.15g}"
        assert signed_weights or lowest >= 0, f"expected no negative weight, got {lowest:g}"
        return points

    checks: dict[str, Callable[[int], Any]] = {
        # every draw checks the form, of many points and of few
        "form": lambda d: [draw(random_mixture(0, d, m), n) for m in (1, 4) for n in (1, 2, 23)],
        "seeds": lambda d: _check_seeds(draw, d, deterministic),
        "singular covariances": lambda d: _check_singular(draw, d),
        "moments": lambda d: _check_moments(draw, d, deterministic) if moments else None,
    }
    faults = []
    for (name, check), d in product(checks.items(), dims):
        try:
            check(d)
        except Exception as error:
            faults.append(f"- {name}, d = {d}: {error or type(error).__name__}")
    if faults:
        raise AssertionError("\n".join([f"{sampler!r} has {len(faults)} faults:", *faults]))


def _check_seeds(draw: Draw, d: int, deterministic: bool) -> None:
    mixture = random_mixture(8, d)
    rng = np.random.default_rng(0)
    state = rng.bit_generator.state
    first = draw(mixture, 30, rng)
    x = first.x.copy()
    equal = [np.array_equal(draw(mixture, 30, seed).x, x) for seed in (rng, 1, None)]
    # the caller owns the points: a sampler that keeps them would return NaN next
    first.x[:] = np.nan
    assert np.array_equal(draw(mixture, 30).x, x), "expected the same points once more"
    assert np.array_equal(mixture.means, random_mixture(8, d).means), "the mixture was changed"
    if deterministic:
        assert all(equal), "expected the same points from any generator"
        assert rng.bit_generator.state == state, "expected a generator that is left alone"
    else:
        assert not any(equal), "expected other points from another generator"


def _check_singular(draw: Draw, d: int) -> None:
    # Covariances without spread in the last dimension: all means lie in one plane, and so must all points.
    flat = np.diag([1.0] * (d - 1) + [0.0])
    for components in (1, 3) if d > 1 else ():
        means = 2 * np.random.default_rng(5).standard_normal((components, d)) @ flat
        mixture = GaussianMixture(np.ones(components), means, flat)
        points = draw(mixture, 60)
        off = np.abs(points.x[:, -1]).max()
        assert off < 1e-3, f"expected points within 1e-3 of the mixture's plane, got {off:.3g}"
        # Generalised eigenvalues are the ratios of the variances along all directions, in ascending order.
        low = eigh(points.covariance[:-1, :-1], mixture.covariance[:-1, :-1])[0][0]
        # Points in a plane leave out a direction if the sampler has lost one to the singular covariance.
        assert low > 0.3, f"expected 0.3 of the variance along every direction, got {low:.3g}"


def _check_moments(draw: Draw, d: int, deterministic: bool) -> None:
    for seed, size in product(range(3), (20, 320)):
        mixture = random_mixture(10 + seed, d)
        points = draw(mixture, size, seed)
        n = len(points)
        shift = points.mean - mixture.mean
        off = np.sqrt(shift @ np.linalg.solve(mixture.covariance, shift))
        # 4.5 standard errors of independent draws
        allowed = 4.5 * np.sqrt(max(1.0, d / 2) / n)
        if deterministic:
            allowed = max(1.0, d / 2) * (0.03 if n >= 100 else 0.2 * max(1.0, np.sqrt(20 / n)))
        assert off <= allowed, f"n = {n}: expected a mean within {allowed:.3g} sd, got {off:.3g}"
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
    weights = rng.dirichlet(2 * np.ones(n_components))
    return GaussianMixture(weights, 3 * rng.standard_normal((n_components, dim)), covariances)
