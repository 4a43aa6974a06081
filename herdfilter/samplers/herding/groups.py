"""Components far apart or of very different size, herded group by group, each in a kernel of its own width.

One kernel for a whole mixture is as wide as the distances between its modes, and hardly sees how wide a mode is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy
from numpy.typing import NDArray

from herdfilter._checks import Array
from herdfilter.discrete._herding import herded_labels
from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points

APART = 6.0  # standard deviations: three on either side of a gap where nothing is
UNLIKE = 5.0  # times as wide: a kernel that suits one component is lost on the other
FEW = 2  # points per group, on average, that repay a kernel of its own
THIN = 1e-24  # variance, in units of the mixture's, below which a dimension counts as that wide

Labels = NDArray[np.int64]
Sample = Callable[[GaussianMixture, int], Points]
Descent = Callable[[GaussianMixture, Array, Array], Array]


def grouped(mixture: GaussianMixture, n: int, sample: Sample, *, weighted: bool = False) -> Points:
    """Sample the groups of a mixture apart, n points in all, and the groups within a group in the same way.

    The groups take turns as herding on their weights has it, so that the first points, too, are shared out in proportion.
    Points of a group weigh as much as the points of others; together as much as the group where they are `weighted`.
    """
    labels = far_groups(mixture, n)
    if not labels.any():
        labels = unlike_groups(mixture, n)
    if not labels.any():
        return sample(mixture, n)
    shares = np.bincount(labels, mixture.weights).astype(np.float64)
    turns = herded_labels(shares, n)
    x, weights = np.empty((n, mixture.dim)), np.empty(n)
    for group in np.unique(turns):
        places = np.flatnonzero(turns == group)
        part = grouped(_part(mixture, labels == group), len(places), sample, weighted=weighted)
        x[places], weights[places] = part.x, part.weights * (shares[group] if weighted else len(places))
    return Points(x, weights if weighted else None)


def moved(mixture: GaussianMixture, x: Array, weights: Array, transition: Descent) -> Array:
    """Move points (n, d) of these weights group by group, each within the group that it is nearest to."""
    labels = far_groups(mixture, len(x))
    if not labels.any():
        return transition(mixture, x, weights)
    unit = _deviations(mixture, labels)
    distances = scipy.spatial.distance.cdist((x - mixture.mean) / unit, (mixture.means - mixture.mean) / unit)
    nearest, x = labels[distances.argmin(axis=1)], x.copy()
    for group in np.unique(nearest):
        some = nearest == group
        x[some] = moved(_part(mixture, labels == group), x[some], weights[some], transition)
    return x


def far_groups(mixture: GaussianMixture, n: int) -> Labels:
    """Return for each component the number of its group, from 0; (M,). Groups are far apart.

    That is six standard deviations, by the average covariance within groups and along its longest axis, each dimension in
    units of its own deviation: the finest division of which this is true. There are at least two points for each group, not
    counting those too light for a point.
    """
    one = np.zeros(len(mixture), dtype=np.int64)
    most = min(n // FEW, len(mixture))
    if most < 2:
        return one
    labels: Labels = np.arange(len(mixture))
    while labels.any():
        places = (mixture.means - mixture.mean) / _deviations(mixture, labels)
        tree = scipy.cluster.hierarchy.linkage(scipy.spatial.distance.pdist(places), "single")
        if tree[-1, 2] <= APART:
            return one
        joined = _cut(tree, APART)
        if np.minimum(n * np.bincount(joined, mixture.weights), 1.0).sum() > n / FEW:
            joined = _cut(tree, max(APART, tree[-most, 2]))
        if joined.max() >= labels.max():
            return labels
        labels = joined
    return labels


def _cut(tree: Array, height: float) -> Labels:
    """Return the labels, from 0, of what a tree joins below a height."""
    return scipy.cluster.hierarchy.fcluster(tree, height, "distance").astype(np.int64) - 1


def unlike_groups(mixture: GaussianMixture, n: int) -> Labels:
    """Divide components, some over five times as wide as others, where their sizes leave the widest gap; (M,)."""
    one = np.zeros(len(mixture), dtype=np.int64)
    if mixture.shared or n < 2 * FEW:
        return one
    variances = np.diagonal(mixture.distinct_covariances, axis1=1, axis2=2)
    whole = np.diagonal(mixture.covariance)
    size = np.sqrt((variances / np.where(whole > 0, whole, 1.0)).max(axis=1))
    log_size = np.log(np.maximum(size, np.sqrt(THIN)))
    if np.ptp(log_size) < np.log(UNLIKE):
        return one
    ordered = np.sort(log_size)
    gap = int(np.diff(ordered).argmax())
    return (log_size > 0.5 * (ordered[gap] + ordered[gap + 1])).astype(np.int64)


def _deviations(mixture: GaussianMixture, labels: Labels) -> Array:
    """Return the standard deviations within groups, times that of their longest axis in these units; (d,)."""
    weights, offsets = np.bincount(labels, mixture.weights), mixture.means - mixture.mean
    centres = np.zeros((len(weights), mixture.dim))
    np.add.at(centres, labels, mixture.weights[:, None] * offsets)
    around = offsets - (centres / np.where(weights > 0, weights, 1.0)[:, None])[labels]
    covariances = mixture.distinct_covariances
    within = covariances[0] if mixture.shared else np.tensordot(mixture.weights, covariances, axes=1)
    within = within + (mixture.weights[:, None] * around).T @ around
    variance = np.maximum(np.diagonal(within), THIN * np.diagonal(mixture.covariance))
    unit = np.sqrt(np.where(variance > 0, variance, 1.0))
    longest = np.linalg.eigvalsh(within / unit[:, None] / unit)[-1]
    return unit * np.sqrt(max(longest, 1.0))


def _part(mixture: GaussianMixture, members: NDArray[np.bool_]) -> GaussianMixture:
    """Return a mixture of some of the components."""
    weights, covariances = mixture.weights[members], mixture.distinct_covariances
    return GaussianMixture.unchecked(
        weights / weights.sum(),
        mixture.means[members],
        covariances if mixture.shared else covariances[members],
    )
