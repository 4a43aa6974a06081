"""Compiled search for the maximum of the herding objective over tiles of a grid, for few dimensions.

The state space is divided into boxes, each with an upper bound of the expected kernel mu. A box whose bound exceeds the
best value found is halved, down to tiles of a few kernel widths, at whose nodes mu and the kernel sum are kept. Nodes are
at most half a kernel width apart, and nothing in the objective is narrower than a kernel, so that the second differences
at a node tell how high a peak beside it is; every peak that may be the highest is climbed.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter.samplers._climb import solve_triangle
from herdfilter.samplers._fastmath import VECTORISE, exp, exp_clipped, fill

DOUBT = 0.1  # of the second differences at a node: how far the height of the peak beside it may be misjudged


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def highest_in_box(target, corner, size, extent, share):
    """Upper bound of mu in the box [corner, corner + extent * size]; the bound of each component is left in `share`."""
    height, means, precision = target
    a, b, c = 0.5 * extent * size[0], 0.5 * extent * size[1], 0.5 * extent * size[2]
    x, y, z = corner[0] + a, corner[1] + b, corner[2] + c
    total = 0.0
    for m in range(len(height)):
        u, v, w = means[0, m] - x, means[1, m] - y, means[2, m] - z
        aa, ba, bb = precision[0, m], precision[1, m], precision[2, m]
        ca, cb, cc = precision[3, m], precision[4, m], precision[5, m]
        squared = aa * u * u + bb * v * v + cc * w * w + 2.0 * (ba * u * v + ca * u * w + cb * v * w)
        radius = (
            aa * a * a + bb * b * b + cc * c * c + 2.0 * (abs(ba) * a * b + abs(ca) * a * c + abs(cb) * b * c)
        )
        distance = max(np.sqrt(max(squared, 0.0)) - np.sqrt(radius), 0.0)
        share[m] = height[m] * exp_clipped(-0.5 * distance * distance)
    for m in range(len(height)):
        total += share[m]
    return total


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def fill_target(target, share, least, corner, spacing, edge, values, rows):
    """Write mu at the nodes of a tile, whose first node (of the margin) is `corner`, from the components above `least`.

    Along the first axis a Gaussian on a uniform grid needs two multiplications a node; the loop runs over the others,
    whose places relative to the corner are in the last two of `rows`.
    """
    height, means, precision = target
    fill(values, 0.0)
    power, ratio = rows[0], rows[1]
    count = len(power)
    for m in range(len(height)):
        if share[m] <= least:
            continue
        aa, ba, bb = precision[0, m], precision[1, m], precision[2, m]
        ca, cb, cc = precision[3, m], precision[4, m], precision[5, m]
        u, dv, dw = corner[0] - means[0, m], corner[1] - means[1, m], corner[2] - means[2, m]
        for row in range(count):
            v, w = rows[2, row] + dv, rows[3, row] + dw
            tilt = ba * v + ca * w
            power[row] = -0.5 * (aa * u * u + 2.0 * tilt * u + bb * v * v + 2.0 * cb * v * w + cc * w * w)
            ratio[row] = -spacing * (aa * (u + 0.5 * spacing) + tilt)
        for row in range(count):
            power[row] = height[m] * exp_clipped(power[row])
            ratio[row] = exp(min(max(ratio[row], -700.0), 700.0))
        shrink = np.exp(-aa * spacing * spacing)
        for k in range(edge):
            for row in range(count):
                values[k * count + row] += power[row]
                power[row] *= ratio[row]
                ratio[row] *= shrink


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def deposit(x, weight, corner, b, offsets, values, lines, plane):
    """Add weight k(., x) at the nodes of tile b: a product of factors, one an axis; `offsets` are the nodes along it."""
    edge = len(offsets)
    d = len(lines) // edge
    for i in range(d):
        start = corner[b, i] - x[i]
        for k in range(edge):
            u = start + offsets[k]
            lines[i * edge + k] = -0.5 * u * u
    for k in range(d * edge):
        lines[k] = exp_clipped(lines[k])
    size = 1  # the outer product of the last axes, row by row
    plane[0] = weight
    for i in range(d - 1, 0, -1):
        for k in range(edge - 1, -1, -1):
            factor = lines[i * edge + k]
            for q in range(size):
                plane[k * size + q] = factor * plane[q]
        size *= edge
    for k in range(edge):
        factor = lines[k]
        base = k * size
        for q in range(size):
            values[b, base + q] += factor * plane[q]


@njit(cache=True, nogil=True)
def within(corner, b, extent, x, reach):
    """Whether x is within `reach` of box b, [corner, corner + extent]^d."""
    squared = 0.0
    for i in range(len(x)):
        u = max(corner[b, i] - x[i], x[i] - corner[b, i] - extent, 0.0)
        squared += u * u
    return squared < reach * reach


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def node_values(mu, kernels, b, scale, values):
    """Objective at the nodes of a tile; the largest is returned."""
    best = -np.inf
    for k in range(len(values)):
        values[k] = mu[b, k] - scale * kernels[b, k]
    for k in range(len(values)):
        best = max(best, values[k])
    return best


@njit(cache=True, nogil=True)
def find_peaks(mu, kernels, b, scale, values, stencil, best, spacing, peaks):
    """List the peaks among the inner nodes that may exceed `best`: bound of the height, place, height of the node.

    Their number is returned, and the highest bound of those not listed.
    """
    interior, strides = stencil
    bounds, places, heights = peaks
    d = len(strides)
    gain = (
        0.125 * d * spacing * spacing * 1.3
    )  # a peak beside a node exceeds it by less than this, times the curvature
    count = 0
    passed = -np.inf
    for q in interior:
        e = values[q]
        bound = e + gain * (mu[b, q] + scale * kernels[b, q])
        if bound <= passed:
            continue
        peak = True
        tie = e + 1e-10 * (
            mu[b, q] + scale * kernels[b, q]
        )  # the same node may be rounded otherwise in the next tile
        for i in range(d):
            if values[q - strides[i]] > tie or values[q + strides[i]] > tie:
                peak = False
                break
        if not peak:
            continue
        if bound <= best:
            passed = bound
            continue
        # Gradient and Hessian of minus the objective by differences, in units of the spacing
        r = strides[0]
        x, y, z = 0.5 * (values[q + r] - values[q - r]), 0.0, 0.0
        aa, ba, ca, cb = 2.0 * e - values[q + r] - values[q - r], 0.0, 0.0, 0.0
        bb = cc = aa
        bend = aa
        if d > 1:
            s = strides[1]
            y = 0.5 * (values[q + s] - values[q - s])
            bb = 2.0 * e - values[q + s] - values[q - s]
            ba = -0.25 * (values[q + r + s] - values[q + r - s] - values[q - r + s] + values[q - r - s])
            bend += bb
        if d > 2:
            t = strides[2]
            z = 0.5 * (values[q + t] - values[q - t])
            cc = 2.0 * e - values[q + t] - values[q - t]
            ca = -0.25 * (values[q + r + t] - values[q + r - t] - values[q - r + t] + values[q - r - t])
            cb = -0.25 * (values[q + s + t] - values[q + s - t] - values[q - s + t] + values[q - s - t])
            bend += cc
        u, v, w, sure = solve_triangle(aa, ba, bb, ca, cb, cc, x, y, z, 1e-3 * bend)
        if sure and max(abs(u), abs(v), abs(w)) <= 1.5:
            bound = min(bound, e + 0.5 * (x * u + y * v + z * w) + DOUBT * bend)
        else:
            u = v = w = 0.0
        if bound <= best or count == len(bounds):
            passed = max(passed, bound)
        else:
            bounds[count], heights[count] = bound, e
            rest = q
            for i in range(d):
                places[count, i] = (rest // strides[i]) * spacing
                rest %= strides[i]
            places[count, 0] += u * spacing
            places[count, 1] += v * spacing
            places[count, 2] += w * spacing
            count += 1
    return count, passed
