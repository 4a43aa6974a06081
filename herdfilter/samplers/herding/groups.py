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
UNLIKE = 10.0  # times as wide: a kernel that suits one component is lost on the other
FEW = 2  # points per group, on average, that repay a kernel of its own
THIN = 1e-24  # variance, in units of the mixture's, below which a dimension counts as that wide

Labels = NDArray[np.int64]
Sample = Callable[[GaussianMixture, int], Points]


def grouped(mixture: GaussianMixture, n: int, sample: Sample, *, weighted: bool = False) -> Points:
    """Sample the groups of a mixture apart, n points in all, and the groups within a group in the same way.

    The groups take turns as herding on their weights has it, so that the first points, too, are shared out in proportion.
    Points of a group weigh as much as the points of others; together as much as the group where they are `weighted`.
    """
    labels = far_groups(mixture, n)
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


def far_groups(mixture: GaussianMixture, n: int) -> Labels:
    """Return for each component the number of its group, from 0; (M,). Each group is to have a kernel of its own.

    Groups are six standard deviations apart, by the average covariance within them and along its longest axis, each
    dimension in units of its own deviation: the finest division of which this is true. Where that is none, components
    more than ten times as wide as others are a group. There are at least two points for each.
    """
    one = np.zeros(len(mixture), dtype=np.int64)
    most = min(n // FEW, len(mixture))
    if most < 2:
        return one
    labels: Labels = np.arange(len(mixture))
    before = len(mixture) + 1
    offsets = mixture.means - mixture.mean
    while (count := int(labels.max()) + 1) not in (1, before):
        places = _in_deviations(mixture, offsets, labels)
        tree = scipy.cluster.hierarchy.linkage(scipy.spatial.distance.pdist(places), "single")
        if tree[-1, 2] <= APART:
            return _by_size(mixture)
        height = max(APART, tree[-most, 2] if most < len(mixture) else 0.0)
        labels, before = (
            scipy.cluster.hierarchy.fcluster(tree, height, "distance").astype(np.int64) - 1,
            count,
        )
    return labels if count > 1 else _by_size(mixture)


def _in_deviations(mixture: GaussianMixture, offsets: Array, labels: Labels) -> Array:
    """Return the means in units of the deviation within groups, along its longest axis."""
    weights = np.bincount(labels, mixture.weights)
    centres = np.zeros((len(weights), mixture.dim))
    np.add.at(centres, labels, mixture.weights[:, None] * offsets)
    around = offsets - (centres / np.where(weights > 0, weights, 1.0)[:, None])[labels]
    covariances = mixture.distinct_covariances
    within = covariances[0] if mixture.shared else np.tensordot(mixture.weights, covariances, axes=1)
    within = within + (mixture.weights[:, None] * around).T @ around
    variance = np.maximum(np.diagonal(within), THIN * np.diagonal(mixture.covariance))
    scale = np.sqrt(np.where(variance > 0, variance, 1.0))
    longest = np.linalg.eigvalsh(within / scale[:, None] / scale)[-1]
    return offsets / (scale * np.sqrt(max(longest, 1.0)))


def _by_size(mixture: GaussianMixture) -> Labels:
    """Divide components of very different size where the sizes leave the widest gap."""
    variances = np.diagonal(mixture.distinct_covariances, axis1=1, axis2=2)
    whole = np.diagonal(mixture.covariance)
    size = np.sqrt((variances / np.where(whole > 0, whole, 1.0)).max(axis=1))
    log_size = np.log(np.maximum(size, np.sqrt(THIN)))
    if np.ptp(log_size) < np.log(UNLIKE):
        return np.zeros(len(mixture), dtype=np.int64)
    ordered = np.sort(log_size)
    gap = int(np.diff(ordered).argmax())
    return (log_size > 0.5 * (ordered[gap] + ordered[gap + 1])).astype(np.int64)


def _part(mixture: GaussianMixture, members: NDArray[np.bool_]) -> GaussianMixture:
    """Return a mixture of some of the components."""
    weights, covariances = mixture.weights[members], mixture.distinct_covariances
    return GaussianMixture.trusted(
        weights / weights.sum(),
        mixture.means[members],
        covariances if mixture.shared else covariances[members],
    )
