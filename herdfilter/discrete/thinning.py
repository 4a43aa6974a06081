"""Thinning: herding and exchange under the energy kernel choose the members that represent a large sample best."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from herdfilter._checks import (
    LARGEST,
    Array,
    as_array,
    as_dims,
    as_numbers,
    as_particles,
    as_weights,
    check_count,
)
from herdfilter._covariances import regularised
from herdfilter.angles import unwrap_angles

CANDIDATES = (
    2**14
)  # from which a sample of more than twice as many is thinned: one in each of about as many cells
LEAST_CHOICE = 8  # candidates per member; more members than this leaves are chosen block by block
EXACT_MEANS = (
    256  # candidates whose mean distance to a larger sample is computed from all of its points
)
POINTS_AT_ONCE = (
    256  # points whose distances to as many others are taken at once: they stay in the cache
)
DISTANCES_KEPT = 2**24  # distances between members and all points that are kept at once
EXCHANGE_SWEEPS = 50  # of exchange over all members, at most
WORTHWHILE_FALL = 0.01  # relative fall of the energy distance for which there is another sweep
LEAST_GAIN = 1e-9  # least gain of an exchange relative to the mean distance: rounding makes none
FREEDOM = 3.0  # degrees of freedom of the t distribution whose scatter sets the metric
SCATTER_ROUNDS = 50  # of its iteration
SETTLED_SCATTER = 0.01  # relative change of the scatter that no longer matters


def thin(
    x: ArrayLike, m: int, weights: ArrayLike | None = None, circular: Sequence[int] = ()
) -> NDArray[np.int64]:
    """Choose m members of a sample that represent it best, all with the same weight; return their indices.

    The members have least energy distance to the whole sample (Szekely and Rizzo 2013). They are chosen one by one, each the
    best addition, which is herding with the kernel ``-|x - y|`` (Chen, Welling and Smola 2010), then exchanged, each in turn
    for the best replacement. The points of least distance, members or not, are the support points of Mak and Joseph (2018).

    Distances are taken in coordinates in which the sample has unit scatter, that of a t distribution with three degrees of
    freedom (Kent and Tyler 1991): affine maps do not matter. Angles are points on a circle, its radius by their own scatter.

    The result is deterministic, and the order of the points decides only between equal ones. Up to 32,768 points time grows
    as n^2 d. A larger sample is divided into 16,384 cells of one candidate each, and time grows as n d. So does memory. The
    page "Thinning" states the steps.

    Parameters
    ----------
    x : array_like, shape (n, d) or (n,)
        The sample, finite.
    m : int
        Number of members, at most n.
    weights : array_like, shape (n,), optional
        Non-negative weights of the sample; normalised to sum to 1. Equal by default.
    circular : sequence of int
        Indices of the dimensions that are angles, in radians.

    Returns
    -------
    ndarray of int, shape (m,)
        In ascending order. Without `weights` all differ; with them, point i may come up ``ceil(m weights[i])`` times.

    Examples
    --------
    >>> import numpy as np
    >>> import herdfilter as hf
    >>> hf.thin(np.arange(9.0), 3).tolist()
    [1, 4, 7]
    """
    sample = as_numbers("x", x, (None, None))
    if sample.ndim == 3:
        raise ValueError(
            f"x: expected shape (n, d), got {sample.shape}; x.reshape(-1, {sample.shape[2]}) joins chains"
        )
    points = as_particles("x", sample[:, None] if sample.ndim == 1 else sample)
    points = as_array("x", points, (None, None), largest=LARGEST)
    n, d = points.shape
    m, angles = check_count("m", m), sorted({*as_dims("circular", circular, d)})
    if m > n:
        raise ValueError(f"m: expected at most {n}, the number of points in x, got {m}")
    w = np.full(n, 1.0 / n) if weights is None else as_weights("weights", weights, n)
    present = np.flatnonzero(w > 0)
    points, w = points[present], w[present]
    order = np.lexsort(
        (w, *points.T[::-1])
    )  # the same sums in the same order, however the points came
    z, w = _metric(points[order], w[order], angles), w[order]
    # Members and the rest deviate from the whole in opposite directions: the best to keep leave the best to drop.
    inverse = weights is None and 2 * m > n
    k = n - m if inverse else m
    most = np.ceil(k * w * (1 - 1e-9)).astype(
        int
    )  # a weight of 1/m calls for one, rounded up or down
    chosen = _chosen(z, k, w, most)
    return np.sort(present[order[np.setdiff1d(np.arange(n), chosen) if inverse else chosen]])


def _metric(x: Array, w: Array, circular: list[int]) -> Array:
    """Return coordinates of unit scatter, two for each angle, in which Euclidean distances are taken."""
    x = unwrap_angles(x, w, circular)
    centred = x - w @ x
    size = np.abs(centred).max(axis=0)
    centred = centred / np.where(size > 0, size, 1.0)  # squares neither overflow nor vanish
    scatter = _scatter(centred, w)
    line = np.setdiff1d(np.arange(x.shape[1]), circular)
    straight = (
        _whitened(scatter[np.ix_(line, line)], centred[:, line]) if line.size else centred[:, :0]
    )
    radii = [1.0 / (np.sqrt(scatter[i, i]) * (size[i] or 1.0)) for i in circular]
    round_ = [
        r * turn(x[:, i]) for r, i in zip(radii, circular, strict=True) for turn in (np.cos, np.sin)
    ]
    return np.column_stack([straight, *round_])


def _whitened(covariance: Array, centred: Array) -> Array:
    """Return points (n, d) in coordinates in which the covariance is I."""
    return scipy.linalg.solve_triangular(np.linalg.cholesky(covariance), centred.T, lower=True).T


def _scatter(x: Array, w: Array) -> Array:
    """Return the scatter (d, d) of a t distribution fitted to weighted points, or their covariance if that fails."""
    covariance = scatter = regularised((x.T * w) @ x)
    centre = np.zeros(x.shape[1])
    for _ in range(SCATTER_ROUNDS):
        white = _whitened(scatter, x - centre)
        share = w / (FREEDOM + (white * white).sum(axis=1))
        share /= (
            share.sum()
        )  # not by the sum of w: the same maximum in fewer rounds (Kent, Tyler and Vardi 1994)
        centre = share @ x
        found = regularised(((x - centre).T * share) @ (x - centre))
        change = np.abs(found - scatter) / np.sqrt(np.outer(scatter.diagonal(), scatter.diagonal()))
        scatter = found
        if change.max() < SETTLED_SCATTER:
            return scatter
    return covariance


def _chosen(z: Array, m: int, w: Array, most: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the indices of m members, each at most as often as `most` says, from all points or from candidates."""
    if len(z) <= 2 * CANDIDATES:
        return _members(z, m, most, _mean_distances(z, z, w), w)
    if m * LEAST_CHOICE > CANDIDATES:
        parts = _cells(z, w, -(-m * LEAST_CHOICE // CANDIDATES))
        weights = np.array([w[part].sum() for part in parts])
        numbers = np.diff(np.rint(m * weights.cumsum() / weights.sum()).astype(int), prepend=0)
        found = zip(parts, numbers, weights, strict=True)
        return np.concatenate(
            [part[_chosen(z[part], k, w[part] / total, most[part])] for part, k, total in found]
        )
    cells = _cells(z, w, CANDIDATES)
    candidates = np.array(
        [cell[np.searchsorted(w[cell].cumsum(), w[cell].sum() / 2)] for cell in cells]
    )  # medians
    weights = np.array([w[cell].sum() for cell in cells])
    mean = _mean_distances_by_cells(z, w, cells, weights, z[candidates])
    return candidates[_members(z[candidates], m, most[candidates], mean, weights)]


def _cells(z: Array, w: Array, count: int) -> list[NDArray[np.int64]]:
    """Divide a sample into about `count` parts of alike weight, at medians of the coordinate that varies most."""
    cells, left = [], [np.arange(len(z))]
    while left:
        part = left.pop()
        if len(part) == 1 or w[part].sum() * count <= 1.5:
            cells.append(part)
            continue
        values = z[part]
        part = part[values[:, values.var(axis=0).argmax()].argsort()]
        reached = w[part].cumsum()
        middle = max(1, int(np.abs(reached[:-1] - reached[-1] / 2).argmin()) + 1)
        left += [part[middle:], part[:middle]]
    return cells


def _mean_distances_by_cells(
    z: Array, w: Array, cells: list[NDArray[np.int64]], weights: Array, x: Array
) -> Array:
    """Return the mean distance of points x (k, d) to the sample, shape (k,), close to exact.

    To second order, a cell of centre c and total variance s^2 has the mean distance ``sqrt(|x - c|^2 + (1 - 1/d) s^2)``,
    that of c lifted into one more dimension. The error of their sum is smooth: it is computed at a few points and
    interpolated, with the kernel ``-|x - y|``.
    """
    d = z.shape[1]
    lifted = np.zeros((len(cells), d + 1))
    for i, cell in enumerate(cells):
        shares = w[cell] / weights[i]
        lifted[i, :d] = shares @ z[cell]
        lifted[i, d] = np.sqrt(
            (1 - 1 / d) * (shares @ ((z[cell] - lifted[i, :d]) ** 2).sum(axis=1))
        )
    mean = _mean_distances(np.pad(x, ((0, 0), (0, 1))), lifted, weights)
    few = np.linspace(0, len(x) - 1, EXACT_MEANS).astype(int)
    system = np.ones((EXACT_MEANS + 1, EXACT_MEANS + 1))
    system[:-1, :-1], system[-1, -1] = scipy.spatial.distance.cdist(x[few], x[few]), 0.0
    error = _mean_distances(x[few], z, w) - mean[few]
    *slopes, level = np.linalg.lstsq(system, np.append(error, 0.0))[0]
    mean += level + _mean_distances(x, x[few], np.array(slopes))
    return mean


def _mean_distances(x: Array, z: Array, w: Array) -> Array:
    """Return the weighted sums of distances of points x (k, d) to a sample z (n, d), shape (k,); if z is x, each pair once.

    Without matrix products: their threads make many small blocks slower by an order of magnitude on busy cores.
    """
    total = np.zeros(len(x))
    for i in range(0, len(x), POINTS_AT_ONCE):
        for j in range(i if z is x else 0, len(z), POINTS_AT_ONCE):
            distance = scipy.spatial.distance.cdist(
                x[i : i + POINTS_AT_ONCE], z[j : j + POINTS_AT_ONCE]
            )
            total[i : i + POINTS_AT_ONCE] += np.einsum(
                "ij,j->i", distance, w[j : j + POINTS_AT_ONCE]
            )
            if z is x and j > i:
                total[j : j + POINTS_AT_ONCE] += np.einsum(
                    "ij,i->j", distance, w[i : i + POINTS_AT_ONCE]
                )
    return total


def _members(z: Array, m: int, most: NDArray[np.int64], mean: Array, w: Array) -> NDArray[np.int64]:
    """Return the indices of m members, each at most as often as `most` says.

    With a the mean distance to the sample and r the sum of distances to the members, the best addition to t of them
    minimises ``(t + 1) a - r``, and the best replacement of a member ``m a - r``, with r over the others.
    """
    n, most = len(z), most.copy()
    if m == 0:
        return np.empty(0, np.int64)
    least = LEAST_GAIN * m * float(w @ mean)
    members, total, barred = np.empty(m, np.int64), np.zeros(n), np.zeros(n)

    def choose(k: int, cost: Array) -> Array:
        members[k] = i = int(cost.argmin())
        most[i] -= 1
        barred[i] = 0.0 if most[i] else np.inf
        return np.asarray(scipy.spatial.distance.cdist(z[i : i + 1], z)[0])

    for t in range(m):
        total += choose(t, (t + 1) * mean - total + barred)
    cost = m * mean - total
    rows, distances, energy = max(1, DISTANCES_KEPT // n), None, np.inf
    for _ in range(EXCHANGE_SWEEPS):
        before, energy = energy, float(mean[members].mean() + cost[members].mean() / m - w @ mean)
        if before - energy <= WORTHWHILE_FALL * abs(energy):
            break
        for k in range(m):
            if distances is None or (k % rows == 0 and rows < m):
                distances = scipy.spatial.distance.cdist(z[members[k : k + rows]], z)
            own, old = distances[k % rows], members[k]
            without = cost + own
            without += barred
            without[old] = cost[old]
            if without.min() < cost[old] - least:
                most[old] += 1
                barred[old] = 0.0
                cost += own
                distances[k % rows] = choose(k, without)
                cost -= distances[k % rows]
    return members
