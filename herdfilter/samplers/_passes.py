"""Passes: herded points are placed again, each given all others, in a kernel of two widths."""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter._checks import Array
from herdfilter.bandwidths import Bandwidth
from herdfilter.samplers._frame import KernelFrame
from herdfilter.samplers._kernel_herding import ascend, padded
from herdfilter.samplers._shared_climb import whole

# The energy distance is the squared herding error integrated over all kernel widths. Two of them, in kernel widths of the
# frame and with heights in proportion, come close to it: a narrow one keeps neighbours apart, a wide one fills the tails.
WIDTHS = np.array([0.5, 1.5])
STEPS = 3  # of a climb: what it leaves to rise the next pass finds
FEW = 50  # points below which what greedy choice costs shows, and all are placed again unless told otherwise
HIGH = 8  # dimensions from which on they are whatever their number


def passes_meant(passes: int | None, bandwidth: Bandwidth, n: int, dim: int) -> int:
    """Return the number of passes; None means, with ``"auto"``, 5 over few points and 1 over more in high dimension."""
    if passes is not None:
        return passes
    if not isinstance(bandwidth, str):
        return 0
    return 5 if n < FEW else int(dim >= HIGH)


def place_again(frame: KernelFrame, z: Array, passes: int) -> Array:
    """Move the points z (n, d) of a frame that is turned, one after the other, `passes` times; (n, d).

    No move lowers the objective, the sum over both widths w of ``w (E[k_w(x, X)] - 1 / n sum_r k_w(x, x_r))``. The squared
    herding errors, weighed alike, are twice minus it over n and a constant, and so never rise.
    """
    d = z.shape[1]
    precisions, log_dets = zip(*(frame.precisions(width**2) for width in WIDTHS), strict=True)
    log_heights = frame.log_weights + 0.5 * np.array(log_dets) + (d + 1) * np.log(WIDTHS)[:, None]
    covariances = np.stack([frame.covariances + width**2 * np.eye(d) for width in WIDTHS])
    means = np.ascontiguousarray(frame.means.T)
    return _place_again(log_heights, means, np.stack(precisions), covariances, np.ascontiguousarray(z.T), passes).T


@njit(cache=True, nogil=True)
def _place_again(log_heights, means, precisions, covariances, z, passes):
    """Do so for the columns of z (d, n); heights, precisions and covariances are those of each width, as `kernel_herding`'s."""
    d, n = z.shape
    points, heights = np.zeros((max(d, 4), whole(n))), np.zeros((2, whole(n)))
    for s in range(n):
        for i in range(d):
            points[i, s] = z[i, s]
        for k in range(2):
            heights[k, s] = WIDTHS[k]
    layers = (
        _layer(0, log_heights, means, precisions, covariances, heights, points),
        _layer(1, log_heights, means, precisions, covariances, heights, points),
    )
    scratch = np.empty(max(len(layers[0][0][0]) + 2 * d, len(heights[0])))
    work, inverse_hessian = np.empty((5, d)), np.empty((d, d))
    x = np.empty(d)
    for step in range(passes * n):
        s = step % n
        for i in range(d):
            x[i] = points[i, s]
        for k in range(2):
            heights[k, s] = 0.0
        ascend(layers, n, 1.0 / n, x, -np.inf, STEPS, inverse_hessian, work, scratch)
        for i in range(d):
            points[i, s] = x[i]
        for k in range(2):
            heights[k, s] = WIDTHS[k]
    return np.ascontiguousarray(points[:d, :n])


@njit(cache=True, nogil=True)
def _layer(k, log_heights, means, precisions, covariances, heights, points):
    """Return target and samples as width k sees them."""
    rows = len(points)
    narrowness = np.ones(rows)
    for i in range(len(means)):
        narrowness[i] = precisions[k, 0, i, i]
    target = padded(log_heights[k], means, precisions[k], narrowness, covariances[k])
    return target, (heights[k], points, np.full(rows, WIDTHS[k] ** -2))
