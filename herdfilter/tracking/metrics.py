"""Distances between a set of estimates and a set of targets: GOSPA and its parts, OSPA, and label switches."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from herdfilter import _checks
from herdfilter._checks import Array


class GOSPA(NamedTuple):
    """The GOSPA distance of two sets, and its parts.

    Attributes
    ----------
    distance : float
        In the unit of the positions; its p-th power is the sum of the three parts.
    localisation : float
        Sum of the p-th powers of the distances between targets and the estimates assigned to them.
    missed : float
        ``cutoff**p / 2`` for each target without an estimate.
    false : float
        ``cutoff**p / 2`` for each estimate without a target.

    Examples
    --------
    One target is 1 from its estimate; another is missed, and one estimate is false.

    >>> found = hf.tracking.gospa(truth=[[0.0], [10.0]], estimates=[[1.0], [50.0]], cutoff=5.0)
    >>> found.localisation, found.missed, found.false
    (1.0, 12.5, 12.5)
    """

    distance: float
    localisation: float
    missed: float
    false: float


def gospa(
    truth: ArrayLike, estimates: ArrayLike, cutoff: float, p: float = 2.0, alpha: float = 2.0
) -> GOSPA:
    r"""Return the generalised optimal sub-pattern assignment (GOSPA) distance of estimates to targets, with its parts.

    .. math:: d^p = \min_\pi \sum_{i=1}^{m} \min(d(x_i, y_{\pi(i)}), c)^p + \frac{c^p}{\alpha} (n - m), \qquad m \le n

    where :math:`\pi` assigns each member of the smaller set its own member of the larger. With alpha = 2 a target and
    an estimate at least the cutoff apart cost the same as a missed target and a false estimate.

    Rahmathullah, Garcia-Fernandez and Svensson (2017), "Generalized optimal sub-pattern assignment metric", Fusion.

    Parameters
    ----------
    truth : array_like, shape (n, k)
        Positions of the targets; rows of NaN are absent targets. A set may be empty.
    estimates : array_like, shape (m, k)
        Positions of the estimates.
    cutoff : float
        Distance c, in the unit of the positions, from which on an estimate does not belong to a target.
    p : float
        Order, at least 1. A higher order gives more weight to large distances.
    alpha : float
        In (0, 2]; the parts are NaN unless alpha is 2.

    Examples
    --------
    One target is 5 from its estimate; the other is missed, which costs half of the squared cutoff.

    >>> found = hf.tracking.gospa([[0.0, 0.0], [9.0, 9.0]], [[3.0, 4.0]], cutoff=10)
    >>> found.localisation, found.missed, found.false, round(found.distance, 6)
    (25.0, 50.0, 0.0, 8.660254)
    """
    if _checks.as_positive("alpha", alpha) > 2:
        raise ValueError(f"alpha: expected a number of at most 2, got {_checks.short_repr(alpha)}")
    (n, m), near, cutoff = _assign(truth, estimates, cutoff, p)
    localisation = float((near**p).sum())
    penalty = cutoff**p
    if alpha == 2:
        # Such a pair costs as much as a missed target and a false estimate: it counts as these.
        missed = (n - len(near)) * (penalty / 2)
        false = (m - len(near)) * (penalty / 2)
        return GOSPA((localisation + missed + false) ** (1 / p), localisation, missed, false)
    # Pairs at least the cutoff apart cost c^p each, unmatched members c^p / alpha.
    far = min(n, m) - len(near)
    total = localisation + far * penalty + abs(n - m) * penalty / alpha
    return GOSPA(total ** (1 / p), np.nan, np.nan, np.nan)


def ospa(truth: ArrayLike, estimates: ArrayLike, cutoff: float, p: float = 1.0) -> float:
    r"""Return the optimal sub-pattern assignment (OSPA) distance of estimates to targets, a mean over the larger set.

    .. math:: d^p = \frac{1}{n} \min_\pi \sum_{i=1}^{m} \min(d(x_i, y_{\pi(i)}), c)^p + \frac{n - m}{n} c^p, \qquad m \le n

    Two empty sets are 0 apart.

    Schuhmacher, Vo and Vo (2008), "A consistent metric for performance evaluation of multi-object filters", IEEE
    Transactions on Signal Processing 56.

    Parameters
    ----------
    truth, estimates, cutoff, p
        As for `gospa`.

    Returns
    -------
    float
        In the unit of the positions, at most the cutoff.

    Examples
    --------
    The second target is missed, which costs the cutoff; the mean is over two targets.

    >>> hf.tracking.ospa([[0.0, 0.0], [9.0, 9.0]], [[3.0, 4.0]], cutoff=10)
    7.5
    """
    counts, near, cutoff = _assign(truth, estimates, cutoff, p)
    # Members of the larger set that are unmatched, or matched no nearer than the cutoff, cost the cutoff each.
    larger = max(counts)
    total = (near**p).sum() + (larger - len(near)) * cutoff**p
    return float((total / max(larger, 1)) ** (1 / p))


def label_switches(
    truth: ArrayLike,
    estimates: Sequence[ArrayLike],
    labels: Sequence[Sequence[Hashable]],
    cutoff: float,
) -> int:
    """Count the label switches: the assignments of a target to another label than at its last assignment.

    At every step a target keeps its last label if the estimate of that label is nearer than the cutoff (of two targets that
    had it, the later one). The other targets and labels nearer than the cutoff are matched, as many as possible and then
    at the least sum of distances. These are the mismatches of CLEAR MOT: Bernardin and Stiefelhagen (2008), "Evaluating
    multiple object tracking performance: the CLEAR MOT metrics", EURASIP Journal on Image and Video Processing.

    Parameters
    ----------
    truth : array_like, shape (T, targets, k)
        Positions at every step; NaN for absent targets.
    estimates : sequence of T arrays, each (m, k)
        Positions of the estimates at every step.
    labels : sequence of T sequences, each of m labels
        Label of each estimate, such as a number or a tuple; the labels of a step are different.
    cutoff : float
        As for `gospa`.

    Examples
    --------
    Two targets pass each other and the tracker confuses them:

    >>> truth = [[[0.0], [4.0]], [[1.0], [3.0]], [[3.0], [1.0]]]
    >>> labels = [["a", "b"], ["a", "b"], ["b", "a"]]
    >>> hf.tracking.label_switches(truth, truth, labels, cutoff=1.0)
    2
    """
    from scipy.optimize import linear_sum_assignment

    cutoff = _checks.as_positive("cutoff", cutoff)
    path = _checks.as_array("truth", truth, (None, None, None), finite=False)
    for name, sets in (("estimates", estimates), ("labels", labels)):
        count = len(_checks.as_list(name, sets, "one entry for each step"))
        if count != len(path):
            raise ValueError(
                f"{name}: expected one entry for each of {len(path)} steps, got {count}"
            )
    # Target -> its last label; the target that was assigned last stands at the end.
    last: dict[int, Hashable] = {}
    switches = 0
    for step, (states, points, names) in enumerate(zip(path, estimates, labels, strict=True), 1):
        present = np.flatnonzero(np.isfinite(states).all(axis=1))
        distances = _distances(states[present], points)
        names = (
            list(names)
            if isinstance(names, str)
            else _checks.as_list("labels", names, "labels for each step")
        )
        hashable = all(isinstance(name, Hashable) for name in names)
        if not (hashable and distances.shape[1] == len(names) == len({*names})):
            raise ValueError(
                f"labels: expected {distances.shape[1]} different ones at step {step}, got {_checks.short_repr(names)}"
            )
        targets = present.tolist()
        # A pair that is assigned takes its row and column out of reach.
        near = distances < cutoff
        assigned: dict[int, Hashable] = {}
        # Of two targets that had a label, the later one keeps it.
        for target, label in reversed(last.items()):
            if target in targets and label in names:
                i = targets.index(target)
                j = names.index(label)
                if near[i, j]:
                    assigned[target] = label
                    near[i] = False
                    near[:, j] = False
        # Above every sum of distances, so that one more pair always pays.
        penalty = cutoff * (1 + min(near.shape))
        pairs = linear_sum_assignment(np.where(near, distances, penalty))
        for i, j in np.transpose(pairs).tolist():
            if near[i, j]:
                assigned[targets[i]] = names[j]
        for target, label in assigned.items():
            switches += last.pop(target, label) != label
            last[target] = label
    return switches


def _assign(
    truth: ArrayLike, estimates: ArrayLike, cutoff: float, p: float
) -> tuple[tuple[int, ...], Array, float]:
    """Assign estimates to targets with the least sum of p-th powers of the distances, each at most the cutoff.

    Return the numbers of targets and estimates, the distances below the cutoff, and the cutoff, whose p-th power is finite.
    """
    from scipy.optimize import linear_sum_assignment

    p = _checks.as_number("p", p, "a number from 1 to 100", lambda p: 1 <= p <= 100)
    cutoff = _checks.as_positive(
        "cutoff", cutoff, _checks.SMALLEST ** (2 / p), _checks.LARGEST ** (2 / p)
    )
    distances = _distances(truth, estimates)
    # In units of the cutoff, so that no power overflows.
    relative = np.minimum(distances / cutoff, 1.0)
    pairs = relative[linear_sum_assignment(relative**p)]
    return distances.shape, cutoff * pairs[pairs < 1], cutoff


def _distances(truth: ArrayLike, estimates: ArrayLike) -> Array:
    """Return the Euclidean distances of targets (n, k) to estimates (m, k), (n, m)."""
    x = _as_set("truth", truth, finite=False)
    y = _as_set("estimates", estimates)
    # Rows of NaN are absent targets; NaN in part of a row is an error.
    x = x[~np.isnan(x).all(axis=1)] if x.size else x
    if not np.isfinite(x).all():
        raise ValueError(
            "truth: expected finite positions, or rows of NaN for absent targets, got others"
        )
    if not (x.size and y.size):
        return np.empty((len(x), len(y)))
    if x.shape[1] != y.shape[1]:
        raise ValueError(
            f"estimates: expected shape (*, {x.shape[1]}), as truth has, got {y.shape}"
        )
    return np.asarray(np.linalg.norm(x[:, None] - y, axis=2))


def _as_set(name: str, points: ArrayLike, finite: bool = True) -> Array:
    """Return positions (n, k); an empty list is a set, too."""
    if isinstance(points, list | tuple) and len(points) == 0:
        return np.empty((0, 0))
    return _checks.as_array(name, points, (None, None), finite=finite, largest=_checks.LARGEST)
