"""Maximum of a sum of signed one-dimensional Gaussian bumps, compiled.

``f(x) = sum_j height_j exp(-narrowness_j (x - centre_j)^2 / 2)``, no bump narrower than a kernel of width 1. The objectives
of herding have this form: broad positive bumps, those of the target, and then negative ones, the kernels at the samples.

f is at most the sum of its positive bumps. Where that exceeds a value already found, f is tabulated at places a third of a
kernel apart. Newton's method starts from every local maximum of the table that may be the highest: near-ties are common.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from herdfilter._checks import Array
from herdfilter.samplers.compiled import FAST, INSIDE, exp
from herdfilter.samplers.gibbs.bumps import (
    BOUND,
    CENTRE,
    HEIGHT,
    NARROWNESS,
    PLACE,
    STEP,
    VALUE,
    WIDTH,
    empty_bumps,
    gather,
    refine,
    slopes,
    tabulate,
)

PIECE = 59  # steps of a table; with two more on either side and the last place a multiple of 4
BLOCKS = 64  # into which a longer line is divided at once
CLOSE = 1e-9  # share of the tallest bump by which values hardly differ
REACH_BELOW = 7.0  # kernel widths; beyond, a sample is under 2.3e-11 of its height and left out

# Columns of a stack of pieces of the line: where they begin and end, and what f is at most there
LOW, HIGH, LIMIT = range(3)


class Search(NamedTuple):
    """What `maximise` works in: bumps in reach of a piece of the line, its table, and a stack of pieces."""

    near: Array
    table: Array
    stack: Array


def empty_search(count: int) -> Search:
    """Return what `maximise` works in, for so many bumps."""
    return Search(empty_bumps(count), np.zeros((3, PIECE + 5 + BLOCKS)), np.zeros((16 * BLOCKS, 3)))


@njit(**INSIDE)
def maximise(bumps, positive, count, guess, near, table, stack):
    """Position of the maximum of `count` bumps, the first `positive` of them of positive height.

    A good `guess` spares work; near, table and stack are those of `Search`.
    """
    tallest, deepest = 0, 0.0
    for j in range(positive):
        if bumps[HEIGHT, j] > bumps[HEIGHT, tallest]:
            tallest = j
    for j in range(positive, count):
        deepest = min(deepest, bumps[HEIGHT, j])
    top = bumps[HEIGHT, tallest]
    below = np.sqrt(REACH_BELOW**2 + 2.0 * np.log(max(-deepest / top, 1.0)))
    best, best_value = guess, 0.0
    for k in range(2):
        x = guess if k == 0 else bumps[CENTRE, tallest]
        value = slopes(bumps, count, x)[0] - CLOSE * top  # a refined place wins against one close by
        if value > best_value:
            best, best_value = x, value
    stack[0, LOW], stack[0, HIGH] = narrow(bumps, positive, top, max(best_value, CLOSE * top))
    stack[0, LIMIT] = np.inf
    size = 1
    while size > 0:
        size -= 1
        low, high = stack[size, LOW], stack[size, HIGH]
        if stack[size, LIMIT] > best_value:
            above, found, step = gather(bumps, positive, count, below, low, high, near)
            if high - low > PIECE * step and size + BLOCKS <= len(stack):
                size = divide(near, above, low, high, step, size, stack)
            else:
                step = max(step, (high - low) / PIECE)
                best, best_value = search(near, found, low, high, step, best, best_value, 0.5 * CLOSE * top, table)
    return best


@njit(**FAST)
def narrow(bumps, positive, top, floor):
    """Interval outside of which the positive bumps together stay below `floor`, and with them f."""
    low, high = np.inf, -np.inf
    deviations = np.sqrt(2.0 * np.log(positive * top / floor))
    for j in range(positive):
        reach = deviations * bumps[WIDTH, j] + STEP if positive * bumps[HEIGHT, j] > floor else -np.inf
        low = min(low, bumps[CENTRE, j] - reach)
        high = max(high, bumps[CENTRE, j] + reach)
    return low, high


@njit(**FAST)
def divide(near, positive, low, high, step, size, stack):
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


@njit(**INSIDE)
def search(near, count, low, high, step, best, best_value, tie, table):
    """Tabulate f in [low, high] and refine the leading local maxima, the most promising first; of a tie, take the last."""
    cells = int(np.ceil((high - low) / step)) + 5
    start = low - 2.0 * step
    tabulate(near, count, start, step, cells, table)
    peaks, first = 0, 0
    for k in range(2, cells - 2):
        f, before, after = table[VALUE, k], table[VALUE, k - 1], table[VALUE, k + 1]
        if f > before and f >= after:
            bend, tilt = before - 2.0 * f + after, 0.5 * (after - before)
            doubt = abs(table[VALUE, k - 2] - 2.0 * before + f) + abs(f - 2.0 * after + table[VALUE, k + 2])
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
