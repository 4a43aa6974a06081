"""Exact global maximum of a sum of signed one-dimensional Gaussian bumps, compiled.

``f(x) = sum_j height_j exp(-narrowness_j (x - centre_j)^2 / 2)``, no bump narrower than a kernel of width 1. The conditional
objectives of herding have this form: broad positive bumps (the target) less narrow ones (the samples).

The search is a branch and bound: f is at most the sum of its positive bumps, so the line is cut into blocks, each
gets that bound, and only blocks whose bound exceeds the best value so far are looked into, on a grid a third of a
kernel wide. There, safeguarded Newton steps start from every local maximum that may be the highest: near-ties between
peaks are common in herding.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter.samplers._fastmath import VECTORISE, exp, fill, largest

STEP = 1.0 / 3.0  # of the grid, in kernel widths
BLOCK = 16  # grid steps in a block
FEW_BLOCKS = 4  # up to so many are all looked into
MAX_BLOCKS = 2**16  # a longer search interval gets a coarser grid
POSITIVE_REACH = (
    8.5  # standard deviations; beyond, a positive bump is under 2.1e-16 of its height and left out
)
NEGATIVE_REACH = 6.0  # kernel widths; beyond, a subtracted bump is under 1.6e-8 of its height and left out


@njit(cache=True, nogil=True)
def workspace(bumps):
    """Arrays that `argmax` works in, for at most `bumps` bumps."""
    return np.empty((8, bumps)), np.empty(bumps, np.int64)


@njit(cache=True, nogil=True)
def argmax(height, centre, narrowness, positive, count, uniform, guess, work, link):
    """Position of the global maximum; bumps [0, positive) have positive heights and [positive, count) negative ones.

    `height`, `centre`, `narrowness` hold at least `count` bumps, the negative ones with narrowness 1; `uniform` tells that
    the positive ones have one narrowness too. A good `guess` of the position spares blocks; `work` and `link` come from
    `workspace`.
    """
    deviation, reach = work[6], work[3]
    low, high = _search_interval(height, centre, narrowness, positive, count, deviation, reach)
    step = max(STEP, (high - low) / (BLOCK * MAX_BLOCKS))
    steps = int(np.ceil((high - low) / step))
    in_block = steps if steps <= FEW_BLOCKS * BLOCK else BLOCK
    blocks = (steps + in_block - 1) // in_block
    width = in_block * step
    bound = np.empty(blocks)
    fill(bound, np.inf if blocks == 1 else 0.0)
    if blocks > 1:
        for j in range(positive):
            _bound_blocks(bound, low, width, height[j], centre[j], narrowness[j], reach[j])

    # Samples by block, as linked lists.
    head = np.empty(blocks, np.int64)
    fill(head, -1)
    for j in range(positive, count):
        b = min(max(int(np.floor((centre[j] - low) / width)), 0), blocks - 1)
        link[j] = head[b]
        head[b] = j
    around = int(np.ceil(NEGATIVE_REACH / width))

    best = guess
    best_value, _, _ = value_and_slopes(height, centre, narrowness, count, guess)
    cells = np.empty(in_block + 3)  # one cell of overlap on either side, so that every peak is inside a block
    bounds = np.empty(in_block + 3)
    while True:
        b = largest(bound)
        if bound[b] <= best_value or bound[b] <= 0.0:
            return best
        bound[b] = -np.inf
        start = low + b * width - step
        end = start + (in_block + 2) * step
        local = 0
        for j in range(positive):
            margin = POSITIVE_REACH * deviation[j]
            if start - margin < centre[j] < end + margin:
                work[0, local], work[1, local], work[2, local] = height[j], centre[j], narrowness[j]
                local += 1
        broad = local
        for k in range(max(0, b - around), min(blocks, b + around + 1)):
            j = head[k]
            while j >= 0:
                if start - NEGATIVE_REACH < centre[j] < end + NEGATIVE_REACH:
                    work[0, local], work[1, local], work[2, local] = height[j], centre[j], 1.0
                    local += 1
                j = link[j]
        fill(cells, 0.0)
        if step > STEP:
            _deposit(cells, start, step, work, local)
        else:
            if uniform:
                _deposit_uniform(cells, start, narrowness[0], work, 0, broad)
            else:
                _deposit(cells, start, step, work, broad)
            _deposit_uniform(cells, start, 1.0, work, broad, local)
        best, best_value = _best_peak(
            work[0], work[1], work[2], local, cells, bounds, start, step, best, best_value
        )


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _search_interval(height, centre, narrowness, positive, count, deviation, reach):
    """Interval that holds the maximum; sets the positive bumps' deviations and how far each matters.

    f is somewhere at least its mean over an interval that holds all positive bumps; a positive bump matters only as far
    as it exceeds a fraction of that.
    """
    mass = 0.0
    tallest = 0.0
    low = np.inf
    high = -np.inf
    for j in range(positive):
        deviation[j] = 1.0 / np.sqrt(narrowness[j])
        mass += height[j] * deviation[j]
        tallest = max(tallest, height[j])
        low = min(low, centre[j] - 6.0 * deviation[j])
        high = max(high, centre[j] + 6.0 * deviation[j])
    for j in range(positive, count):
        mass += height[j]
    floor = max(2.5 * mass / (high - low), 1e-9 * tallest)
    deviations = np.sqrt(2.0 * np.log(20.0 * positive * tallest / floor))
    low = np.inf
    high = -np.inf
    for j in range(positive):
        reach[j] = deviations * deviation[j]
        low = min(low, centre[j] - reach[j])
        high = max(high, centre[j] + reach[j])
    return low, high


@njit(cache=True, nogil=True)
def _bound_blocks(bound, low, width, height, centre, narrowness, reach):
    """Add to every block the largest value of one positive bump in it: the peak, or the value at the nearer edge."""
    last = len(bound) - 1
    middle = min(max(int(np.floor((centre - low) / width)), 0), last)
    bound[middle] += height
    shrink = np.exp(-narrowness * width * width)
    for side in (-1, 1):
        u = centre - (
            low + (middle + (side + 1) // 2) * width
        )  # to the edge shared with the next block on this side
        u = -side * u
        value = height * exp(max(-0.5 * narrowness * u * u, -700.0))
        ratio = np.exp(-narrowness * width * (u + 0.5 * width))
        k = middle + side
        while 0 <= k <= last and u < reach:
            bound[k] += value
            value *= ratio
            ratio *= shrink
            u += width
            k += side


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _deposit(cells, start, step, work, count):
    """Add bumps [0, count) to the grid: two multiplications a cell and bump, vectorised over the bumps."""
    height, centre, narrowness, power, ratio, shrink = work[0], work[1], work[2], work[4], work[5], work[7]
    for j in range(count):
        u = start - centre[j]
        p = narrowness[j] * step
        power[j] = height[j] * exp(max(-0.5 * narrowness[j] * u * u, -700.0))
        ratio[j] = exp(min(max(-p * (u + 0.5 * step), -700.0), 700.0))
        shrink[j] = exp(max(-p * step, -700.0))
    for k in range(len(cells)):
        total = 0.0
        for j in range(count):
            total += power[j]
            power[j] *= ratio[j]
            ratio[j] *= shrink[j]
        cells[k] += total


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _deposit_uniform(cells, start, narrowness, work, low, high):
    """Add the bumps [low, high), all of one narrowness and within reach of the block, to a grid of step STEP.

    With x_k = x_0 + k step, exp(-p (x_k - c)^2 / 2) is a product of a factor of k alone, one of c alone and the k-th power
    of exp(p (c - x_0) step): one multiplication a cell and bump, vectorised over the bumps.
    """
    height, centre, power, ratio = work[0], work[1], work[4], work[5]
    for j in range(low, high):
        u = centre[j] - start
        power[j] = height[j] * exp(-0.5 * narrowness * u * u)
        ratio[j] = exp(narrowness * u * STEP)
    for k in range(len(cells)):
        total = 0.0
        for j in range(low, high):
            total += power[j]
            power[j] *= ratio[j]
        cells[k] += total * exp(-0.5 * narrowness * (k * STEP) ** 2)


@njit(cache=True, nogil=True)
def _best_peak(height, centre, narrowness, count, cells, bounds, start, step, best, best_value):
    """Refine the grid's local maxima, most promising first, until no other can be higher than the best found.

    The vertex of the parabola through a peak estimates its height; the second differences around it bound the doubt.
    """
    size = len(cells)
    fill(bounds, -np.inf)
    for k in range(1, size - 1):
        if cells[k] > cells[k - 1] and cells[k] >= cells[k + 1]:
            bend = cells[k - 1] - 2.0 * cells[k] + cells[k + 1]
            tilt = 0.5 * (cells[k + 1] - cells[k - 1])
            doubt = 0.1 * abs(bend) + 1e-7
            if k > 1:
                doubt += 0.03 * abs(cells[k - 2] - 2.0 * cells[k - 1] + cells[k])
            if k < size - 2:
                doubt += 0.03 * abs(cells[k] - 2.0 * cells[k + 1] + cells[k + 2])
            bounds[k] = cells[k] - 0.5 * tilt * tilt / bend + doubt
    while True:
        k = largest(bounds)
        if bounds[k] <= best_value or bounds[k] == -np.inf:
            return best, best_value
        bounds[k] = -np.inf
        bend = cells[k - 1] - 2.0 * cells[k] + cells[k + 1]
        guess = start + (k - 0.5 * (cells[k + 1] - cells[k - 1]) / bend) * step
        x, value = _refine(
            height, centre, narrowness, count, start + (k - 1) * step, start + (k + 1) * step, guess
        )
        if value > best_value:
            best, best_value = x, value


@njit(cache=True, nogil=True)
def _refine(height, centre, narrowness, count, low, high, x):
    """Local maximum in [low, high] by Newton's method, bisecting where a step leaves the bracket or f is not concave."""
    for _ in range(60):
        value, slope, curvature = value_and_slopes(height, centre, narrowness, count, x)
        if slope > 0:
            low = x
        else:
            high = x
        moved = x - slope / curvature if curvature < 0 else low - 1.0
        if not low <= moved <= high:
            moved = 0.5 * (low + high)
        change = moved - x
        x = moved
        if (
            abs(change) < 1e-6
        ):  # Newton converges quadratically: the step just taken leaves an error near its square
            return x, value + 0.5 * slope * change
    return x, value


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def value_and_slopes(height, centre, narrowness, count, x):
    """f, f' and f'' at x, for the first `count` bumps."""
    value = 0.0
    slope = 0.0
    curvature = 0.0
    for j in range(count):
        u = x - centre[j]
        a = narrowness[j] * u
        g = height[j] * exp(max(-0.5 * a * u, -700.0))
        value += g
        slope -= a * g
        curvature += (a * a - narrowness[j]) * g
    return value, slope, curvature
