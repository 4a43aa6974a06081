"""Maximum of a sum of signed one-dimensional Gaussian bumps, compiled.

``f(x) = sum_j height_j exp(-narrowness_j (x - centre_j)^2 / 2)``, no bump narrower than a kernel of width 1: positive bumps,
those of the target, then negative ones, the kernels at the samples.

f is at most the sum of its positive bumps. If that exceeds a value already found, f is tabulated at places a third of a
kernel apart. Newton's method starts from every local maximum of the table that may be the highest: near-ties are common.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from herdfilter._checks import Array
from herdfilter.samplers.compiled import PLAIN, QUICK, exp, njit

BUMP_REACH = 8.5  # widths; beyond, a positive bump is under 2.1e-16 of its height and left out
TABLE_STEP = 1.0 / 3.0  # of a table, in widths of the narrowest bump

# Rows of an array of bumps; the last three are worked in
HEIGHT, CENTRE, NARROWNESS, WIDTH, POWER, RATIO, SHRINK = range(7)
# Rows of a table: values on a grid, and of its leading maxima the places and what f is at most there
VALUE, PLACE, BOUND = range(3)
PIECE = 59  # steps of a table; with two more on either side and the last place a multiple of 4
BLOCKS = 64  # into which a longer line is divided at once
CLOSE_VALUES = 1e-9  # share of the tallest bump by which values hardly differ
SAMPLE_REACH = 7.0  # kernel widths; beyond, a sample is under 2.3e-11 of its height and left out
# Columns of a stack of pieces of the line: where they begin and end, and what f is at most there
LOW, HIGH, LIMIT = range(3)


def empty_bumps(count: int) -> Array:
    """Return an array for `count` bumps."""
    return np.zeros((7, count + 8))


@njit(**PLAIN)
def gather(bumps, positive, count, below, low, high, near):
    """Copy the bumps in reach of [low, high], filled up to whole vectors.

    Return how many are positive, how many there are, and the step of a table that resolves the narrowest of them.
    """
    margin = max(1.0, 0.1 * (high - low))
    found, width = 0, 1e300
    for j in range(count):
        near[HEIGHT, found] = bumps[HEIGHT, j]
        near[CENTRE, found] = bumps[CENTRE, j]
        near[NARROWNESS, found] = bumps[NARROWNESS, j]
        near[WIDTH, found] = bumps[WIDTH, j]
        reach = (BUMP_REACH * bumps[WIDTH, j] if j < positive else below) + margin
        if low - reach < bumps[CENTRE, j] < high + reach:
            width = min(width, bumps[WIDTH, j])
            found += 1
        if j == positive - 1:
            above = found
    while found % 4 != 0:
        near[HEIGHT, found] = 0.0
        near[CENTRE, found] = low
        near[NARROWNESS, found] = 0.0
        found += 1
    return above, found, TABLE_STEP * width


@njit(**QUICK)
def tabulate(near, count, start, step, cells, table):
    """Fill in f at `cells` places, or up to three more, from `start` on.

    A Gaussian on a uniform grid takes two multiplications a place: the ratio of neighbours shrinks by a constant factor.
    """
    for j in range(count):
        u = start - near[CENTRE, j]
        q = near[NARROWNESS, j] * step
        near[POWER, j] = near[HEIGHT, j] * exp(-0.5 * near[NARROWNESS, j] * u * u)
        near[RATIO, j] = exp(min(-q * (u + 0.5 * step), 700.0))
        near[SHRINK, j] = exp(-q * step)
    for k in range(0, cells, 4):
        t0 = t1 = t2 = t3 = 0.0
        for j in range(count):
            p, r, q = near[POWER, j], near[RATIO, j], near[SHRINK, j]
            t0 += p
            p, r = p * r, r * q
            t1 += p
            p, r = p * r, r * q
            t2 += p
            p, r = p * r, r * q
            t3 += p
            near[POWER, j], near[RATIO, j] = p * r, r * q
        table[VALUE, k], table[VALUE, k + 1], table[VALUE, k + 2], table[VALUE, k + 3] = (
            t0,
            t1,
            t2,
            t3,
        )


@njit(**PLAIN)
def refine(near, count, x, step):
    """Return the local maximum around x and its value, by Newton's method, bisecting if a step leaves the bracket."""
    low, high = x - 1.5 * step, x + 1.5 * step
    value = 0.0
    for _ in range(60):
        value, slope, curvature = bump_slopes(near, count, x)
        if slope > 0.0:
            low = x
        else:
            high = x
        moved = x - slope / curvature if curvature < 0.0 else low - 1.0
        if not low <= moved <= high:
            moved = 0.5 * (low + high)
        change = moved - x
        x = moved
        # Newton's method converges quadratically: the step just taken leaves an error near its square
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


class Search(NamedTuple):
    """Working memory of `maximise_bumps`: bumps in reach of a piece of the line, its table, and a stack of pieces."""

    near: Array
    table: Array
    stack: Array


def empty_search(count: int) -> Search:
    """Return working memory of `maximise_bumps` for `count` bumps."""
    return Search(empty_bumps(count), np.zeros((3, PIECE + 5 + BLOCKS)), np.zeros((16 * BLOCKS, 3)))


@njit(**PLAIN)
def maximise_bumps(bumps, positive, count, guess, near, table, stack):
    """Return the position of the maximum of `count` bumps, the first `positive` of them of positive height.

    A good `guess` spares work; near, table and stack are those of `Search`.
    """
    tallest, deepest = 0, 0.0
    for j in range(positive):
        if bumps[HEIGHT, j] > bumps[HEIGHT, tallest]:
            tallest = j
    for j in range(positive, count):
        deepest = min(deepest, bumps[HEIGHT, j])
    top = bumps[HEIGHT, tallest]
    below = np.sqrt(SAMPLE_REACH**2 + 2.0 * np.log(max(-deepest / top, 1.0)))
    best, best_value = guess, 0.0
    for k in range(2):
        x = guess if k == 0 else bumps[CENTRE, tallest]
        value = (
            bump_slopes(bumps, count, x)[0] - CLOSE_VALUES * top
        )  # a refined place wins against one close by
        if value > best_value:
            best, best_value = x, value
    stack[0, LOW], stack[0, HIGH] = narrow_interval(
        bumps, positive, top, max(best_value, CLOSE_VALUES * top)
    )
    stack[0, LIMIT] = np.inf
    size = 1
    while size > 0:
        size -= 1
        low, high = stack[size, LOW], stack[size, HIGH]
        if stack[size, LIMIT] > best_value:
            above, found, step = gather(bumps, positive, count, below, low, high, near)
            if high - low > PIECE * step and size + BLOCKS <= len(stack):
                size = divide_line(near, above, low, high, step, size, stack)
            else:
                step = max(step, (high - low) / PIECE)
                tie = 0.5 * CLOSE_VALUES * top
                best, best_value = search_table(
                    near, found, low, high, step, best, best_value, tie, table
                )
    return best


@njit(**QUICK)
def narrow_interval(bumps, positive, top, floor):
    """Return an interval outside which the sum of the positive bumps, and so f, is below `floor`."""
    low, high = np.inf, -np.inf
    deviations = np.sqrt(2.0 * np.log(positive * top / floor))
    for j in range(positive):
        reach = (
            deviations * bumps[WIDTH, j] + TABLE_STEP
            if positive * bumps[HEIGHT, j] > floor
            else -np.inf
        )
        low = min(low, bumps[CENTRE, j] - reach)
        high = max(high, bumps[CENTRE, j] + reach)
    return low, high


@njit(**QUICK)
def divide_line(near, positive, low, high, step, size, stack):
    """Put the blocks of a line on the stack, the one of the highest limit on top; return the size of the stack.

    In a block, f is at most the sum of the positive bumps' largest values.
    """
    blocks = int(min(np.ceil((high - low) / (PIECE * step)), float(BLOCKS)))
    width = (high - low) / blocks
    best = 0
    for k in range(blocks):
        middle = low + (k + 0.5) * width
        limit = 0.0
        for j in range(positive):
            u = max(abs(near[CENTRE, j] - middle) - 0.5 * width, 0.0)
            limit += near[HEIGHT, j] * exp(-0.5 * near[NARROWNESS, j] * u * u)
        stack[size + k, LOW], stack[size + k, HIGH] = middle - 0.5 * width, middle + 0.5 * width
        stack[size + k, LIMIT] = limit
        if limit > stack[size + best, LIMIT]:
            best = k
    for c in range(3):
        last = stack[size + blocks - 1, c]
        stack[size + blocks - 1, c] = stack[size + best, c]
        stack[size + best, c] = last
    return size + blocks


@njit(**PLAIN)
def search_table(near, count, low, high, step, best, best_value, tie, table):
    """Tabulate f in [low, high] and refine the leading local maxima, the most promising first; of a tie, take the last."""
    cells = int(np.ceil((high - low) / step)) + 5
    start = low - 2.0 * step
    tabulate(near, count, start, step, cells, table)
    peaks, first = 0, 0
    for k in range(2, cells - 2):
        f, before, after = table[VALUE, k], table[VALUE, k - 1], table[VALUE, k + 1]
        if f > before and f >= after:
            bend, tilt = before - 2.0 * f + after, 0.5 * (after - before)
            doubt = abs(table[VALUE, k - 2] - 2.0 * before + f) + abs(
                f - 2.0 * after + table[VALUE, k + 2]
            )
            # the parabola through three places, and how far it may be off
            bound = f - 0.5 * tilt * tilt / bend - 0.1 * bend + 0.05 * doubt + 1e-7
            if bound > best_value:
                table[PLACE, peaks] = start + step * (k - tilt / bend)
                table[BOUND, peaks] = bound
                if bound > table[BOUND, first]:
                    first = peaks
                peaks += 1
    for k in range(peaks):
        p = first if k == 0 else (0 if k == first else k)
        if table[BOUND, p] > best_value:
            x, value = refine(near, count, table[PLACE, p], step)
            if value > best_value + tie or (value > best_value - tie and x > best):
                best, best_value = x, value
    return best, best_value
