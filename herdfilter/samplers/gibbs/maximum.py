"""Maximum of a sum of signed one-dimensional Gaussian bumps, compiled.

``f(x) = sum_j height_j exp(-narrowness_j (x - centre_j)^2 / 2)``, no bump narrower than a kernel of width 1: positive bumps,
those of the target, then negative ones, the kernels at the samples.

f is at most the sum of its positive bumps. Where that exceeds the highest value so far, f is tabulated on a grid a third of
a kernel wide. Newton's method starts from every local maximum of the table that may be the highest: near-ties are common.
"""

from __future__ import annotations

import numpy as np

from herdfilter.samplers.compiled import NO_ARRAYS, QUICK, exp, njit

REACH = 72.0  # squared widths; beyond, a bump is under 2.4e-16 of its height and left out
TABLE_STEP = 1.0 / 3.0  # of a table, in widths of the narrowest bump
CLOSE_VALUES = 1e-9  # share of the tallest bump by which values hardly differ
PIECE = 60  # most steps of a table

# Rows of an array of bumps; the last three are workspace
HEIGHT, CENTRE, NARROWNESS, POWER, RATIO, SHRINK = range(6)


@njit(**QUICK)
def tabulate(bumps, count, low, high, step, table):
    """Fill in f on a grid from `low` on, that of the bumps in reach of the interval up to `high`.

    A Gaussian on a uniform grid takes two multiplications a point: the ratio of neighbours shrinks by a constant factor.
    """
    for j in range(count):
        narrowness = bumps[NARROWNESS, j]
        u = low - bumps[CENTRE, j]
        outside = max(u, low - high - u, 0.0)
        height = bumps[HEIGHT, j] if narrowness * outside * outside < REACH else 0.0
        bumps[POWER, j] = height * exp(-0.5 * narrowness * u * u)
        bumps[RATIO, j] = exp(min(-narrowness * step * (u + 0.5 * step), 700.0))
        bumps[SHRINK, j] = exp(-narrowness * step * step)
    for k in range(len(table)):
        f = 0.0
        for j in range(count):
            f += bumps[POWER, j]
            bumps[POWER, j] *= bumps[RATIO, j]
            bumps[RATIO, j] *= bumps[SHRINK, j]
        table[k] = f


@njit(**NO_ARRAYS)
def refine(bumps, count, x, step):
    """Return the local maximum around x and its value, by Newton's method, bisecting if a step leaves the bracket."""
    low = x - step
    high = x + step
    value = 0.0
    for _ in range(60):
        value, slope, curvature = bump_slopes(bumps, count, x)
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


@njit(**QUICK)
def upper_bound(bumps, positive, middle, half):
    """Return what f is at most between ``middle - half`` and ``middle + half``: its positive bumps at their highest."""
    limit = 0.0
    for j in range(positive):
        u = max(abs(bumps[CENTRE, j] - middle) - half, 0.0)
        limit += bumps[HEIGHT, j] * exp(-0.5 * bumps[NARROWNESS, j] * u * u)
    return limit


@njit(**NO_ARRAYS)
def maximise_bumps(bumps, positive, count, guess, table, stack):
    """Return the position of the maximum of `count` bumps, the first `positive` of them of positive height.

    A good `guess` spares work: pieces of the line on which f cannot exceed its value are left out. The table and a stack of
    pieces, low and high, are workspace.
    """
    tallest = 0
    for j in range(positive):
        if bumps[HEIGHT, j] > bumps[HEIGHT, tallest]:
            tallest = j
    top = bumps[HEIGHT, tallest]
    close = CLOSE_VALUES * top
    best = guess
    best_value = 0.0
    for k in range(2):
        x = guess if k == 0 else bumps[CENTRE, tallest]
        # Lowered, so that a refined maximum close by wins against it.
        value = bump_slopes(bumps, count, x)[0] - close
        if value > best_value:
            best = x
            best_value = value
    # Outside of this interval each positive bump is below its share of the value to exceed.
    deviations = np.sqrt(2.0 * np.log(positive * top / max(best_value, close)))
    low = np.inf
    high = -np.inf
    for j in range(positive):
        reach = deviations / np.sqrt(bumps[NARROWNESS, j])
        low = min(low, bumps[CENTRE, j] - reach)
        high = max(high, bumps[CENTRE, j] + reach)
    stack[0, 0] = low
    stack[0, 1] = high
    size = 1
    while size > 0:
        size -= 1
        low = stack[size, 0]
        high = stack[size, 1]
        middle = 0.5 * (low + high)
        if upper_bound(bumps, positive, middle, high - middle) <= max(best_value, close):
            continue
        narrowest = 0.0
        for j in range(count):
            u = max(abs(bumps[CENTRE, j] - middle) - (high - middle), 0.0)
            if bumps[NARROWNESS, j] * u * u < REACH:
                narrowest = max(narrowest, bumps[NARROWNESS, j])
        step = TABLE_STEP / np.sqrt(narrowest)
        if high - low > PIECE * step:
            stack[size, 1] = middle
            stack[size + 1, 0] = middle
            stack[size + 1, 1] = high
            size += 2
            continue
        cells = int((high - low) / step) + 4
        tabulate(bumps, count, low - step, high + step, step, table[:cells])
        for k in range(1, cells - 1):
            f = table[k]
            before = table[k - 1]
            after = table[k + 1]
            # The parabola through three points exceeds f by an eighth of the second difference at most; the whole is safe.
            if f > before and f >= after and 3.0 * f - before - after > best_value:
                x, value = refine(bumps, count, low + (k - 1) * step, step)
                # Of a tie the last is taken.
                if value > best_value + 0.5 * close or (
                    value > best_value - 0.5 * close and x > best
                ):
                    best = x
                    best_value = value
    return best
