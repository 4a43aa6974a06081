"""Passes: herded points are placed again, each given all others, in a kernel of two widths."""

from __future__ import annotations

import numpy as np

from herdfilter._checks import Array
from herdfilter.bandwidths import Bandwidth
from herdfilter.samplers._frame import KernelFrame
from herdfilter.samplers._placing import WIDTHS, place
from herdfilter.samplers._shared_climb import whole

FEW = 50  # points below which what greedy choice costs shows, and all are placed again unless told otherwise
HIGH = 8  # dimensions from which on they are whatever their number


def passes_meant(passes: int | None, bandwidth: Bandwidth, n: int, dim: int) -> int:
    """Return the number of passes; None means, with ``"auto"``, 6 over few points and 1 over more in high dimension.

    In one and two dimensions, where they settle sooner, 3 will do.
    """
    if passes is not None:
        return passes
    if not isinstance(bandwidth, str):
        return 0
    if n >= FEW:
        return int(dim >= HIGH)
    return 3 if dim <= 2 else 6


def place_again(frame: KernelFrame, z: Array, passes: int) -> Array:
    """Move the points z (n, d) of a frame that is turned, one after the other, `passes` times; (n, d).

    No move lowers the objective, the sum over both widths w of ``w (E[k_w(x, X)] - 1 / n sum_r k_w(x, x_r))``. The squared
    herding errors, weighed alike, are twice minus it over n and a constant, and so never rise.
    """
    d, components = z.shape[1], len(frame.means)
    room = whole(components)
    shared = len(frame.covariances) == 1
    heights, means = np.zeros((2, room)), np.zeros((d, room))
    precision = np.zeros((2, d, d, 1 if shared else room))
    means[:, :components] = frame.means.T
    for k, width in enumerate(WIDTHS):
        inverse, log_det = frame.precisions(width**2)
        heights[k, :components] = np.exp(frame.log_weights + 0.5 * log_det + (d + 1) * np.log(width))
        precision[k, :, :, : len(inverse)] = np.moveaxis(inverse, 0, -1)
    smoothed = frame.covariances + WIDTHS[1] ** 2 * np.eye(d)
    return place((heights, means, precision, smoothed), np.ascontiguousarray(z.T), passes).T
