"""The start of joint herding: ranked and balanced points of a mixture, on a line its quantiles, in units of the kernel.

A kernel must be as wide as the gaps between points, and no wider than a mode: its shape is the covariance within modes that
lie far apart, its width the rule of `herdfilter.bandwidths` for the points of a mode.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from herdfilter import _checks
from herdfilter._checks import UNDERFLOW, Array, Indices
from herdfilter._covariances import covariance_factor, regularised_and_rank
from herdfilter.bandwidths import scale_rule
from herdfilter.mixture import GaussianMixture
from herdfilter.samplers import balanced, compiled
from herdfilter.samplers.base import RatioSampler
from herdfilter.samplers.herding import frame
from herdfilter.samplers.mapped import along_main_axis
from herdfilter.samplers.quantile import QuantileSampling, quantiles

MOST_MODES = 10  # that are told apart
ROUNDING = 1e-14  # of sums of about 1


@dataclass(frozen=True)
class JointSampler(RatioSampler):
    """Base class of samplers that move all points together: a subclass has `move`."""

    smoothing: float = 0.0
    block: int | None = None

    def __post_init__(self) -> None:
        _checks.as_number("smoothing", self.smoothing, "0 or more", lambda x: x >= 0)
        if self.block is not None:
            _checks.check_count("block", self.block)

    def draw_weighted(
        self, mixture: GaussianMixture, n: int, target_weights: Array | None
    ) -> tuple[Array, Array | None]:
        """See `RatioSampler`; in blocks the ratios are of the parts of both mixtures that belong to a point's block."""
        present = mixture.weights > 0
        if not present.all():
            mixture = GaussianMixture.unchecked(
                mixture.weights[present],
                mixture.means[present],
                mixture.distinct_covariances[present if not mixture.shared else slice(1)],
            )
            target_weights = None if target_weights is None else target_weights[present]
        block = self.block or n
        if mixture.dim == 1 and n >= 2 * block:  # quantiles, which need no moves and no blocks
            return QuantileSampling().draw_weighted(mixture, n, target_weights)
        start = JointStart(mixture, n, min(self.smoothing / n, 1.0), block)
        self.move(start)
        x = start.states()
        if target_weights is None:
            return x, None
        shares = start.weights / mixture.weights[start.components]
        return x, log_ratios(x, mixture, start, target_weights[start.components] * shares)

    def move(self, start: JointStart) -> None:
        """Move the points of the start, in place."""
        raise NotImplementedError


class JointStart:
    """A mixture in kernel units, and n points of it to begin with, along a path.

    With an `added` share s the points are drawn from the mixture convolved with s times the kernel, and drawn together about
    the means of their modes, so that they keep its covariance. Directions in which components are thin, as those of a
    transition with little noise, are then filled between the components, and not only on them.

    The points are the first ``counts[b]`` columns of each block ``z[b]``, (K, d, B), with the M components ``centre[b]``,
    (K, d, M), from which its points came, of the indices `components` and the `weights` (K, M). One that two blocks share is
    in both, with a part of its weight; columns beyond those of a block have no weight. There is one block unless n is twice
    `block` or more; then blocks are neighbours on the path.
    """

    def __init__(self, mixture: GaussianMixture, n: int, added: float, block: int) -> None:
        covariances = mixture.distinct_covariances
        order = path_order(mixture)
        labels = far_modes(mixture, order)
        if labels is None:
            centres: Array = mixture.mean
            covariance = mixture.covariance
            points_per_mode = n
        else:
            shares = np.bincount(labels, mixture.weights)
            sums = [np.bincount(labels, mixture.weights * column) for column in mixture.means.T]
            mode_means = np.transpose(sums) / np.maximum(shares, UNDERFLOW)[:, None]
            covariance = frame.within_covariance(mixture, labels)
            points_per_mode = max(int(n * (shares @ shares)), 1)
        shape, dim = regularised_and_rank(covariance)
        width = scale_rule(points_per_mode, dim)
        kernel = width**2 * shape

        # The mixture convolved with a part of the kernel, and drawn together; the same mixture if no share is added
        if labels is not None:
            centres = mode_means[labels]
        contraction = 1.0 / np.sqrt(1.0 + added * width**2)
        means = centres + contraction * (mixture.means - centres)
        # Not the kernel's covariance, which is regularised: a dimension without spread gets none.
        widened = contraction**2 * (covariances + added * width**2 * covariance)
        # Even steps through the weights along the path, and noise of which every run is balanced; on a line, quantiles
        levels = (np.arange(n) + 0.5) / n
        ordered_weights = mixture.weights[order]
        cumulative = np.cumsum(ordered_weights)
        if mixture.dim == 1:
            x = quantiles(GaussianMixture.unchecked(mixture.weights, means, widened), levels)[0][
                :, None
            ]
        else:
            members = order[cumulative.searchsorted(levels * cumulative[-1], side="right")]
            noise = balanced.balanced_noise(n, mixture.dim, 0)
            factors = covariance_factor(widened)
            if mixture.shared:
                x = means[members] + noise @ factors[0].T
            else:
                x = means[members] + np.einsum("nij,nj->ni", factors[members], noise)

        blocks = max(n // block, 1)
        edges = np.arange(blocks + 1) * n // blocks
        self.counts = np.diff(edges)
        if blocks == 1:
            self.components = order[None]
            self.weights: Array = ordered_weights[None]
        else:
            bounds = edges / n * cumulative[-1]
            # Pieces of the line from 0 to the total weight, each of one component and in one block
            ends = np.sort(np.concatenate([cumulative, bounds[1:-1]]))
            lengths = np.diff(ends, prepend=0.0)
            middles = ends - 0.5 * lengths
            pieces = np.minimum(cumulative.searchsorted(middles), len(order) - 1)
            starts = middles.searchsorted(bounds)
            starts[-1] = len(middles)
            columns, present = padded(starts)
            self.components = order[pieces[columns]]
            self.weights = np.where(present, lengths[columns], 0.0)

        # Columns of A with A' K A = I for the kernel covariance K, along which the average covariance is diagonal
        variances, axes = scipy.linalg.eigh(mixture.average_covariance, kernel, check_finite=False)
        self.covariances: Array = np.maximum(variances, 0.0)
        if not mixture.shared:
            self.covariances = (axes.T @ covariances @ axes)[self.components]
        self.origin = mixture.mean
        self.axes = axes
        centre = (mixture.means - self.origin) @ axes
        self.centre: Array = np.ascontiguousarray(centre[self.components].transpose(0, 2, 1))
        z = (x - self.origin) @ axes
        self.z: Array = np.ascontiguousarray(z[padded(edges)[0]].transpose(0, 2, 1))

    def smoothed(self, width: float) -> tuple[Array, Array]:
        """Return the heights (K, M) and precisions of the components, smoothed by a kernel of this width.

        Heights are relative to the kernel's peak. Precisions are (K, d, d, M), or (1, d, 1, 1): a diagonal that all share.
        """
        d = len(self.origin)
        if self.covariances.ndim == 1:
            precision = 1.0 / (self.covariances + width**2)
            root = np.sqrt(np.multiply.reduce(precision))
            return width**d * root * self.weights, precision[None, :, None, None]
        precision = np.linalg.inv(self.covariances + width**2 * np.eye(d))
        height = width**d * np.sqrt(np.linalg.det(precision)) * self.weights
        return height, np.ascontiguousarray(precision.transpose(0, 2, 3, 1))

    def states(self) -> Array:
        """Return the points in state units, (n, d)."""
        blocks = [block[:, :count] for block, count in zip(self.z, self.counts, strict=True)]
        return np.asarray(self.origin + np.concatenate(blocks, axis=1).T @ np.linalg.inv(self.axes))


def padded(edges: Indices) -> tuple[Indices, NDArray[np.bool_]]:
    """Return the numbers between successive edges as rows, filled up with the last one, and where they are not filled up."""
    rows = edges[:-1, None] + np.arange(np.diff(edges).max())
    present = rows < edges[1:, None]
    return np.minimum(rows, edges[-1] - 1), present


def path_order(mixture: GaussianMixture) -> Indices:
    """Return the order of the components along the Hilbert curve, or the main axis in more dimensions than that has."""
    if mixture.dim > balanced.BITS:
        return along_main_axis(mixture)
    return balanced.hilbert_order(mixture.means, mixture.weights)


def far_modes(mixture: GaussianMixture, order: Indices) -> frame.Labels | None:
    """Return the number of each component's mode, from 0, (M,), or None if there is one; long steps of a path part modes."""
    if len(order) == 1:
        return None
    scale = np.sqrt(np.maximum(mixture.covariance.diagonal(), UNDERFLOW))
    path = np.ascontiguousarray(((mixture.means[order] - mixture.mean) / scale).T)
    variances = mixture.average_covariance.diagonal() / scale**2
    cuts = np.zeros(len(order), np.bool_)
    if not cut_path(path, mixture.weights[order], variances, cuts):
        return None
    labels: frame.Labels = np.empty(len(order), np.int64)
    labels[order] = np.cumsum(cuts)
    return labels


@compiled.njit(**compiled.CALLED)
def cut_path(path, weights, variances, cuts):
    """Mark where on a path (d, M) modes begin: after as many of its longest steps as are gaps. Return the number of these.

    A step is a gap if it is longer than six standard deviations within the modes that the cuts leave, to which components
    add `variances` (d,). The path has mean 0 and about unit variances.
    """
    d, components = path.shape
    length = np.zeros(components)
    # sums up to each component, from which those of a mode are differences
    mass = np.zeros(components + 1)
    first = np.zeros((d, components + 1))
    total = np.zeros(d)
    for k in range(components):
        mass[k + 1] = mass[k] + weights[k]
    for i in range(d):
        total[i] = variances[i]
        for k in range(components):
            first[i, k + 1] = first[i, k] + weights[k] * path[i, k]
            total[i] += weights[k] * path[i, k] ** 2
            if k > 0:
                length[k] += (path[i, k] - path[i, k - 1]) ** 2
    # ends of the modes, in order
    ends = np.zeros(MOST_MODES, np.int64)
    ends[0] = components
    gaps = 0
    for count in range(1, min(MOST_MODES, components)):
        step = 1
        for k in range(1, components):
            if length[k] > length[step]:
                step = k
        length[step] = -1.0
        rank = count
        while rank > 0 and ends[rank - 1] > step:
            ends[rank] = ends[rank - 1]
            rank -= 1
        ends[rank] = step
        squared = 0.0
        for i in range(d):
            # the variance within modes: that of all, less that of the means of modes
            within = total[i]
            start = 0
            for end in ends[: count + 1]:
                if mass[end] > mass[start]:
                    within -= (first[i, end] - first[i, start]) ** 2 / (mass[end] - mass[start])
                start = end
            within = max(within, variances[i] + ROUNDING)
            squared += (path[i, step] - path[i, step - 1]) ** 2 / within
        if squared > frame.GROUP_DISTANCE**2:
            gaps = count
            cuts[:] = False
            for end in ends[:count]:
                cuts[end] = True
    return gaps


def log_ratios(x: Array, mixture: GaussianMixture, start: JointStart, targets: Array) -> Array:
    """Return the log-ratios (n,) of densities at x (n, d): components weighted by `targets` (K, M), over those of the start.

    All components have one covariance. Where that of none reaches a point, the nearest decides.
    """
    whitening = np.linalg.inv(mixture.factors[0]).T
    z = np.ascontiguousarray((x - start.origin) @ whitening)
    centre = ((mixture.means - start.origin) @ whitening)[start.components].transpose(0, 2, 1)
    ratios = np.empty(len(x))
    fill_ratios(z, np.ascontiguousarray(centre), targets, start.weights, start.counts, ratios)
    with np.errstate(divide="ignore"):  # no weight: minus infinity
        return np.asarray(np.log(ratios))


@compiled.njit(**compiled.CALLED, fastmath=compiled.VECTORISE)
def fill_ratios(z, centre, targets, weights, counts, ratios):
    """Fill in ``sum_m targets[b, m] N(z; centre[b, :, m], I)`` over the same with `weights`, (n,), block by block."""
    _, d, components = centre.shape
    term = np.zeros(components)
    s = 0
    for block in range(len(counts)):
        q = weights[block]
        for _ in range(counts[block]):
            for m in range(components):
                term[m] = 0.0
            for i in range(d):
                for m in range(components):
                    term[m] -= 0.5 * (z[s, i] - centre[block, i, m]) ** 2
            # relative to the nearest component of positive weight
            peak = -np.inf
            for m in range(components):
                if q[m] > 0.0:
                    peak = max(peak, term[m])
            numerator = denominator = 0.0
            for m in range(components):
                density = compiled.exp(min(term[m] - peak, 0.0))
                numerator += targets[block, m] * density
                denominator += q[m] * density
            ratios[s] = numerator / denominator
            s += 1


@compiled.njit(**compiled.QUICK, forceinline=True)
def fill_residuals(centre, precision, x, residual, exponent):
    """Fill in P_m (x - c_m), (d, M), and -(x - c_m)' P_m (x - c_m) / 2, (M,), for the first M components."""
    d = len(x)
    components = len(exponent)
    shared = precision.shape[2] == 1
    for m in range(components):
        exponent[m] = 0.0
    for i in range(d):
        p = precision[i, 0, 0]
        k = i if shared else 0
        for m in range(components):
            residual[i, m] = (p if shared else precision[i, 0, m]) * (x[k] - centre[k, m])
        for j in range(1, 1 if shared else d):
            for m in range(components):
                residual[i, m] += precision[i, j, m] * (x[j] - centre[j, m])
        for m in range(components):
            exponent[m] -= 0.5 * residual[i, m] * (x[i] - centre[i, m])
