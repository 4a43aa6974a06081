"""Maximum of a sum of signed one-dimensional Gaussian bumps, compiled.

``f(x) = sum_j height_j exp(-narrowness_j (x - centre_j)^2 / 2)``, no bump narrower than a kernel of width 1: positive bumps,
those of the target, then negative ones, the kernels at the samples.

f is at most the sum of its positive bumps. Where that exceeds the highest value so far, f is tabulated on a grid a third of
a kernel wide. Newton's method starts from every local maximum of the table that may be the highest: near-ties are common.
"""

from __future__ import annotations

import numpy as np

from herdfilter.samplers.compiled import NO_ARRAYS, QUICK, exp, njit

BUMP_REACH = 8.5  # widths; beyond, a positive bump is under 2.1e-16 of its height and left out
SAMPLE_REACH = 7.0  # kernel widths; beyond, a sample is under 2.3e-11 of its height and left out
TABLE_STEP = 1.0 / 3.0  # of a table, in widths of the narrowest bump
CLOSE_VALUES = 1e-9  # share of the tallest bump by which values hardly differ
PIECE = 59  # steps of a table; with two more on either side and the last cell a multiple of 4
BLOCKS = 64  # into which a longer line is divided at once

# Rows of an array of bumps; the last three are workspace of `tabulate`
HEIGHT, CENTRE, NARROWNESS, WIDTH, POWER, RATIO, SHRINK = range(7)
# Rows of a table: values on a grid, and the positions and upper bounds of the leading maxima
VALUE, POSITION, BOUND = range(3)
# Columns of a stack of pieces of the line: where they begin and end, and what f is at most there
LOW, HIGH, LIMIT = range(3)


@njit(**NO_ARRAYS)
def gather(bumps, positive, count, below, low, high, near):
    """Copy the bumps in reach of [low, high], filled up to whole vectors of the processor.

    Return how many are positive, how many there are, and the step of a table that resolves the narrowest of them.
    """
    margin = max(1.0, 0.1 * (high - low))
    size = 0
    narrowest = 1e300
    for j in range(count):
        # Written in any case: the next bump in reach overwrites one out of reach.
        near[HEIGHT, size] = bumps[HEIGHT, j]
        near[CENTRE, size] = bumps[CENTRE, j]
        near[NARROWNESS, size] = bumps[NARROWNESS, j]
        near[WIDTH, size] = bumps[WIDTH, j]
        reach = (BUMP_REACH * bumps[WIDTH, j] if j < positive else below) + margin
        if low - reach < bumps[CENTRE, j] < high + reach:
            narrowest = min(narrowest, bumps[WIDTH, j])
            size += 1
        if j == positive - 1:
            above = size
    while size % 4 != 0:
        near[HEIGHT, size] = 0.0
        near[CENTRE, size] = low
        near[NARROWNESS, size] = 0.0
        size += 1
    return above, size, TABLE_STEP * narrowest


@njit(**QUICK)
def tabulate(near, count, start, step, cells, table):
    """Fill in f at `cells` points, or up to three more, from `start` on.

    A Gaussian on a uniform grid takes two multiplications a point: the ratio of neighbours shrinks by a constant factor.
    """
    for j in range(count):
        u = start - near[CENTRE, j]
        q = near[NARROWNESS, j] * step
        near[POWER, j] = near[HEIGHT, j] * exp(-0.5 * near[NARROWNESS, j] * u * u)
        near[RATIO, j] = exp(min(-q * (u + 0.5 * step), 700.0))
        near[SHRINK, j] = exp(-q * step)
    # Four points a pass, so that each bump is loaded once for all of them.
    for k in range(0, cells, 4):
        f0 = f1 = f2 = f3 = 0.0
        for j in range(count):
            p0 = near[POWER, j]
            r0 = near[RATIO, j]
            q = near[SHRINK, j]
            p1 = p0 * r0
            r1 = r0 * q
            p2 = p1 * r1
            r2 = r1 * q
            p3 = p2 * r2
            r3 = r2 * q
            f0 += p0
            f1 += p1
            f2 += p2
            f3 += p3
            near[POWER, j] = p3 * r3
            near[RATIO, j] = r3 * q
        table[VALUE, k] = f0
        table[VALUE, k + 1] = f1
        table[VALUE, k + 2] = f2
        table[VALUE, k + 3] = f3


@njit(**NO_ARRAYS)
def find_peaks(table, start, step, cells, floor):
    """Note the local maxima of a table that may exceed `floor`; return their number, and which is the most promising."""
    peaks = 0
    first = 0
    for k in range(2, cells - 2):
        f = table[VALUE, k]
        before = table[VALUE, k - 1]
        after = table[VALUE, k + 1]
        if f > before and f >= after:
            # The parabola through three points, and how far it may be off by the second differences beside it
            bend = before - 2.0 * f + after
            tilt = 0.5 * (after - before)
            doubt = abs(table[VALUE, k - 2] - 2.0 * before + f)
            doubt += abs(f - 2.0 * after + table[VALUE, k + 2])
            bound = f - 0.5 * tilt * tilt / bend - 0.1 * bend + 0.05 * doubt + 1e-7
            if bound > floor:
                table[POSITION, peaks] = start + step * (k - tilt / bend)
                table[BOUND, peaks] = bound
                if bound > table[BOUND, first]:
                    first = peaks
                peaks += 1
    return peaks, first


@njit(**NO_ARRAYS)
def refine(near, count, x, step):
    """Return the local maximum around x and its value, by Newton's method, bisecting if a step leaves the bracket."""
    low = x - 1.5 * step
    high = x + 1.5 * step
    value = 0.0
    for _ in range(60):
        value, slope, curvature = bump_slopes(near, count, x)
        if slope > 0.0:
            low = x
        else:
            high = x
        next_x = x - slope / curvature if curvature < 0.0 else low - 1.0
        if not low <= next_x <= high:
            next_x = 0.5 * (low + high)
        change = next_x - x
        x = next_x
        # Newton's method converges quadratically: the step just taken leaves an error near its square.
        if abs(change) < 1e-7 * step:
            value += 0.5 * slope * change
            break
    return x, value


@njit(**QUICK)
def bump_slopes(bumps, count, x):
    """Return f, f' and f'' at x."""
    value = slope = curvature = 0.0
    for j in range(count):
        u = x - bumps[CENTRE, j]
        a = bumps[NARROWNESS, j] * u
        g = bumps[HEIGHT, j] * exp(-0.5 * a * u)
        value += g
        slope -= a * g
        curvature += (a * a - bumps[NARROWNESS, j]) * g
    return value, slope, curvature


@njit(**NO_ARRAYS)
def maximise_bumps(workspace, positive, count, guess):
    """Return the position of the maximum of `count` bumps, the first `positive` of them of positive height.

    A good `guess` spares work: pieces of the line on which f cannot exceed its value are left out. ``workspace`` is a
    `GibbsWorkspace`.
    """
    bumps = workspace.bumps
    near = workspace.near
    table = workspace.table
    stack = workspace.stack
    tallest = 0
    for j in range(positive):
        if bumps[HEIGHT, j] > bumps[HEIGHT, tallest]:
            tallest = j
    deepest = 0.0
    for j in range(positive, count):
        deepest = min(deepest, bumps[HEIGHT, j])
    top = bumps[HEIGHT, tallest]
    # Samples deeper than the top of the target reach further, relative to it.
    below = np.sqrt(SAMPLE_REACH**2 + 2.0 * np.log(max(-deepest / top, 1.0)))
    best = guess
    best_value = 0.0
    for k in range(2):
        x = guess if k == 0 else bumps[CENTRE, tallest]
        # Lowered, so that a refined maximum close by wins against it.
        value = bump_slopes(bumps, count, x)[0] - CLOSE_VALUES * top
        if value > best_value:
            best = x
            best_value = value
    tie = 0.5 * CLOSE_VALUES * top
    low, high = narrow_interval(bumps, positive, top, max(best_value, CLOSE_VALUES * top))
    stack[0, LOW] = low
    stack[0, HIGH] = high
    stack[0, LIMIT] = np.inf
    size = 1
    while size > 0:
        size -= 1
        low = stack[size, LOW]
        high = stack[size, HIGH]
        if stack[size, LIMIT] <= best_value:
            continue
        above, near_count, step = gather(bumps, positive, count, below, low, high, near)
        if high - low > PIECE * step and size + BLOCKS <= len(stack):
            size = divide_line(near, above, low, high, step, size, stack)
            continue
        # The stack may be too full to divide a long piece: its table is coarser then.
        step = max(step, (high - low) / PIECE)
        start = low - 2.0 * step
        cells = int(np.ceil((high - low) / step)) + 5
        tabulate(near, near_count, start, step, cells, table)
        peaks, first = find_peaks(table, start, step, cells, best_value)
        for k in range(peaks):
            # The most promising one comes first, in exchange with number 0; of a tie the last is taken.
            p = first if k == 0 else (0 if k == first else k)
            if table[BOUND, p] > best_value:
                x, value = refine(near, near_count, table[POSITION, p], step)
                if value > best_value + tie or (value > best_value - tie and x > best):
                    best = x
                    best_value = value
    return best


@njit(**QUICK)
def narrow_interval(bumps, positive, top, floor):
    """Return an interval outside which the sum of the positive bumps, and so f, is below `floor`."""
    low = np.inf
    high = -np.inf
    # The sum is below the floor where each bump is below its share of it.
    deviations = np.sqrt(2.0 * np.log(positive * top / floor))
    for j in range(positive):
        reach = -np.inf
        if positive * bumps[HEIGHT, j] > floor:
            reach = deviations * bumps[WIDTH, j] + TABLE_STEP
        low = min(low, bumps[CENTRE, j] - reach)
        high = max(high, bumps[CENTRE, j] + reach)
    return low, high


@njit(**QUICK)
def divide_line(near, positive, low, high, step, size, stack):
    """Put the blocks of a line on the stack; return its size.

    In a block, f is at most the sum of the positive bumps' largest values.
    """
    blocks = int(min(np.ceil((high - low) / (PIECE * step)), float(BLOCKS)))
    half = 0.5 * (high - low) / blocks
    for k in range(blocks):
        middle = low + (2 * k + 1) * half
        limit = 0.0
        for j in range(positive):
            u = max(abs(near[CENTRE, j] - middle) - half, 0.0)
            limit += near[HEIGHT, j] * exp(-0.5 * near[NARROWNESS, j] * u * u)
        stack[size + k, LOW] = middle - half
        stack[size + k, HIGH] = middle + half
        stack[size + k, LIMIT] = limit
    return size + blocks
