"""Exact global maximum of a sum of signed one-dimensional Gaussian bumps, compiled.

``f(x) = sum_j height_j exp(-narrowness_j (x - centre_j)^2 / 2)``, no bump narrower than a kernel of width 1. The conditional
objectives of herding have this form: broad positive bumps (the target) less narrow ones (the samples).

The search is a branch and bound: f is at most the sum of its positive bumps, so only where that sum exceeds the best
value so far is f looked at, on a grid a third of a kernel wide. There, safeguarded Newton steps start from every local
maximum that may be the highest: near-ties between peaks are common in herding. A line of more than a few thousand kernel
widths is halved until the pieces are short, or as smooth as a short piece.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter.samplers._fastmath import VECTORISE, exp, exp_of_negative

STEP = 1.0 / 3.0  # of the grid, in kernel widths
OVERLAP = (
    2  # cells that a block shares with its neighbours on either side, so that every peak is inside a block
)
BLOCK = 19  # grid steps in a block; with the overlap a multiple of 8 cells
SINGLE = 59  # a line of up to so many steps is one block
MANY = 256  # bumps; from then on blocks are longer, so that fewer bumps reach into two
MAX_BLOCKS = 512  # beyond, the line is halved
POSITIVE_REACH = (
    8.5  # standard deviations; beyond, a positive bump is under 2.1e-16 of its height and left out
)
NEGATIVE_REACH = 7.0  # kernel widths; beyond, a subtracted bump is under 2.3e-11 of its height and left out

# Rows of the workspace
(
    DEVIATION,
    POWER,
    RATIO,
    SHRINK,
    HEIGHT,  # of the positive bumps in reach of a piece of the line
    CENTRE,
    NARROWNESS,
    NEGATIVE,  # height and centre of the subtracted ones
    SAMPLE,
    SORTED_NEGATIVE,
    SORTED_SAMPLE,
    CELLS,
    PEAKS,
    PLACES,
    BOUND,
) = range(15)
STACK = 64  # pieces of a long line that wait to be searched, three numbers each

KERNEL = np.exp(-0.5 * (STEP * np.arange(SINGLE + 2 * OVERLAP + 1)) ** 2)


@njit(cache=True, nogil=True)
def workspace(bumps):
    """Arrays that `argmax` works in, for at most `bumps` bumps."""
    return np.empty((15, max(bumps, MAX_BLOCKS) + 4)), np.empty((2, max(bumps, MAX_BLOCKS) + 3), np.int64)


@njit(cache=True, nogil=True)
def argmax(height, centre, narrowness, positive, count, uniform, guess, work, link):
    """Position of the global maximum; bumps [0, positive) have positive heights and [positive, count) negative ones.

    The negative ones have narrowness 1; `uniform` tells that the positive ones have one narrowness too. A good `guess` of
    the position spares work; `work` and `link` come from `workspace`.
    """
    target = (height[:positive], centre[:positive], narrowness[:positive])
    return maximise(
        target, positive, height[positive:], centre[positive:], count - positive, uniform, guess, work, link
    )


@njit(cache=True, nogil=True)
def maximise(target, positive, negative, sample, count, uniform, guess, work, link):
    """Position of the global maximum of `argmax`, the positive bumps' arrays and the subtracted ones' given apart."""
    low, high, tallest, deepest = _search_interval(target, positive, negative, count, uniform, work)
    height, centre = target[0], target[1]
    far = NEGATIVE_REACH
    if deepest > 8.0 * height[tallest]:
        far = np.sqrt(far * far + 2.0 * np.log(deepest / height[tallest]))
    best, best_value = guess, -np.inf
    if high - low > SINGLE * STEP:
        top = centre[tallest]
        places = (guess, top, top - 4.0, top + 4.0)  # promising: also just beyond a sample at the top
        for k in range(4 if positive + count < MANY else 2):
            x = places[k]
            value = _value(target, positive, negative, sample, count, x)
            if value > best_value:
                best, best_value = x, value
        if best_value > 0.0:
            low, high = _tighten(height, centre, positive, best_value, work)
    steps = int(min(np.ceil((high - low) / STEP), 2.0**60))
    if steps <= SINGLE:
        best, _ = _search_piece(
            target, positive, negative, sample, count, uniform, far, low, steps, STEP, best, best_value, work
        )
    elif steps <= MAX_BLOCKS * BLOCK:
        best = _search_blocks(
            target, positive, negative, sample, count, uniform, far, low, steps, best, best_value, work, link
        )
    else:
        best = _search_halves(
            target, positive, negative, sample, count, uniform, far, low, high, best, best_value, work
        )
    return best


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _search_interval(target, positive, negative, count, uniform, work):
    """Interval that holds the maximum, the tallest positive bump and the largest subtracted height; sets deviations.

    f is somewhere at least its mean over an interval that holds all positive bumps; a positive bump matters only as far
    as it exceeds a fraction of that.
    """
    height, centre, narrowness = target
    mass = 0.0
    top = 0.0
    low = np.inf
    high = -np.inf
    if uniform:
        deviation = 1.0 / np.sqrt(narrowness[0])
        for j in range(positive):
            work[DEVIATION, j] = deviation
            mass += height[j]
            top = max(top, height[j])
            low = min(low, centre[j])
            high = max(high, centre[j])
        mass *= deviation
        low -= 6.0 * deviation
        high += 6.0 * deviation
    else:
        for j in range(positive):
            deviation = 1.0 / np.sqrt(narrowness[j])
            work[DEVIATION, j] = deviation
            mass += height[j] * deviation
            top = max(top, height[j])
            low = min(low, centre[j] - 6.0 * deviation)
            high = max(high, centre[j] + 6.0 * deviation)
    deepest = 0.0
    for j in range(count):
        mass += negative[j]
        deepest = min(deepest, negative[j])
    tallest = 0
    while height[tallest] < top:
        tallest += 1
    floor = max(2.5 * mass / (high - low), 1e-9 * top)
    deviations = np.sqrt(2.0 * np.log(20.0 * positive * top / floor))
    if uniform:
        margin = (deviations - 6.0) * work[DEVIATION, 0]
        return low - margin, high + margin, tallest, -deepest
    low = np.inf
    high = -np.inf
    for j in range(positive):
        low = min(low, centre[j] - deviations * work[DEVIATION, j])
        high = max(high, centre[j] + deviations * work[DEVIATION, j])
    return low, high, tallest, -deepest


@njit(cache=True, nogil=True)
def _tighten(height, centre, positive, best_value, work):
    """Interval outside of which every positive bump, and so their sum, is too low to matter."""
    low, high = np.inf, -np.inf
    for j in range(positive):
        excess = positive * height[j] / best_value
        if excess >= 1.0:
            reach = work[DEVIATION, j] * np.sqrt(2.0 * np.log(excess)) + STEP
            low = min(low, centre[j] - reach)
            high = max(high, centre[j] + reach)
    return low, high


@njit(cache=True, nogil=True)
def _search_piece(
    target, positive, negative, sample, count, uniform, far, low, steps, step, best, best_value, work
):
    """Search one short piece of the line: `steps` steps of the grid from `low` on."""
    start = low - OVERLAP * step
    end = start + (steps + 2 * OVERLAP + 1) * step
    local = _positive_in_reach(target, positive, start, end, work)
    near = 0
    for j in range(count):
        work[NEGATIVE, near] = negative[j]
        work[SAMPLE, near] = sample[j]
        near += start - far < sample[j] < end + far
    near = _pad(near, start, work)
    return _search_cells(uniform, local, near, start, steps + 2 * OVERLAP + 1, step, best, best_value, work)


@njit(cache=True, nogil=True)
def _positive_in_reach(target, positive, start, end, work):
    """Copy the positive bumps that matter in [start, end] to the workspace; return how many."""
    height, centre, narrowness = target
    local = 0
    for j in range(positive):
        margin = POSITIVE_REACH * work[DEVIATION, j]
        work[HEIGHT, local] = height[j]
        work[CENTRE, local] = centre[j]
        work[NARROWNESS, local] = narrowness[j]
        local += start - margin < centre[j] < end + margin
    while local % 4 != 0:  # whole vectors
        work[HEIGHT, local] = 0.0
        work[CENTRE, local] = start
        work[NARROWNESS, local] = work[NARROWNESS, 0]
        local += 1
    return local


@njit(cache=True, nogil=True)
def _pad(near, start, work):
    """Fill up the subtracted bumps in reach to whole vectors."""
    while near % 4 != 0:
        work[NEGATIVE, near] = 0.0
        work[SAMPLE, near] = start
        near += 1
    return near


@njit(cache=True, nogil=True)
def _search_blocks(
    target, positive, negative, sample, count, uniform, far, low, steps, best, best_value, work, link
):
    """Search the line block by block, in the order of the blocks' bounds, until none can hold the maximum."""
    block = BLOCK if count < MANY else SINGLE
    blocks = (steps + block - 1) // block
    width = block * STEP
    _bound_blocks(target, positive, low, width, blocks, work)
    _sort_samples(negative, sample, count, far, low, width, blocks, work, link)
    around = int(np.ceil((far + OVERLAP * STEP) / width))
    while True:
        b = 0
        for k in range(1, blocks):
            if work[BOUND, k] > work[BOUND, b]:
                b = k
        if work[BOUND, b] <= max(best_value, 0.0):
            return best
        work[BOUND, b] = -np.inf
        start = low + b * width - OVERLAP * STEP
        end = start + (block + 2 * OVERLAP + 1) * STEP
        local = _positive_in_reach(target, positive, start, end, work)
        near = 0
        for j in range(link[0, max(0, b - around)], link[0, min(blocks, b + around + 1)]):
            work[NEGATIVE, near] = work[SORTED_NEGATIVE, j]
            work[SAMPLE, near] = work[SORTED_SAMPLE, j]
            near += start - far < work[SORTED_SAMPLE, j] < end + far
        near = _pad(near, start, work)
        best, best_value = _search_cells(
            uniform, local, near, start, block + 2 * OVERLAP + 1, STEP, best, best_value, work
        )


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _bound_blocks(target, positive, low, width, blocks, work):
    """Sum of the positive bumps' largest values in every block: the peak, or the value at the nearer edge."""
    height, centre, narrowness = target
    for k in range(blocks):
        work[BOUND, k] = 0.0
    for j in range(positive):
        middle = (centre[j] - low) / width - 0.5
        scale = -0.5 * narrowness[j] * width * width
        reach = POSITIVE_REACH * work[DEVIATION, j] / width + 1.0
        first = int(max(middle - reach, 0.0))
        reached = int(min(max(middle + reach, 0.0), blocks - 1.0)) + 1 - first
        for k in range(reached):
            u = max(abs(middle - first - k) - 0.5, 0.0)
            work[POWER, k] = exp_of_negative(scale * u * u)
        for k in range(reached):
            work[BOUND, first + k] += height[j] * work[POWER, k]


@njit(cache=True, nogil=True)
def _sort_samples(negative, sample, count, far, low, width, blocks, work, link):
    """Sort the subtracted bumps by block, those out of reach last; link[0, b] is where block b begins."""
    for b in range(blocks + 3):
        link[0, b] = 0
    for j in range(count):
        place = (sample[j] - low) / width
        b = int(min(max(place, 0.0), blocks - 1.0))
        b = b if abs(place - 0.5 * blocks) * width < 0.5 * blocks * width + far else blocks
        link[1, j] = b
        link[0, b + 2] += 1
    for b in range(2, blocks + 3):
        link[0, b] += link[0, b - 1]
    for j in range(count):
        b = link[1, j] + 1
        work[SORTED_NEGATIVE, link[0, b]] = negative[j]
        work[SORTED_SAMPLE, link[0, b]] = sample[j]
        link[0, b] += 1


@njit(cache=True, nogil=True)
def _search_halves(
    target, positive, negative, sample, count, uniform, far, low, high, best, best_value, work
):
    """Search a long line by halving: a piece is dropped by its bound, searched when short or smooth, else cut in two."""
    stack = np.empty((STACK, 3))
    stack[0, 0], stack[0, 1] = low, high
    stack[0, 2] = _bound(target, positive, low, high)
    size = 1
    while size > 0:
        size -= 1
        low, high, bound = stack[size, 0], stack[size, 1], stack[size, 2]
        if bound <= max(best_value, 0.0):
            continue
        step = STEP * _smoothness(target, positive, sample, count, far, low, high, work)
        if high - low <= SINGLE * step or size > STACK - 3:
            steps = min(int(np.ceil((high - low) / step)), SINGLE)
            step = max(step, (high - low) / steps)
            best, best_value = _search_piece(
                target,
                positive,
                negative,
                sample,
                count,
                uniform,
                far,
                low,
                steps,
                step,
                best,
                best_value,
                work,
            )
            continue
        middle = 0.5 * (low + high)
        left = _bound(target, positive, low, middle)
        right = _bound(target, positive, middle, high)
        upper = 0 if left > right else 1  # the better half goes on top
        stack[size + upper, 0], stack[size + upper, 1], stack[size + upper, 2] = middle, high, right
        stack[size + 1 - upper, 0], stack[size + 1 - upper, 1], stack[size + 1 - upper, 2] = low, middle, left
        size += 2
    return best


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _bound(target, positive, low, high):
    """Sum of the positive bumps' largest values in [low, high]."""
    height, centre, narrowness = target
    total = 0.0
    for j in range(positive):
        u = max(max(low - centre[j], centre[j] - high), 0.0)
        total += height[j] * exp_of_negative(-0.5 * narrowness[j] * u * u)
    return total


@njit(cache=True, nogil=True)
def _smoothness(target, positive, sample, count, far, low, high, work):
    """Width of the narrowest bump that matters in [low, high]."""
    centre = target[1]
    margin = 0.1 * (high - low)
    low, high = low - margin, high + margin
    for j in range(count):
        if low - far < sample[j] < high + far:
            return 1.0
    width = np.inf
    for j in range(positive):
        reach = POSITIVE_REACH * work[DEVIATION, j]
        if low - reach < centre[j] < high + reach:
            width = min(width, work[DEVIATION, j])
    return width if width < np.inf else 1.0


@njit(cache=True, nogil=True)
def _search_cells(uniform, local, near, start, cells, step, best, best_value, work):
    """Search a piece of the grid with `local` positive bumps and `near` subtracted bumps of the workspace."""
    padded = (cells + 7) // 8 * 8
    if step == STEP:
        for k in range(padded):
            work[CELLS, k] = 0.0
        _deposit_kernels(near, start, padded, work)
    else:
        for k in range(padded):
            total = 0.0
            x = start + k * step
            for j in range(near):
                u = x - work[SAMPLE, j]
                total += work[NEGATIVE, j] * exp_of_negative(-0.5 * u * u)
            work[CELLS, k] = total
    if uniform and step == STEP:
        _deposit_uniform(local, start, padded, work)
    else:
        _deposit(local, start, padded, step, work)
    return _best_peak(local, near, start, cells, step, best, best_value, work)


# A bump on a uniform grid takes one or two multiplications a cell. With x_k = x_0 + k step, exp(-p (x_k - c)^2 / 2) is a
# product of a factor of k alone, one of c alone, and the k-th power of exp(p (c - x_0) step).


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _deposit_kernels(near, start, cells, work):
    """Add the subtracted bumps to the grid, of step STEP; vectorised over the bumps."""
    for j in range(near):
        u = work[SAMPLE, j] - start
        work[POWER, j] = work[NEGATIVE, j] * exp_of_negative(-0.5 * u * u)
        work[RATIO, j] = exp(min(max(u * STEP, -700.0), 700.0))
    for k in range(0, cells, 8):
        t0 = t1 = t2 = t3 = t4 = t5 = t6 = t7 = 0.0
        for j in range(near):
            p = work[POWER, j]
            r = work[RATIO, j]
            t0 += p
            p *= r
            t1 += p
            p *= r
            t2 += p
            p *= r
            t3 += p
            p *= r
            t4 += p
            p *= r
            t5 += p
            p *= r
            t6 += p
            p *= r
            t7 += p
            work[POWER, j] = p * r
        work[CELLS, k] += t0 * KERNEL[k]
        work[CELLS, k + 1] += t1 * KERNEL[k + 1]
        work[CELLS, k + 2] += t2 * KERNEL[k + 2]
        work[CELLS, k + 3] += t3 * KERNEL[k + 3]
        work[CELLS, k + 4] += t4 * KERNEL[k + 4]
        work[CELLS, k + 5] += t5 * KERNEL[k + 5]
        work[CELLS, k + 6] += t6 * KERNEL[k + 6]
        work[CELLS, k + 7] += t7 * KERNEL[k + 7]


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _deposit_uniform(local, start, cells, work):
    """Add the positive bumps, all of one narrowness, to the grid, of step STEP; vectorised over the bumps."""
    if local == 0:
        return
    narrowness = work[NARROWNESS, 0]
    for j in range(local):
        u = work[CENTRE, j] - start
        work[POWER, j] = work[HEIGHT, j] * exp_of_negative(-0.5 * narrowness * u * u)
        work[RATIO, j] = exp(min(max(narrowness * u * STEP, -700.0), 700.0))
    for k in range(cells):
        work[PEAKS, k] = exp_of_negative(-0.5 * narrowness * (k * STEP) ** 2)
    for k in range(0, cells, 8):
        t0 = t1 = t2 = t3 = t4 = t5 = t6 = t7 = 0.0
        for j in range(local):
            p = work[POWER, j]
            r = work[RATIO, j]
            t0 += p
            p *= r
            t1 += p
            p *= r
            t2 += p
            p *= r
            t3 += p
            p *= r
            t4 += p
            p *= r
            t5 += p
            p *= r
            t6 += p
            p *= r
            t7 += p
            work[POWER, j] = p * r
        work[CELLS, k] += t0 * work[PEAKS, k]
        work[CELLS, k + 1] += t1 * work[PEAKS, k + 1]
        work[CELLS, k + 2] += t2 * work[PEAKS, k + 2]
        work[CELLS, k + 3] += t3 * work[PEAKS, k + 3]
        work[CELLS, k + 4] += t4 * work[PEAKS, k + 4]
        work[CELLS, k + 5] += t5 * work[PEAKS, k + 5]
        work[CELLS, k + 6] += t6 * work[PEAKS, k + 6]
        work[CELLS, k + 7] += t7 * work[PEAKS, k + 7]


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _deposit(local, start, cells, step, work):
    """Add the positive bumps to the grid, two multiplications a cell; vectorised over the bumps."""
    for j in range(local):
        u = start - work[CENTRE, j]
        q = work[NARROWNESS, j] * step
        work[POWER, j] = work[HEIGHT, j] * exp_of_negative(-0.5 * work[NARROWNESS, j] * u * u)
        work[RATIO, j] = exp(min(max(-q * (u + 0.5 * step), -700.0), 700.0))
        work[SHRINK, j] = exp_of_negative(-q * step)
    for k in range(0, cells, 8):
        t0 = t1 = t2 = t3 = t4 = t5 = t6 = t7 = 0.0
        for j in range(local):
            p = work[POWER, j]
            r = work[RATIO, j]
            q = work[SHRINK, j]
            t0 += p
            p *= r
            r *= q
            t1 += p
            p *= r
            r *= q
            t2 += p
            p *= r
            r *= q
            t3 += p
            p *= r
            r *= q
            t4 += p
            p *= r
            r *= q
            t5 += p
            p *= r
            r *= q
            t6 += p
            p *= r
            r *= q
            t7 += p
            work[POWER, j] = p * r
            work[RATIO, j] = r * q
        work[CELLS, k] += t0
        work[CELLS, k + 1] += t1
        work[CELLS, k + 2] += t2
        work[CELLS, k + 3] += t3
        work[CELLS, k + 4] += t4
        work[CELLS, k + 5] += t5
        work[CELLS, k + 6] += t6
        work[CELLS, k + 7] += t7


@njit(cache=True, nogil=True)
def _best_peak(local, near, start, cells, step, best, best_value, work):
    """Refine the grid's local maxima, most promising first, until no other can be higher than the best found.

    The parabola through three cells around a peak estimates its height, and the second differences there bound the doubt.
    """
    peaks = 0
    for k in range(OVERLAP, cells - OVERLAP):
        f, before, after = work[CELLS, k], work[CELLS, k - 1], work[CELLS, k + 1]
        if f > before and f >= after:
            bend = before - 2.0 * f + after
            tilt = 0.5 * (after - before)
            doubt = 0.05 * (
                abs(work[CELLS, k - 2] - 2.0 * before + f) + abs(f - 2.0 * after + work[CELLS, k + 2])
            )
            bound = f - 0.5 * tilt * tilt / bend + 0.1 * abs(bend) + doubt + 1e-7
            if bound > best_value:
                work[PEAKS, peaks] = bound
                work[PLACES, peaks] = k
                peaks += 1
    while peaks > 0:
        p = 0
        for k in range(1, peaks):
            if work[PEAKS, k] > work[PEAKS, p]:
                p = k
        if work[PEAKS, p] <= best_value:
            break
        k = int(work[PLACES, p])
        peaks -= 1
        work[PEAKS, p], work[PLACES, p] = work[PEAKS, peaks], work[PLACES, peaks]
        middle = start + k * step
        vertex, flat = _vertex(work, k)
        if flat:
            x, value = _refine_flat(local, near, middle, step, work)
        else:
            x, value = _refine(local, near, middle, step, vertex * step, work)
        if value > best_value:
            best, best_value = x, value
    return best, best_value


@njit(cache=True, nogil=True)
def _vertex(work, k):
    """Maximum of the quartic through five cells, in cells from the middle one, by two Newton steps.

    Also tell whether the peak is so flat that two maxima may hide in it.
    """
    a, b, f, c, d = (
        work[CELLS, k - 2],
        work[CELLS, k - 1],
        work[CELLS, k],
        work[CELLS, k + 1],
        work[CELLS, k + 2],
    )
    slope = (a - d) / 12.0 + (c - b) / 1.5
    second = (b + c) / 0.75 - (a + d) / 12.0 - 2.5 * f
    third = 0.5 * (d - a) + b - c
    fourth = a + d + 6.0 * f - 4.0 * (b + c)
    u = 0.5 * (b - c) / (b - 2.0 * f + c)
    if _may_be_two(slope, second, third, fourth):
        return u, True
    for _ in range(2):
        u -= (slope + u * (second + u * (0.5 * third + u * fourth / 6.0))) / (
            second + u * (third + 0.5 * u * fourth)
        )
    return min(max(u, -1.0), 1.0), False


@njit(cache=True, nogil=True)
def _may_be_two(slope, second, third, fourth):
    """Whether the slope, as a cubic, has a flat place near zero within a cell: two maxima lie on either side of one."""
    a = 0.5 * fourth
    under = third * third - 4.0 * a * second
    if under < 0.0:
        return False
    q = -0.5 * (third + np.copysign(np.sqrt(under), third))
    small = 0.08 * (abs(second) + abs(third) + abs(fourth))
    for k in range(2):
        over, below = (q, a) if k == 0 else (second, q)
        if abs(over) < 1.3 * abs(below):
            u = over / below
            if abs(slope + u * (second + u * (0.5 * third + u * fourth / 6.0))) < small:
                return True
    return False


@njit(cache=True, nogil=True)
def _refine_flat(local, near, middle, step, work):
    """Highest of the maxima within a step of `middle`: those that an eight times finer grid shows, refined."""
    fine = 0.125 * step
    best, best_value = middle, -np.inf
    before, value = -np.inf, _value_and_slopes(local, near, middle - step, work)[0]
    for k in range(-8, 9):
        x = middle + k * fine
        after = _value_and_slopes(local, near, x + fine, work)[0]
        if value >= before and value >= after:
            x, value_there = _refine(local, near, x, fine, 0.0, work)
            if value_there > best_value:
                best, best_value = x, value_there
        before, value = value, after
    return best, best_value


@njit(cache=True, nogil=True)
def _refine(local, near, middle, step, offset, work):
    """Local maximum within a step of `middle`, by Newton's method, bisecting where a step leaves the bracket."""
    low, high = middle - step, middle + step
    x = middle + offset
    for _ in range(60):
        value, slope, curvature = _value_and_slopes(local, near, x, work)
        if slope > 0:
            low = x
        else:
            high = x
        moved = x - slope / curvature if curvature < 0 else low - 1.0
        if not low <= moved <= high:
            moved = 0.5 * (low + high)
        change = moved - x
        x = moved
        # Newton converges quadratically: the step just taken leaves an error near its square
        if abs(change) < 1e-5 * step:
            return x, value + 0.5 * slope * change
    return x, value


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _value_and_slopes(local, near, x, work):
    """f, f' and f'' at x, for the bumps in the workspace."""
    value = 0.0
    slope = 0.0
    curvature = 0.0
    for j in range(local):
        u = x - work[CENTRE, j]
        a = work[NARROWNESS, j] * u
        g = work[HEIGHT, j] * exp_of_negative(-0.5 * a * u)
        value += g
        slope -= a * g
        curvature += (a * a - work[NARROWNESS, j]) * g
    for j in range(near):
        u = x - work[SAMPLE, j]
        g = work[NEGATIVE, j] * exp_of_negative(-0.5 * u * u)
        value += g
        slope -= u * g
        curvature += (u * u - 1.0) * g
    return value, slope, curvature


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _value(target, positive, negative, sample, count, x):
    """Value at x."""
    height, centre, narrowness = target
    value = 0.0
    for j in range(positive):
        u = x - centre[j]
        value += height[j] * exp_of_negative(-0.5 * narrowness[j] * u * u)
    for j in range(count):
        u = x - sample[j]
        value += negative[j] * exp_of_negative(-0.5 * u * u)
    return value


# Without the guarantee: local searches only


@njit(cache=True, nogil=True)
def climb(target, positive, negative, sample, count, launch, work):
    """Highest of the local maxima reached by Newton's method from a few starting points.

    Row (u, z) of `launch` (k, 2) starts at z deviations from the centre of the bump that holds the share u of the positive
    bumps' mass: uniform u and normal z make it a draw from their density.
    """
    height, centre, narrowness = target
    mass = 0.0
    for j in range(positive):
        work[HEIGHT, j], work[CENTRE, j], work[NARROWNESS, j] = height[j], centre[j], narrowness[j]
        work[DEVIATION, j] = 1.0 / np.sqrt(narrowness[j])
        mass += height[j] * work[DEVIATION, j]
    for j in range(count):
        work[NEGATIVE, j], work[SAMPLE, j] = negative[j], sample[j]
    best, best_value = 0.0, -np.inf
    for k in range(len(launch)):
        j = 0
        before = height[0] * work[DEVIATION, 0]
        while j < positive - 1 and before < launch[k, 0] * mass:
            j += 1
            before += height[j] * work[DEVIATION, j]
        x, value = _ascend(positive, count, centre[j] + launch[k, 1] * work[DEVIATION, j], work)
        if value > best_value:
            best, best_value = x, value
    return best


@njit(cache=True, nogil=True)
def _ascend(positive, negative, x, work):
    """Local maximum uphill of x: Newton's method, steps limited to a radius that grows and shrinks with success."""
    radius = 1.0
    value, slope, curvature = _value_and_slopes(positive, negative, x, work)
    for _ in range(200):
        e = -slope / curvature if curvature < 0.0 else np.copysign(radius, slope)
        e = min(max(e, -radius), radius)
        if abs(e) < 1e-7:
            break
        there = _value_and_slopes(positive, negative, x + e, work)
        if there[0] >= value:
            x += e
            value, slope, curvature = there
            radius *= 2.0
        else:
            radius = 0.25 * abs(e)
    return x, value
