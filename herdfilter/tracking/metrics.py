"""How far a set of estimates is from a set of targets: GOSPA with its parts, OSPA, and switches of labels over time."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array, as_array, as_list, as_number, as_positive, short_repr


class GOSPA(NamedTuple):
    """The GOSPA distance of two sets, and what it is made of.

    Attributes
    ----------
    distance : float
        In the unit of the positions; its p-th power is the sum of the three parts.
    localisation : float
        Sum of the p-th powers of the distances of the estimates to the targets that they are assigned to.
    missed : float
        ``cutoff**p / 2`` for each target without an estimate.
    false : float
        ``cutoff**p / 2`` for each estimate without a target.

    Examples
    --------
    One target is 1 from its estimate; another has none within the cutoff, and one estimate is of nothing.

    >>> found = hf.tracking.gospa(truth=[[0.0], [10.0]], estimates=[[1.0], [50.0]], cutoff=5.0)
    >>> found.localisation, found.missed, found.false
    (1.0, 12.5, 12.5)
    >>> np.allclose(found.distance**2, 1.0 + 12.5 + 12.5)
    True
    """

    distance: float
    localisation: float
    missed: float
    false: float


def gospa(truth: ArrayLike, estimates: ArrayLike, cutoff: float, p: float = 2.0, alpha: float = 2.0) -> GOSPA:
    r"""Return the generalised optimal sub-pattern assignment (GOSPA) distance of estimates to targets, with its parts.

    .. math:: d^p = \min_\pi \sum_{i=1}^{m} \min(d(x_i, y_{\pi(i)}), c)^p + \frac{c^p}{\alpha} (n - m), \qquad m \le n

    where :math:`\pi` assigns the m members of the smaller set to as many of the n of the larger. With alpha = 2 a target
    and an estimate at least the cutoff apart cost what a missed target and a false estimate cost, and the distance is
    the sum of three parts.

    Parameters
    ----------
    truth : array_like, shape (n, k)
        Positions of the targets; rows of NaN, targets that are absent, are left out. A set may be empty.
    estimates : array_like, shape (m, k)
        Positions of the estimates.
    cutoff : float
        Distance c from which an estimate is none of the target; in the unit of the positions.
    p : float
        Order, at least 1: the larger, the more a large distance counts.
    alpha : float
        In (0, 2]; the parts are NaN unless it is 2.

    Returns
    -------
    GOSPA
        ``distance``, and the parts ``localisation``, ``missed`` and ``false`` of its p-th power.

    Raises
    ------
    ValueError
        If shapes do not fit, an estimate is not finite, or a number is out of range.

    Notes
    -----
    Rahmathullah, Garcia-Fernandez and Svensson (2017), "Generalized optimal sub-pattern assignment metric", Fusion.

    Examples
    --------
    One estimate of two targets: it is 5 from the first, and the second is missed, which costs half of the squared cutoff.

    >>> found = hf.tracking.gospa([[0.0, 0.0], [9.0, 9.0]], [[3.0, 4.0]], cutoff=10)
    >>> found.localisation, found.missed, found.false, round(found.distance, 6)
    (25.0, 50.0, 0.0, 8.660254)

    However far away an estimate is, it costs no more than a missed target and a false estimate:

    >>> [round(hf.tracking.gospa([[0.0]], [[far]], cutoff=10).distance, 6) for far in (7.0, 10.0, 1000.0)]
    [7.0, 10.0, 10.0]
    """
    cutoff, p = _checked(cutoff, p)
    if as_positive("alpha", alpha) > 2:
        raise ValueError(f"alpha: expected a number of at most 2, got {short_repr(alpha)}")
    distances = _distances(truth, estimates)
    n, m = distances.shape
    near = _assigned(distances, cutoff, p)
    localisation = float((near**p).sum())
    each = cutoff**p / 2
    if alpha == 2:
        missed, false = (n - len(near)) * each, (m - len(near)) * each
        return GOSPA((localisation + missed + false) ** (1 / p), localisation, missed, false)
    far = min(n, m) - len(near)
    total = localisation + far * cutoff**p + abs(n - m) * cutoff**p / alpha
    return GOSPA(total ** (1 / p), np.nan, np.nan, np.nan)


def ospa(truth: ArrayLike, estimates: ArrayLike, cutoff: float, p: float = 1.0) -> float:
    r"""Return the optimal sub-pattern assignment (OSPA) distance of estimates to targets, a mean over the larger set.

    .. math:: d^p = \frac{1}{n} \min_\pi \sum_{i=1}^{m} \min(d(x_i, y_{\pi(i)}), c)^p + \frac{n - m}{n} c^p, \qquad m \le n

    Two empty sets are 0 apart.

    Parameters
    ----------
    truth, estimates, cutoff, p
        As for `gospa`.

    Returns
    -------
    float
        In the unit of the positions, at most the cutoff.

    Raises
    ------
    ValueError
        If shapes do not fit, an estimate is not finite, or a number is out of range.

    Notes
    -----
    Schuhmacher, Vo and Vo (2008), "A consistent metric for performance evaluation of multi-object filters", IEEE
    Transactions on Signal Processing 56.

    Examples
    --------
    The second target is missed, at the cost of the cutoff; all is averaged over two.

    >>> hf.tracking.ospa([[0.0, 0.0], [9.0, 9.0]], [[3.0, 4.0]], cutoff=10)
    7.5
    >>> hf.tracking.ospa([[0.0, 0.0], [9.0, 9.0]], [[3.0, 4.0], [9.0, 10.0]], cutoff=10)
    3.0
    """
    cutoff, p = _checked(cutoff, p)
    distances = _distances(truth, estimates)
    larger = max(distances.shape)
    if larger == 0:
        return 0.0
    near = _assigned(distances, cutoff, p)
    return float((((near**p).sum() + (larger - len(near)) * cutoff**p) / larger) ** (1 / p))


def label_switches(
    truth: ArrayLike,
    estimates: Sequence[ArrayLike],
    labels: Sequence[Sequence[Hashable]],
    cutoff: float,
) -> int:
    """Count how often a target is given another label than the one it had last.

    At every step a target keeps its last label where the estimate of that label is nearer than the cutoff (of two targets
    that had it, the one that had it later); all others are assigned so that as many as can be are, at the least sum of
    distances. A target that is assigned to another label than at its last assignment, however long ago that was, is one
    switch. These are the mismatches of CLEAR MOT.

    Parameters
    ----------
    truth : array_like, shape (T, targets, k)
        Positions at every step; NaN where a target is absent.
    estimates : sequence of T arrays, each (m, k)
        Positions of the estimates at every step.
    labels : sequence of T sequences, each of m labels
        A label of each estimate, such as a number or a tuple; none twice at a step.
    cutoff : float
        Distance from which an estimate is none of the target; in the unit of the positions.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If shapes or lengths do not fit, or a label stands twice at a step.

    Notes
    -----
    Bernardin and Stiefelhagen (2008), "Evaluating multiple object tracking performance: the CLEAR MOT metrics", EURASIP
    Journal on Image and Video Processing.

    Examples
    --------
    Two targets pass each other, and the tracker takes one for the other: both have switched.

    >>> truth = [[[0.0], [4.0]], [[1.0], [3.0]], [[3.0], [1.0]]]
    >>> labels = [["a", "b"], ["a", "b"], ["b", "a"]]
    >>> hf.tracking.label_switches(truth, truth, labels, cutoff=1.0)
    2
    """
    cutoff, _ = _checked(cutoff, 1.0)
    path = as_array("truth", truth, (None, None, None), finite=False)
    for name, given in (("estimates", estimates), ("labels", labels)):
        given = as_list(name, given, "one entry for each step")
        if len(given) != len(path):
            raise ValueError(f"{name}: expected one entry for each of {len(path)} steps, got {len(given)}")
    last: dict[int, Hashable] = {}  # target -> its label, the target that was assigned last at the end
    switches = 0
    for step, (states, points, names) in enumerate(zip(path, estimates, labels, strict=True), 1):
        present = np.flatnonzero(np.isfinite(states).all(axis=1))
        distances = _distances(states[present], points)
        names = list(names if isinstance(names, str) else as_list("labels", names, "labels for each step"))
        distinct = all(isinstance(name, Hashable) for name in names) and len(set(names)) == len(names)
        if distances.shape[1] != len(names) or not distinct:
            raise ValueError(f"labels: expected {distances.shape[1]} different ones at step {step}, got {short_repr(names)}")
        now = _correspondence(distances, present.tolist(), list(names), last, cutoff)
        for target, label in now.items():
            switches += last.pop(target, label) != label
            last[target] = label
    return switches


def _correspondence(
    distances: Array, targets: list[int], names: list[Hashable], last: dict[int, Hashable], cutoff: float
) -> dict[int, Hashable]:
    """Assign labels to targets at one step: what was before first, then as many as can be, the nearest."""
    row = {target: i for i, target in enumerate(targets)}
    column = {name: j for j, name in enumerate(names)}
    found: dict[int, Hashable] = {}
    for target, name in reversed(last.items()):
        if target in row and column.get(name, -1) >= 0 and distances[row[target], column[name]] < cutoff:
            found[target] = name
            del column[name], row[target]
    rows, columns = list(row.values()), list(column.values())
    for i, j in _pairs(distances[np.ix_(rows, columns)], cutoff):
        found[targets[rows[i]]] = names[columns[j]]
    return found


def _pairs(distances: Array, cutoff: float) -> list[tuple[int, int]]:
    """Assign rows to columns nearer than the cutoff: as many as can be, at the least sum of distances."""
    if not distances.size:
        return []
    from scipy.optimize import linear_sum_assignment

    near = distances < cutoff
    more = cutoff * (1 + min(distances.shape))  # no sum of distances outweighs one pair more
    rows, columns = linear_sum_assignment(np.where(near, distances, more))
    return [(i, j) for i, j in zip(rows.tolist(), columns.tolist(), strict=True) if near[i, j]]


def _assigned(distances: Array, cutoff: float, p: float) -> Array:
    """Distances below the cutoff in the assignment of least sum of p-th powers, cut off."""
    if not distances.size:
        return np.empty(0)
    from scipy.optimize import linear_sum_assignment

    cut = np.minimum(distances / cutoff, 1.0)
    chosen = cut[linear_sum_assignment(cut**p)]
    return cutoff * chosen[chosen < 1]


def _distances(truth: ArrayLike, estimates: ArrayLike) -> Array:
    """Euclidean distances of targets (n, k) to estimates (m, k), (n, m)."""
    x, y = _as_set("truth", truth, finite=False), _as_set("estimates", estimates)
    x = x[~np.isnan(x).all(axis=1)] if x.size else x
    if not np.isfinite(x).all():
        raise ValueError("truth: expected finite positions, or rows of NaN where a target is absent, got others")
    if not (x.size and y.size):
        return np.empty((len(x), len(y)))
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"estimates: expected shape (*, {x.shape[1]}), as of truth, got {y.shape}")
    difference = x[:, None] - y
    return np.sqrt((difference * difference).sum(axis=2))


def _as_set(name: str, points: ArrayLike, finite: bool = True) -> Array:
    """Return positions (n, k); an empty set may have any shape without members."""
    if isinstance(points, list | tuple) and len(points) == 0:
        return np.empty((0, 0))
    return as_array(name, points, (None, None), finite=finite)


def _checked(cutoff: float, p: float) -> tuple[float, float]:
    p = as_number("p", p, "a number from 1 to 100", lambda p: 1 <= p <= 100)
    return as_positive("cutoff", cutoff), p
