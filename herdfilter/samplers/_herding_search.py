"""What kernel herding's compiled loops need of a mixture: the choice between them, grids and candidates."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np

from herdfilter._checks import Array
from herdfilter.mixture import covariance_factor
from herdfilter.samplers._climb import PAD
from herdfilter.samplers._frame import KernelFrame
from herdfilter.samplers._grid_herding import INNER, herd_on_grid
from herdfilter.samplers._kernel_herding import STARTS, kernel_herding
from herdfilter.samplers.mapped import largest_remainders

SPACING = (0.25, 0.4, 0.5)  # of the nodes in 1, 2, 3 dimensions, in kernel widths
TRIANGLE = ((0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2))
OFF_CENTRE = np.array(
    [0.137, 0.291, 0.411]
)  # nodes share no symmetry with the mixture, so that rounding decides no ties
FEW = 16  # components up to which three dimensions are searched on the grid
BEYOND = 7.0  # standard deviations of a component, smoothed by the kernel, over which the grid extends
NODES = 4_000_000  # beyond which, and 100 for every point, the grid becomes coarser


def herd(frame: KernelFrame, n: int, rule: int, tries: int = STARTS) -> tuple[Array, Array]:
    """Herd `n` points in the frame, from the best `tries` candidates each: their places (n, d) and weights (n,)."""
    d, components = frame.means.shape[1], len(frame.means)
    precision, log_det = frame.precisions(1.0)
    log_height = frame.log_weights + 0.5 * log_det
    if d <= 2 or (d == 3 and components <= FEW):
        z, v = _on_grid(frame, precision, np.exp(log_height), n, rule)
    else:
        means = np.ascontiguousarray(frame.means.T)
        covariance = frame.covariances + np.eye(d)
        z, v = kernel_herding(log_height, means, precision, covariance, candidates(frame, n), n, rule, tries)
    return z[:d, :n].T, v[:n] / v[:n].sum()


def _on_grid(frame: KernelFrame, precision: Array, height: Array, n: int, rule: int) -> tuple[Array, Array]:
    """Lay the grid and run the loop."""
    d, components = len(frame.origin), len(height)
    room = -(-components // PAD) * PAD
    target = np.zeros(room), np.zeros((3, room)), np.zeros((len(TRIANGLE), room))
    target[0][:components] = height
    target[1][:d, :components] = frame.means.T
    for k, (i, j) in enumerate(TRIANGLE):
        if i < d:
            target[2][k, :components] = precision[:, i, j]

    margin = BEYOND * np.sqrt(np.diagonal(frame.covariances, axis1=1, axis2=2) + 1.0)
    low, high = (frame.means - margin).min(axis=0), (frame.means + margin).max(axis=0)
    peak = min(1.0, float(height.max()))
    reach = np.sqrt(2.0 * np.log(1e11 / peak))
    # Points keep as far apart as a kernel sum over t needs to fall from 1 / t to mu.
    apart = np.sqrt(2.0 * np.log(max(np.e, 1.0 / (n * peak))))
    volume = min(float(np.prod(high - low)), n * apart**d)
    spacing = max(SPACING[d - 1], (2.0 * volume / (NODES + 100 * n)) ** (1.0 / d))

    extent = INNER[d - 1] * spacing
    tiles = 2.0 ** np.ceil(np.log2(np.maximum((high - low) / extent, 1.0)))
    span = tiles * extent
    corner = 0.5 * (low + high - span) + OFF_CENTRE[:d] * spacing
    width = max(0.5 * reach, float(np.prod(span) / (4 * n)) ** (1.0 / d))
    grid = _padded(corner), _padded(tiles), spacing, INNER[d - 1], reach, d
    return herd_on_grid(target, grid, (np.ceil(span / width), width), n, rule)


def _padded(vector: Array) -> Array:
    return np.concatenate([vector, np.zeros(3 - len(vector))])


def candidates(frame: KernelFrame, n: int) -> Array:
    """Return starting points (d, C): the component means, and draws from the smoothed mixture, the same at every call."""
    d = len(frame.origin)
    total = np.exp(frame.log_weights) @ (frame.means**2 + np.diagonal(frame.covariances, axis1=1, axis2=2))
    kernels = np.sqrt(np.prod(1.0 + total))  # volume of the mixture in kernels
    draws = int(np.clip(kernels, max(200, 4 * n), max(1000 if d < 8 else 400, 4 * n)))
    labels = np.repeat(np.arange(len(frame.means)), largest_remainders(np.exp(frame.log_weights), draws))
    factor = covariance_factor(frame.covariances + np.eye(d))
    standard = _standard_normals(draws, d)
    if len(factor) == 1:
        noise = standard @ factor[0].T
    else:
        noise = np.empty_like(standard)
        ends = np.searchsorted(labels, np.arange(len(factor) + 1))
        for m, (start, end) in enumerate(pairwise(ends)):
            noise[start:end] = standard[start:end] @ factor[m].T
    return np.ascontiguousarray(np.concatenate([frame.means, frame.means[labels] + noise]).T)


@lru_cache(maxsize=8)
def _standard_normals(n: int, dim: int) -> Array:
    """Draws from N(0, I), (n, dim), always the same; a filter asks for them at every step."""
    noise = np.random.default_rng(0).standard_normal((n, dim))
    noise.flags.writeable = False
    return noise
