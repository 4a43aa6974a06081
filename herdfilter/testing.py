"""Checks of what every sampler must do, for a test of your own sampler: `check_sampler`; and mixtures to try it on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

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

    def draw(mixture: GaussianMixture, n: int, rng: Any = 0) -> Points:
        if sizes is not None:
            n = min(sizes(mixture.dim, len(mixture)), key=lambda size: abs(size - n))
        points = sampler.sample(mixture, n, None if rng is None else np.random.default_rng(rng))
        if points.x.shape != (n, mixture.dim) or points.weights.shape != (n,):
            raise AssertionError(
                f"expected shapes ({n}, {mixture.dim}), ({n},), got {points.x.shape}, {points.weights.shape}"
            )
        return points

    checks: dict[str, Callable[[int], None]] = {
        "form": partial(_check_form, draw, signed_weights),
        "seeds": partial(_check_seeds, draw, deterministic),
        "singular covariances": partial(_check_singular, draw),
    }
    if moments:
        checks["moments"] = partial(_check_moments, draw, deterministic)
    faults = []
    for name, check in checks.items():
        for d in dims:
            try:
                check(d)
            except Exception as error:
                faults.append(f"- {name}, d = {d}: {error or type(error).__name__}")
    if faults:
        raise AssertionError("\n".join([f"{sampler!r} has {len(faults)} faults:", *faults]))


def _check_form(draw: Callable[..., Points], signed_weights: bool, d: int) -> None:
    for components, n in product((1, 4), (1, 2, 23)):
        points = draw(random_mixture(0, d, components), n)
        assert np.isfinite(points.x).all(), "expected finite points"
        assert abs(points.weights.sum() - 1) <= 1e-12, (
            f"expected weights that sum to 1, got {points.weights.sum():.15g}"
        )
        assert signed_weights or points.weights.min() >= 0, (
            f"expected no negative weight, got {points.weights.min():g}"
        )


def _check_seeds(draw: Callable[..., Points], deterministic: bool, d: int) -> None:
    mixture = random_mixture(8, d)
    rng = np.random.default_rng(0)
    state = rng.bit_generator.state
    first = draw(mixture, 30, rng)
    x = first.x.copy()
    redrawn = [draw(mixture, 30, rng).x, draw(mixture, 30, 1).x, draw(mixture, 30, None).x]
    # the caller owns the points: a sampler that keeps them would return NaN next
    first.x[:] = np.nan
    assert np.array_equal(draw(mixture, 30).x, x), "expected the same points from the same seed"
    assert np.array_equal(mixture.means, random_mixture(8, d).means), (
        "expected a mixture that is left alone"
    )
    if deterministic:
        assert all(np.array_equal(points, x) for points in redrawn), (
            "expected the same points from any generator"
        )
        assert rng.bit_generator.state == state, "expected a generator that is left alone"
    else:
        assert not any(np.array_equal(points, x) for points in redrawn), (
            "expected other points from another generator"
        )


def _check_singular(draw: Callable[..., Points], d: int) -> None:
    # Covariances without spread in the last dimension: all means lie in one plane, and so must all points.
    flat = np.diag([1.0] * (d - 1) + [0.0])
    for components in (1, 3) if d > 1 else ():
        means = 2 * np.random.default_rng(5).standard_normal((components, d)) @ flat
        mixture = GaussianMixture(np.ones(components), means, flat)
        points = draw(mixture, 60)
        off_plane = np.abs(points.x[:, -1]).max()
        assert off_plane < 1e-3, (
            f"expected points within 1e-3 of the mixture's plane, got {off_plane:.3g}"
        )
        ratios = np.linalg.eigvals(
            np.linalg.solve(mixture.covariance[:-1, :-1], points.covariance[:-1, :-1])
        ).real
        assert ratios.min() > 0.3, (
            f"expected 0.3 of the variance along every direction of it, got {ratios.min():.3g}"
        )


def _check_moments(draw: Callable[..., Points], deterministic: bool, d: int) -> None:
    for seed, n in product(range(3), (20, 320)):
        mixture = random_mixture(10 + seed, d)
        points = draw(mixture, n, seed)
        n = len(points)
        whiten = np.linalg.inv(np.linalg.cholesky(mixture.covariance))
        off = float(np.linalg.norm(whiten @ (points.mean - mixture.mean)))
        # 4.5 standard errors of independent draws
        allowed = 4.5 * np.sqrt(max(1.0, d / 2) / n)
        if deterministic:
            allowed = max(1.0, d / 2) * (0.03 if n >= 100 else 0.2 * max(1.0, np.sqrt(20 / n)))
        assert off <= allowed, (
            f"n = {n}: expected the mean within {allowed:.3g} standard deviations, got {off:.3g}"
        )
        ratios = np.linalg.eigvalsh(whiten @ points.covariance @ whiten.T)
        spread = f"expected variances of 0.5 to 2 of the mixture's, got {ratios[0]:.3g} to {ratios[-1]:.3g}"
        assert n < 100 or 0.5 <= ratios[0] <= ratios[-1] <= 2, f"n = {n}: {spread}"


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
