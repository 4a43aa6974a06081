"""Thinning: herding and exchange under the energy kernel choose the members that represent a large sample best."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter._covariances import regularised
from herdfilter.angles import unwrap_angles

# A sample of more than twice as many points is divided into about this number of cells, with one candidate in each.
CELLS = 2**14
CELLS_PER_MEMBER = 8  # with more members than this allows, members are chosen block by block
# candidates whose mean distance to a larger sample is computed from all of its points
EXACT_MEANS = 256
# points whose distances to as many others are taken together: they stay in the cache
BLOCK_SIZE = 256
MOST_DISTANCES = 2**24  # distances between members and all points that are stored together
EXCHANGE_SWEEPS = 50  # of exchange over all members, at most
WORTHWHILE_FALL = 0.01  # relative fall of the energy distance for which there is another sweep
SMALLEST_GAIN = 1e-9  # of an exchange, relative to the mean distance, so that rounding is no gain
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
    sample = _checks.as_numbers("x", x, (None, None))
    if sample.ndim == 3:
        raise ValueError(
            f"x: expected shape (n, d), got {sample.shape}; x.reshape(-1, {sample.shape[2]}) joins chains"
        )
    points = _checks.as_particles(
        "x", sample[:, None] if sample.ndim == 1 else sample, _checks.LARGEST
    )
    n, d = points.shape
    m = _checks.check_count("m", m)
    angles = sorted({*_checks.as_dims("circular", circular, d)})
    if m > n:
        raise ValueError(f"m: expected at most {n}, the number of points in x, got {m}")
    w = np.full(n, 1.0 / n) if weights is None else _checks.as_weights("weights", weights, n)
    # Sorted points give the same sums, to the last bit, however the points came.
    order = np.lexsort((w, *points.T[::-1]))
    order = order[w[order] > 0]
    w = w[order]
    z = _metric(points[order], w, angles)
    # Members and the others deviate from the sample in opposite directions: the best to keep leave the best to drop.
    inverse = weights is None and 2 * m > n
    k = n - m if inverse else m
    # A weight of 1/m calls for one copy, whichever way it is rounded.
    most_copies = np.ceil(k * w * (1 - 1e-9)).astype(int)
    members = _choose(z, k, w, most_copies)
    return np.sort(order[np.setdiff1d(np.arange(n), members) if inverse else members])


def _metric(x: Array, w: Array, circular: list[int]) -> Array:
    """Return coordinates of unit scatter, two for each angle, in which Euclidean distances are taken."""
    x = unwrap_angles(x, w, circular)
    centred = x - w @ x
    size = np.abs(centred).max(axis=0)
    centred = centred / np.where(size > 0, size, 1.0)  # squares neither overflow nor vanish
    scatter = _scatter(centred, w)
    line = np.setdiff1d(np.arange(x.shape[1]), circular)
    columns = [_whitened(scatter[np.ix_(line, line)], centred[:, line])] if line.size else []
    for i in circular:
        radius = 1.0 / (np.sqrt(scatter[i, i]) * (size[i] or 1.0))
        columns += [radius * np.cos(x[:, i]), radius * np.sin(x[:, i])]
    return np.column_stack(columns)


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
        # Not by the sum of w: the same maximum in fewer rounds (Kent, Tyler and Vardi 1994).
        share /= share.sum()
        centre = share @ x
        updated = regularised(((x - centre).T * share) @ (x - centre))
        variances = scatter.diagonal()
        change = np.abs(updated - scatter) / np.sqrt(np.outer(variances, variances))
        scatter = updated
        if change.max() < SETTLED_SCATTER:
            return scatter
    return covariance


def _choose(z: Array, m: int, w: Array, most_copies: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the indices of m members, with at most so many copies of each, from all points or from candidates."""
    if len(z) <= 2 * CELLS:
        return _members(z, m, most_copies, _mean_distances(z, z, w), w)
    if m * CELLS_PER_MEMBER > CELLS:
        blocks = _split_at_medians(z, w, -(-m * CELLS_PER_MEMBER // CELLS))
        totals = np.array([w[block].sum() for block in blocks])
        numbers = np.diff(np.rint(m * totals.cumsum() / totals.sum()).astype(int), prepend=0)
        members = []
        for block, k, total in zip(blocks, numbers, totals, strict=True):
            members.append(block[_choose(z[block], k, w[block] / total, most_copies[block])])
        return np.concatenate(members)
    cells = _split_at_medians(z, w, CELLS)
    totals = np.array([w[cell].sum() for cell in cells])
    # The candidate of a cell is its weighted median along the direction of its last split.
    candidates = np.array(
        [cell[np.searchsorted(w[cell].cumsum(), w[cell].sum() / 2)] for cell in cells]
    )
    mean = _mean_distances_by_cells(z, w, cells, totals, z[candidates])
    return candidates[_members(z[candidates], m, most_copies[candidates], mean, totals)]


def _split_at_medians(z: Array, w: Array, count: int) -> list[NDArray[np.int64]]:
    """Divide a sample into about `count` cells of similar weight, at medians of the coordinate that varies most."""
    cells = []
    unsplit = [np.arange(len(z))]
    while unsplit:
        cell = unsplit.pop()
        if len(cell) == 1 or w[cell].sum() * count <= 1.5:
            cells.append(cell)
            continue
        values = z[cell]
        cell = cell[values[:, values.var(axis=0).argmax()].argsort()]
        cumulative = w[cell].cumsum()
        middle = max(1, int(np.abs(cumulative[:-1] - cumulative[-1] / 2).argmin()) + 1)
        unsplit += [cell[middle:], cell[:middle]]
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
    nodes = np.linspace(0, len(x) - 1, EXACT_MEANS).astype(int)
    error = _mean_distances(x[nodes], z, w) - mean[nodes]
    # The interpolant is a constant plus kernels whose slopes sum to 0, the last row of the system.
    system = np.ones((EXACT_MEANS + 1, EXACT_MEANS + 1))
    system[:-1, :-1] = scipy.spatial.distance.cdist(x[nodes], x[nodes])
    system[-1, -1] = 0.0
    *slopes, level = np.linalg.lstsq(system, np.append(error, 0.0))[0]
    mean += level + _mean_distances(x, x[nodes], np.array(slopes))
    return mean


def _mean_distances(x: Array, z: Array, w: Array) -> Array:
    """Return the weighted sums of distances of points x (k, d) to a sample z (n, d), shape (k,); if z is x, each pair once.

    Without matrix products: their threads make many small blocks slower by an order of magnitude on busy cores.
    """
    total = np.zeros(len(x))
    for i in range(0, len(x), BLOCK_SIZE):
        rows = slice(i, i + BLOCK_SIZE)
        for j in range(i if z is x else 0, len(z), BLOCK_SIZE):
            columns = slice(j, j + BLOCK_SIZE)
            distance = scipy.spatial.distance.cdist(x[rows], z[columns])
            total[rows] += np.einsum("ij,j->i", distance, w[columns])
            if z is x and j > i:
                total[columns] += np.einsum("ij,i->j", distance, w[rows])
    return total


def _members(
    z: Array, m: int, most_copies: NDArray[np.int64], mean: Array, w: Array
) -> NDArray[np.int64]:
    """Return the indices of m members, with at most so many copies of each.

    With a the mean distance to the sample and r the sum of distances to the members, the best addition to t of them
    minimises ``(t + 1) a - r``, and the best replacement of a member ``m a - r``, with r over the others.
    """
    n = len(z)
    if m == 0:
        return np.empty(0, np.int64)
    copies_left = most_copies.copy()
    smallest_gain = SMALLEST_GAIN * m * float(w @ mean)
    members = np.empty(m, np.int64)
    barred = np.zeros(n)  # infinite for points without a copy left

    def choose(k: int, cost: Array) -> Array:
        """Make the cheapest point member k; return its distances to all points."""
        i = int(cost.argmin())
        members[k] = i
        copies_left[i] -= 1
        barred[i] = 0.0 if copies_left[i] else np.inf
        return np.asarray(scipy.spatial.distance.cdist(z[i : i + 1], z)[0])

    # Herding: the best addition, m times.
    total = np.zeros(n)
    for t in range(m):
        total += choose(t, (t + 1) * mean - total + barred)
    # Exchange: each member in turn for its best replacement, until the energy distance hardly falls.
    cost = m * mean - total
    stored = max(1, MOST_DISTANCES // n)
    distances = None
    energy = np.inf
    for _ in range(EXCHANGE_SWEEPS):
        previous_energy = energy
        energy = float(mean[members].mean() + cost[members].mean() / m - w @ mean)
        if previous_energy - energy <= WORTHWHILE_FALL * abs(energy):
            break
        for k in range(m):
            if distances is None or (k % stored == 0 and stored < m):
                distances = scipy.spatial.distance.cdist(z[members[k : k + stored]], z)
            member = members[k]
            without = (
                cost + distances[k % stored]
            )  # the cost of each point once this member is gone
            without += barred
            without[member] = cost[member]
            if without.min() < cost[member] - smallest_gain:
                copies_left[member] += 1
                barred[member] = 0.0
                cost += distances[k % stored]
                distances[k % stored] = choose(k, without)
                cost -= distances[k % stored]
    return members
