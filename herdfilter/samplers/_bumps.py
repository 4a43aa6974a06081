"""Exact global maximum of a sum of signed one-dimensional Gaussian bumps, compiled.

``f(x) = sum_j height_j exp(-precision_j (x - centre_j)^2 / 2)``, no bump narrower than a kernel of width 1. All conditional
objectives of herding have this form. The maximum is bracketed on a grid a third of a kernel wide and refined by safeguarded
Newton steps from every local maximum that may be the highest: near-ties between peaks are common in herding.
"""

from __future__ import annotations

import numpy as np
from numba import njit

STEP = 1.0 / 3.0  # of the grid, in kernel widths
CHUNK = 4096  # cells held at once; a longer search interval is walked in chunks
MAX_CELLS = 2**21  # a still longer one gets a coarser grid
NEGATIVE_REACH = 6.0  # kernel widths beyond which a subtracted bump (under 1.6e-8 of its height) is left off the grid


@njit(cache=True, nogil=True)
def value_and_slopes(height, centre, precision, count, x):
    """f, f' and f'' at x, for the first `count` bumps."""
    value = 0.0
    slope = 0.0
    curvature = 0.0
    for j in range(count):
        u = x - centre[j]
        a = precision[j] * u
        au = a * u
        if au < 72.0:
            g = height[j] * np.exp(-0.5 * au)
            value += g
            slope -= a * g
            curvature += (a * a - precision[j]) * g
    return value, slope, curvature


@njit(cache=True, nogil=True)
def _refine(height, centre, precision, count, low, high, x):
    """Local maximum in [low, high] by Newton's method, bisecting where a step leaves the bracket or f is not concave."""
    value = 0.0
    for _ in range(60):
        value, slope, curvature = value_and_slopes(height, centre, precision, count, x)
        if slope > 0:
            low = x
        else:
            high = x
        moved = x - slope / curvature if curvature < 0 else low - 1.0
        if not low < moved < high:
            moved = 0.5 * (low + high)
        change = abs(moved - x)
        x = moved
        if change < 1e-7:  # Newton converges quadratically: the step just taken leaves an error near its square
            break
    value, _, _ = value_and_slopes(height, centre, precision, count, x)
    return x, value


@njit(cache=True, nogil=True)
def _deposit(cells, size, low, step, height, centre, precision, reach):
    """Add one bump to the grid, outwards from the cell nearest its centre: two multiplications a cell."""
    position = (centre - low) / step
    first = max(0, int(np.ceil(position - reach / step)))
    last = min(size - 1, int(np.floor(position + reach / step)))
    if first > last:
        return
    middle = min(max(int(np.round(position)), first), last)
    u = low + middle * step - centre
    peak = height * np.exp(-0.5 * precision * u * u)
    shrink = np.exp(-precision * step * step)
    up = np.exp(-precision * step * (u + 0.5 * step))
    down = np.exp(precision * step * (u - 0.5 * step))
    cells[middle] += peak
    value = peak
    for k in range(middle + 1, last + 1):
        value *= up
        up *= shrink
        cells[k] += value
    value = peak
    for k in range(middle - 1, first - 1, -1):
        value *= down
        down *= shrink
        cells[k] += value


@njit(cache=True, nogil=True)
def argmax(height, centre, precision, count, reach, cells, peaks, bounds):
    """Position of the global maximum of the first `count` bumps.

    `reach` (count,), `cells` (CHUNK,), `peaks` (CHUNK,) and `bounds` (CHUNK,) are work space. At least one bump must be
    positive, and f must be positive somewhere.
    """
    # f is at least its mean over the interval that holds all positive bumps, so that a positive bump matters only as far
    # as it exceeds a fraction of that mean.
    low = np.inf
    high = -np.inf
    mass = 0.0
    positive = 0
    tallest = 0.0
    for j in range(count):
        deviation = 1.0 / np.sqrt(precision[j])
        mass += height[j] * deviation
        if height[j] > 0:
            positive += 1
            tallest = max(tallest, height[j])
            low = min(low, centre[j] - 6.0 * deviation)
            high = max(high, centre[j] + 6.0 * deviation)
    floor = max(2.5 * mass / (high - low), 1e-9 * tallest)
    low = np.inf
    high = -np.inf
    for j in range(count):
        if height[j] > 0:
            ratio = 20.0 * positive * height[j] / floor
            reach[j] = np.sqrt(2.0 * np.log(ratio) / precision[j]) if ratio > 1.0 else 0.0
            if reach[j] > 0:
                low = min(low, centre[j] - reach[j])
                high = max(high, centre[j] + reach[j])
        else:
            reach[j] = NEGATIVE_REACH

    step = max(STEP, (high - low) / MAX_CELLS)
    best = 0.5 * (low + high)
    best_value = -np.inf
    start = low - step
    while start < high:
        size = min(CHUNK, int(np.ceil((high - start) / step)) + 2)
        end = start + (size - 1) * step
        used = False
        for j in range(count):
            if height[j] > 0 and reach[j] > 0 and centre[j] + reach[j] > start and centre[j] - reach[j] < end:
                used = True
                break
        if used:
            cells[:size] = 0.0
            for j in range(count):
                if reach[j] > 0:
                    _deposit(cells, size, start, step, height[j], centre[j], precision[j], reach[j])
            best, best_value = _best_peak(
                height, centre, precision, count, cells, size, start, step, peaks, bounds, best, best_value
            )
        start = end - 2 * step  # two cells of overlap, so that every peak is inside a chunk
        if size < CHUNK:
            break
    return best, best_value


@njit(cache=True, nogil=True)
def _best_peak(height, centre, precision, count, cells, size, start, step, peaks, bounds, best, best_value):
    """Refine the grid's local maxima, most promising first, until no other can be higher than the best found."""
    found = 0
    for k in range(1, size - 1):
        if cells[k] > cells[k - 1] and cells[k] >= cells[k + 1]:
            bend = cells[k - 1] - 2.0 * cells[k] + cells[k + 1]
            tilt = 0.5 * (cells[k + 1] - cells[k - 1])
            doubt = 0.1 * abs(bend)
            if k > 1:
                doubt += 0.03 * abs(cells[k - 2] - 2.0 * cells[k - 1] + cells[k])
            if k < size - 2:
                doubt += 0.03 * abs(cells[k] - 2.0 * cells[k + 1] + cells[k + 2])
            peaks[found] = k
            bounds[found] = cells[k] - 0.5 * tilt * tilt / bend + doubt
            found += 1
    while True:
        pick = -1
        bound = best_value
        for c in range(found):
            if bounds[c] > bound:
                pick = c
                bound = bounds[c]
        if pick < 0:
            return best, best_value
        bounds[pick] = -np.inf
        k = int(peaks[pick])
        bend = cells[k - 1] - 2.0 * cells[k] + cells[k + 1]
        guess = start + (k - 0.5 * (cells[k + 1] - cells[k - 1]) / bend) * step
        x, value = _refine(height, centre, precision, count, start + (k - 1) * step, start + (k + 1) * step, guess)
        if value > best_value:
            best, best_value = x, value
