"""The frame in which the herding samplers work: coordinates in which the kernel is a unit Gaussian."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from herdfilter._checks import Array
from herdfilter.bandwidths import Bandwidth, kernel_covariance
from herdfilter.mixture import GaussianMixture

ROUND = 1e-9  # relative difference of eigenvalues that counts as none
NEARLY = 1e-6  # relative difference under which the first of two axes is taken
FLAT = 1e-8  # variance, in units of the kernel's, under which a component counts as degenerate


@dataclass(frozen=True, eq=False, slots=True)
class KernelFrame:
    """A mixture in coordinates z with ``x = origin + axes @ z`` and kernel ``exp(-|z - z'|^2 / 2)``.

    Attributes
    ----------
    origin, axes : ndarray, shapes (d,) and (d, d)
        The map back to state units; ``axes @ axes.T`` is the kernel covariance.
    log_weights, means : ndarray, shapes (M,) and (M, d)
        Of the components with positive weight.
    covariances : ndarray, shape (M, d, d), or (1, d, d) when shared
    """

    origin: Array
    axes: Array
    log_weights: Array
    means: Array
    covariances: Array

    @classmethod
    def of(cls, mixture: GaussianMixture, bandwidth: Bandwidth, n: int, turn: bool) -> KernelFrame:
        """Lay the frame for `n` points.

        With `turn` the axes are the principal axes of the average component covariance, relative to the kernel:
        coordinate-wise samplers then move along the components, and a covariance that all components share becomes diagonal.
        """
        keep = mixture.weights > 0
        weights, means, cov = mixture.weights, mixture.means, mixture.distinct_covariances
        if not keep.all():
            weights, means, cov = weights[keep], means[keep], cov if mixture.shared else cov[keep]
            mixture = GaussianMixture.unchecked(weights, means, cov)
        kernel = kernel_covariance(bandwidth, mixture, n)
        axes = np.linalg.cholesky(kernel)
        inverse = np.linalg.inv(axes)
        cov = inverse @ cov @ inverse.T
        if turn:
            average = cov[0] if len(cov) == 1 else np.tensordot(weights, cov, axes=1)
            values, vectors = principal_axes(average, inverse @ (means[heaviest(weights)] - weights @ means))
            cov = np.diag(values)[None] if len(cov) == 1 else vectors.T @ cov @ vectors
            axes, inverse = axes @ vectors, vectors.T @ inverse
        origin = weights @ means
        return cls(origin, axes, np.log(weights), (means - origin) @ inverse.T, np.ascontiguousarray(cov))

    def forward(self, x: Array) -> Array:
        """State units to frame coordinates, (n, d) -> (n, d)."""
        return np.linalg.solve(self.axes, (x - self.origin).T).T

    def back(self, z: Array) -> Array:
        """Frame coordinates to state units, (n, d) -> (n, d)."""
        return self.origin + z @ self.axes.T

    def precisions(self, smoothing: float) -> tuple[Array, Array]:
        """Inverses of ``covariances + smoothing I``, and their log-determinants.

        Without smoothing, variances below 1e-8 of the kernel's are raised to that: where a component has no extent,
        rounding leaves about as much, of either sign.
        """
        d = len(self.origin)
        widened = self.covariances + smoothing * np.eye(d)
        if smoothing < FLAT:
            values, vectors = np.linalg.eigh(widened)
            flat = values[:, 0] < FLAT
            raised = vectors[flat] * np.maximum(values[flat], FLAT)[:, None]
            widened[flat] = raised @ vectors[flat].swapaxes(1, 2)
        precision = np.linalg.inv(widened)
        return precision, np.linalg.slogdet(precision)[1]


def heaviest(weights: Array) -> int:
    """Return the first of the components whose weight is the largest to within rounding."""
    return int((weights > (1 - ROUND) * weights.max()).argmax())


def principal_axes(covariance: Array, towards: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors in a form that rounding does not decide.

    Where eigenvalues are equal to within rounding, as all are whose direction no mean leaves, their vectors are laid along
    the coordinates. Vectors point `towards` a place, seen from the origin; where it lies across one, its largest entry is
    positive, of entries as large as each other the first.
    """
    values, vectors = np.linalg.eigh(covariance)
    ends = np.flatnonzero(np.append(np.diff(values) > ROUND * values[-1], True)) + 1
    if len(ends) < len(values):
        for first, end in pairwise([0, *ends]):
            if end - first > 1:
                vectors[:, first:end] = _along_coordinates(vectors[:, first:end])
    along = towards @ vectors
    size = np.abs(vectors)
    largest = vectors[(size > (1 - NEARLY) * size.max(axis=0)).argmax(axis=0), np.arange(len(vectors))]
    across = np.abs(along) <= ROUND * max(np.abs(along).max(), np.sqrt(max(values[-1], 0.0)))
    return values, vectors * np.where(np.where(across, largest, along) < 0, -1.0, 1.0)


def _along_coordinates(basis: Array) -> Array:
    """Return the basis (d, k) of the same space that follows the coordinate axes nearest to it, one after the other."""
    rest, chosen = basis @ basis.T, np.empty_like(basis)
    for k in range(basis.shape[1]):
        length = np.diagonal(rest)
        nearest = np.flatnonzero(length > (1 - NEARLY) * length.max())[0]
        chosen[:, k] = rest[:, nearest] / np.sqrt(length[nearest])
        rest = rest - np.outer(chosen[:, k], chosen[:, k])
    return chosen
