"""The frame in which the herding samplers work: coordinates in which the kernel is a unit Gaussian."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy
from numpy.typing import NDArray

from herdfilter._checks import Array
from herdfilter._covariances import regularised_and_rank
from herdfilter.bandwidths import scale_rule
from herdfilter.discrete.herding import herded_labels
from herdfilter.mixture import GaussianMixture

EQUAL_EIGENVALUES = 1e-9  # relative difference up to which eigenvalues, and weights, count as equal
# relative difference up to which lengths count as equal, and the first is taken
EQUAL_LENGTHS = 1e-6
GROUP_DISTANCE = 6.0  # standard deviations: three on either side of an empty gap
UNLIKE_RATIO = 5.0  # of widths: a kernel that suits one component is lost on the other
GROUP_POINTS = 2  # points per group, on average, that repay a kernel of its own
THIN_VARIANCE = 1e-24  # in units of the mixture's: a thinner dimension counts as that wide
Labels = NDArray[np.int64]
Herd = Callable[["KernelFrame", int], tuple[Array, Array]]
"""(frame, n) -> points (n, d) in the frame, and their weights (n,)."""
Descent = Callable[[GaussianMixture, Array, Array], Array]
"""(mixture, points (n, d), weights (n,)) -> better points (n, d)."""


@dataclass(frozen=True, eq=False, slots=True)
class KernelFrame:
    """A mixture in coordinates z with ``x = origin + axes @ z`` and kernel ``exp(-|z - z'|^2 / 2)``.

    ``axes @ axes.T`` is the kernel covariance. Weights (M,), means (M, d) and covariances (M, d, d), or (1, d, d) when
    shared, are those of the components with positive weight.
    """

    origin: Array
    axes: Array
    weights: Array
    means: Array
    covariances: Array

    @classmethod
    def of(cls, mixture: GaussianMixture, kernel: Array, turn: bool) -> KernelFrame:
        """Lay the frame of a kernel covariance (d, d).

        With `turn` the axes are the principal axes of the average component covariance, relative to the kernel: a covariance
        that all components share becomes diagonal.
        """
        mixture = _part(mixture, mixture.weights > 0)
        # z = L^-1 (x - origin) has the unit kernel for L L' = K, and keeps it when turned.
        axes = np.linalg.cholesky(kernel)
        inverse = np.linalg.inv(axes)
        if turn:
            average = inverse @ mixture.average_covariance @ inverse.T
            heavy = mixture.means[heaviest(mixture.weights)]
            values, vectors = principal_axes(average, inverse @ (heavy - mixture.mean))
            axes = axes @ vectors
            inverse = vectors.T @ inverse
        covariances = inverse @ mixture.distinct_covariances @ inverse.T
        if turn and mixture.shared:
            covariances = np.diag(values)[None]
        means = (mixture.means - mixture.mean) @ inverse.T
        return cls(mixture.mean, axes, mixture.weights, means, covariances)

    def forward(self, x: Array) -> Array:
        """Convert state units to frame coordinates, (n, d) -> (n, d)."""
        return np.linalg.solve(self.axes, (x - self.origin).T).T

    def back(self, z: Array) -> Array:
        """Convert frame coordinates to state units, (n, d) -> (n, d)."""
        return self.origin + z @ self.axes.T


def heaviest(weights: Array) -> int:
    """Return the first of the components whose weight is the largest to within rounding."""
    return int((weights > (1 - EQUAL_EIGENVALUES) * weights.max()).argmax())


def principal_axes(covariance: Array, towards: Array) -> tuple[Array, Array]:
    """Return eigenvalues and eigenvectors in a form that rounding does not decide.

    Vectors of eigenvalues equal to within rounding are laid along the coordinates. Vectors point to the side of `towards`
    (d,); one at right angles to that has a positive largest entry, of equally large entries the first.
    """
    values, vectors = np.linalg.eigh(covariance)
    # Any basis of a space of equal eigenvalues would do, so the one along the coordinates is taken.
    distinct = np.diff(values) > EQUAL_EIGENVALUES * values[-1]
    if not distinct.all():
        for first, end in pairwise([0, *np.flatnonzero(distinct) + 1, len(values)]):
            if end - first > 1:
                vectors[:, first:end] = _along_coordinates(vectors[:, first:end])
    along = towards @ vectors
    across = np.abs(along) <= EQUAL_EIGENVALUES * max(
        np.abs(along).max(), np.sqrt(max(values[-1], 0.0))
    )
    if across.any():
        size = np.abs(vectors)
        largest = vectors[
            (size > (1 - EQUAL_LENGTHS) * size.max(axis=0)).argmax(axis=0), np.arange(len(vectors))
        ]
        along = np.where(across, largest, along)
    return values, vectors * np.where(along < 0, -1.0, 1.0)


def _along_coordinates(basis: Array) -> Array:
    """Return the basis (d, k) of the same space that follows the coordinate axes nearest to it, one after another."""
    projection = basis @ basis.T
    # The longest projection of a coordinate axis comes first, and is taken out of the others (Gram and Schmidt).
    aligned = np.empty_like(basis)
    for k in range(basis.shape[1]):
        length = np.diagonal(projection)
        nearest = np.flatnonzero(length > (1 - EQUAL_LENGTHS) * length.max())[0]
        aligned[:, k] = projection[:, nearest] / np.sqrt(length[nearest])
        projection = projection - np.outer(aligned[:, k], aligned[:, k])
    return aligned


def grouped(
    mixture: GaussianMixture,
    n: int,
    herd: Herd,
    weighted: bool = False,
    within: Array | None = None,
) -> tuple[Array, Array]:
    """Herd each group of components by itself, n points in all; return points (n, d) and weights (n,).

    The groups take turns by herding on their weights, so that the first points, too, are shared out in proportion. Each has
    a frame of its own, and may be divided again. The weights are those that `herd` gives the points within their group,
    whose total is the group's. The kernel has the shape of the covariance `within`, by default the mixture's: unless
    `weighted`, groups of components of one covariance get kernels of one shape.
    """
    if n == 1 and len(mixture) == 1:
        return mixture.means, np.ones(1)
    labels = far_groups(mixture, n)
    if not labels.any():
        labels = unlike_groups(mixture, n)
    if not labels.any():
        shape, dim = regularised_and_rank(mixture.covariance if within is None else within)
        frame = KernelFrame.of(mixture, scale_rule(n, dim) ** 2 * shape, turn=True)
        z, weights = herd(frame, n)
        return frame.back(z), weights
    within = within_covariance(mixture, labels) if mixture.shared and not weighted else None
    group_weights = np.bincount(labels, mixture.weights).astype(np.float64)
    group_of_point = herded_labels(group_weights, n)
    x = np.empty((n, mixture.dim))
    weights = group_weights[group_of_point]
    for group in np.unique(group_of_point):
        rows = group_of_point == group
        part = _part(mixture, labels == group)
        x[rows], shares = grouped(part, int(rows.sum()), herd, weighted, within)
        weights[rows] *= shares / shares.sum()
    return x, weights


def move_groups(mixture: GaussianMixture, x: Array, weights: Array, descend: Descent) -> Array:
    """Improve weighted points (n, d) group by group, each within the group that it is nearest to."""
    labels = far_groups(mixture, len(x))
    if not labels.any():
        return descend(mixture, x, weights)
    unit = _deviations(mixture, labels)
    distances = scipy.spatial.distance.cdist(
        (x - mixture.mean) / unit, (mixture.means - mixture.mean) / unit
    )
    nearest = labels[distances.argmin(axis=1)]
    improved = x.copy()
    for group in np.unique(nearest):
        rows = nearest == group
        part = _part(mixture, labels == group)
        improved[rows] = move_groups(part, x[rows], weights[rows], descend)
    return improved


def far_groups(mixture: GaussianMixture, n: int) -> Labels:
    """Return the number of each component's group, from 0; (M,). This is the finest division into groups far apart.

    Far means six standard deviations, by the average covariance within groups and along its longest axis, each dimension in
    units of its own deviation. There are at least two points for each group, not counting those too light for a point.
    """
    one_group = np.zeros(len(mixture.weights), dtype=np.int64)
    most_groups = min(n // GROUP_POINTS, len(one_group))
    if most_groups < 2:
        return one_group
    # A path through all means with short steps proves that there is no gap, without all distances.
    steps = np.diff(mixture.means[mixture.means[:, 0].argsort()], axis=0) ** 2
    if (steps <= mixture.average_covariance.diagonal() * GROUP_DISTANCE**2 / mixture.dim).all():
        return one_group
    # Groups change the covariance within them, and that the distances: repeat until the division settles.
    labels: Labels = np.arange(len(one_group))
    while labels.any():
        unit = _deviations(mixture, labels)
        distances = scipy.spatial.distance.pdist((mixture.means - mixture.mean) / unit)
        tree = scipy.cluster.hierarchy.linkage(distances, "single")
        if tree[-1, 2] <= GROUP_DISTANCE:
            return one_group
        merged = scipy.cluster.hierarchy.fcluster(tree, GROUP_DISTANCE, "distance")
        if np.minimum(n * np.bincount(merged, mixture.weights), 1.0).sum() > n / GROUP_POINTS:
            merged = scipy.cluster.hierarchy.fcluster(tree, most_groups, "maxclust")
        if merged.max() > labels.max():
            return labels
        labels = merged.astype(np.int64) - 1
    return labels


def unlike_groups(mixture: GaussianMixture, n: int) -> Labels:
    """Divide components in two at the widest gap between sizes, if some are over five times as wide as others; (M,)."""
    labels = np.zeros(len(mixture), dtype=np.int64)
    if mixture.shared or n < 2 * GROUP_POINTS:
        return labels
    variances = np.diagonal(mixture.distinct_covariances, axis1=1, axis2=2)
    total = np.diagonal(mixture.covariance)
    size = np.sqrt((variances / np.where(total > 0, total, 1.0)).max(axis=1))
    log_size = np.log(np.maximum(size, np.sqrt(THIN_VARIANCE)))
    if np.ptp(log_size) < np.log(UNLIKE_RATIO):
        return labels
    ordered = np.sort(log_size)  # ratios of sizes are differences of logarithms
    gap = int(np.diff(ordered).argmax())
    labels[log_size > 0.5 * (ordered[gap] + ordered[gap + 1])] = 1
    return labels


def within_covariance(mixture: GaussianMixture, labels: Labels) -> Array:
    """Return the average covariance within groups, (d, d)."""
    weights = np.bincount(labels, mixture.weights)
    offsets = mixture.means - mixture.mean
    if len(weights) == len(offsets):  # each component is a group
        return mixture.average_covariance
    weighted = (mixture.weights[:, None] * offsets).T
    centres = np.array([np.bincount(labels, column) for column in weighted]).T
    around = offsets - (centres / np.where(weights > 0, weights, 1.0)[:, None])[labels]
    return mixture.average_covariance + (mixture.weights[:, None] * around).T @ around


def _deviations(mixture: GaussianMixture, labels: Labels) -> Array:
    """Return the standard deviations within groups, times the length of the longest axis in these units; (d,)."""
    within = within_covariance(mixture, labels)
    variance = np.maximum(np.diagonal(within), THIN_VARIANCE * np.diagonal(mixture.covariance))
    unit = np.sqrt(np.where(variance > 0, variance, 1.0))
    # Correlated dimensions have axes longer than one unit: parallel sheets are then no groups.
    unit *= np.sqrt(max(np.linalg.eigvalsh(within / unit[:, None] / unit)[-1], 1.0))
    return unit


def _part(mixture: GaussianMixture, members: NDArray[np.bool_]) -> GaussianMixture:
    """Return a mixture of some of the components."""
    weights = mixture.weights[members]
    cov = mixture.distinct_covariances
    if not mixture.shared:
        cov = cov[members]
    return GaussianMixture.unchecked(weights / weights.sum(), mixture.means[members], cov)
