"""Sliced Wasserstein distance between weighted points and a Gaussian mixture, exact along every direction.

Along a direction the mixture is a mixture again, with distribution function F, and the points are steps. With the
integrated distribution function ``S(q) = int_-inf^q F``, both orders need the quantiles of the mixture only as the place
where a function is stationary: order 1 splits every gap between points where F crosses the steps, order 2 takes the
generalised Lorenz curve ``L(c) = int_0^c F^-1 = max_q c q - S(q)``. An error of a quantile enters squared, and quantiles
on plateaus or jumps of F need not be unique.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from herdfilter._checks import Array, as_any, as_array, check_count, short_repr
from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points, check_pair

Index = NDArray[np.signedinteger[Any]]

PROJECTIONS_AT_ONCE = 2**16  # numbers in memory: fits in the cache
QUANTILE_ERROR = 1e-15
QUANTILE_STEPS = 200
ROOT_2PI = np.sqrt(2 * np.pi)


def sliced_wasserstein(points: Points, mixture: GaussianMixture, order: int = 2, directions: int | ArrayLike = 128) -> float:
    """Return the sliced Wasserstein distance, the root mean of :math:`W_p^p` over directions (Bonneel and others 2015).

    W_p is the Wasserstein distance of order p between points and mixture, both projected on a direction. It is exact up to
    rounding, which moves a fraction of 1e-16 of the weight. In state units; scale the state first if its dimensions differ
    in unit.

    Parameters
    ----------
    points : Points
        n points in d dimensions.
    mixture : GaussianMixture
        The target; components without extent are allowed.
    order : {1, 2}
        The order p.
    directions : int or array_like of shape (k, d)
        Number of directions, or vectors along them. A number stands for a fixed set, the same at every call: one direction
        in one dimension; equal steps of angle in two; orthonormal bases, uniformly distributed, above (rounded up to whole
        bases). On mixtures of five components and 60 points the default of 128 leaves an error below 5e-4 of the distance in
        two dimensions, and below 2 % in three to eight; there it falls as one over the root of the number.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([1.0], [[0, 0]], np.eye(2))
    >>> points = hf.KernelHerding().sample(mixture, 20)
    >>> random = hf.RandomSampling().sample(mixture, 20, rng=0)
    >>> hf.sliced_wasserstein(points, mixture) < hf.sliced_wasserstein(random, mixture)
    True
    """
    if not isinstance(order, int | np.integer) or isinstance(order, bool) or order not in (1, 2):
        raise ValueError(f"order: expected 1 or 2, got {short_repr(order)}")
    check_pair(points, mixture)
    if as_any("directions", directions).ndim == 0:
        axes = unit_vectors(check_count("directions", directions), mixture.dim)
    else:
        axes = as_array("directions", directions, (None, mixture.dim))
        length = np.linalg.norm(axes, axis=1)
        if len(axes) == 0 or (length == 0).any():
            raise ValueError(f"directions: expected vectors of positive length, got {short_repr(axes.tolist())}")
        axes = axes / length[:, None]
    step = max(1, PROJECTIONS_AT_ONCE // max(len(points), len(mixture)))
    parts = (axes[start : start + step] for start in range(0, len(axes), step))
    total = sum(_projected_distances(part, points, mixture, order).sum() for part in parts)
    return float(max(total / len(axes), 0.0) ** (1 / order))


def unit_vectors(count: int, dim: int) -> Array:
    """Return at least `count` unit vectors (k, dim) in orthonormal bases, the same at every call.

    The average of a quadratic function over a basis, such as the squared distance of two means, is exact.
    """
    if dim == 1:
        return np.ones((1, 1))
    if dim == 2:
        even = count + count % 2
        angle = np.pi * (np.arange(even) + 0.5) / even  # of the half circle: opposite directions are the same
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)
    normal = np.random.default_rng(0).standard_normal((-(-count // dim), dim, dim))
    return np.swapaxes(np.linalg.qr(normal)[0], 1, 2).reshape(-1, dim)


def _projected_distances(axes: Array, points: Points, mixture: GaussianMixture, order: int) -> Array:
    """Return ``W_p^p`` along each of the directions (k, d), shape (k,)."""
    keep = mixture.weights > 0
    weights = mixture.weights[keep]
    cov = mixture.distinct_covariances if mixture.shared else mixture.distinct_covariances[keep]
    centre = mixture.mean
    means = axes @ (mixture.means[keep] - centre).T
    variances = np.einsum("ki,mij,kj->km", axes, cov, axes, optimize=True)
    line = _Line(weights, means, np.sqrt(np.maximum(variances, 0.0)))
    x = axes @ (points.x - centre).T
    place = np.argsort(x, axis=1)
    x = np.take_along_axis(x, place, axis=1)
    w = points.weights[place]
    level = np.cumsum(w, axis=1)[:, :-1]
    quantile = line.quantile(level, x)
    if order == 2:
        second = (weights * (line.means**2 + line.sds**2)).sum(1)
        inner = np.isfinite(quantile)  # L is 0 at levels 0 and, as the mean is 0, 1
        quantile = np.where(inner, quantile, 0.0)
        lorenz = np.where(inner, level * quantile - line.integral(quantile), 0.0)
        # sum_i x_i (L_i - L_(i-1)) by parts, with L_n the mean, which is 0
        return np.asarray((w * x**2).sum(1) + second + 2 * (np.diff(x, axis=1) * lorenz).sum(1))
    split = np.clip(quantile, x[:, :-1], x[:, 1:])
    at_x, at_split = line.integral(x), line.integral(split)
    below = level * (split - x[:, :-1]) - (at_split - at_x[:, :-1])
    above = at_x[:, 1:] - at_split - level * (x[:, 1:] - split)
    inside: Array = (below + above).sum(1)
    return at_x[:, 0] + (at_x[:, -1] - x[:, -1]) + inside


@dataclass(frozen=True, eq=False)
class _Line:
    """A mixture along k directions: weights (M,), all positive, means and standard deviations (k, M)."""

    weights: Array
    means: Array
    sds: Array

    def integral(self, x: Array) -> Array:
        """Return the integrated distribution function S at places (k, j)."""
        row = np.repeat(np.arange(len(x)), x.shape[1])
        return self._sums(x.ravel(), row, integrated=True)[0].reshape(x.shape)

    def quantile(self, level: Array, x: Array) -> Array:
        """Return quantiles at rising levels (k, j), by bracketed Newton steps from the places `x` (k, n), sorted."""
        quantile = np.where(level > 0, np.inf, -np.inf)
        wanted = (level > 0) & (level < 1)
        if not wanted.any():
            return quantile
        row = np.nonzero(wanted)[0]
        level = level[wanted]
        lo, hi, at_lo, at_hi = self._brackets(row, level, x)
        scale: Array = np.sqrt((self.means**2 + self.sds**2) @ self.weights)[row]
        share = np.clip((level - at_lo) / np.maximum(at_hi - at_lo, np.finfo(float).tiny), 0.01, 0.99)
        q: Array = lo + share * (hi - lo)
        found = q.copy()
        open_ = np.arange(len(q))
        previous: Array = np.full(len(q), np.inf)
        for _ in range(QUANTILE_STEPS):
            cdf, density = self._sums(q, row)
            gap: Array = cdf - level
            found[open_] = q
            lo, hi = np.where(gap < 0, q, lo), np.where(gap < 0, hi, q)
            # L errs by at most |gap| (hi - lo) here.
            going = (np.abs(gap) > QUANTILE_ERROR) & (np.abs(gap) * (hi - lo) > QUANTILE_ERROR * scale)
            if not going.any():
                break
            open_, row = open_[going], row[going]
            q, level, scale, lo, hi, gap, density, previous = (
                a[going] for a in (q, level, scale, lo, hi, gap, density, previous)
            )
            newton = q - gap / np.maximum(density, np.finfo(float).tiny)
            inside = (newton > lo) & (newton < hi) & (np.abs(gap) < 0.5 * previous)
            q, previous = np.where(inside, newton, lo + 0.5 * (hi - lo)), np.abs(gap)
        quantile[wanted] = found
        return quantile

    def _brackets(self, row: Index, level: Array, x: Array) -> tuple[Array, Array, Array, Array]:
        """Bracket every level between two of the places (k, n) or ends of the mixture; return these, and F there."""
        reach = np.array([[scipy.special.ndtri(level.min())], [scipy.special.ndtri(level.max())]])[:, :, None] * self.sds
        ends = np.stack([(self.means + reach[0]).min(1), (self.means + reach[1]).max(1)], axis=1)
        nodes = np.concatenate([ends[:, :1], np.clip(x, ends[:, :1], ends[:, 1:]), ends[:, 1:]], axis=1)
        at = self._sums(nodes.ravel(), np.repeat(np.arange(len(x)), nodes.shape[1]))[0].reshape(nodes.shape)
        at = np.maximum.accumulate(at, axis=1)
        right = np.empty(len(level), dtype=np.int64)
        cuts = np.searchsorted(row, np.arange(len(x) + 1))
        for k in range(len(x)):
            part = slice(cuts[k], cuts[k + 1])
            right[part] = np.searchsorted(at[k], level[part])
        right = np.clip(right, 1, nodes.shape[1] - 1)
        return nodes[row, right - 1], nodes[row, right], at[row, right - 1], at[row, right]

    def _sums(self, x: Array, row: Index, integrated: bool = False) -> tuple[Array, Array]:
        """Return F and the density, or S, at places x (j,) along the directions `row` (j,)."""
        first, second = np.empty(len(x)), np.empty(len(x))
        step = max(1, PROJECTIONS_AT_ONCE // len(self.weights))
        for start in range(0, len(x), step):
            part = slice(start, start + step)
            # A component without extent jumps: z is then infinite, or 0 on the jump.
            with np.errstate(over="ignore"):
                sds = np.maximum(self.sds[row[part]], np.finfo(float).tiny)
                away = x[part, None] - self.means[row[part]]
                z = away / sds
                bell = np.exp(-0.5 * z * z) / ROOT_2PI
            if integrated:
                first[part] = (away * scipy.special.ndtr(z) + sds * bell) @ self.weights
            else:
                first[part], second[part] = scipy.special.ndtr(z) @ self.weights, (bell / sds) @ self.weights
        return first, second
