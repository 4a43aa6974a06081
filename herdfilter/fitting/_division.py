"""Compiled division of weighted points into Gaussian components, for `DivisiveFit`."""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter._checks import Array
from herdfilter.fitting._two_components import maximise_two, regular, whole_moments
from herdfilter.samplers.compiled import CALLED, INSIDE, VECTORISE

NEGLIGIBLE = 1e-2  # part of a point under which all of it goes to the other component
TRIAL = 1  # rounds of expectation-maximisation before two ways to divide are compared
ROUNDS = 4  # and after that
ROOM = 16  # parts of points held at once, as a multiple of the points


def divide(
    z: Array, w: Array, floor: float, limits: Array, edges: Array, normal: Array, most: int
) -> tuple[Array, Array, Array]:
    """Return weights (K,), means (K, d) and covariances (K, d, d) of at most `most` components of the points z (d, n).

    A component is a list of parts of points: which points, and how much of each. The lists that wait to be looked at form a
    stack; the two halves of the list on top take its place. This loop is not compiled: what it calls would be compiled
    with it once more.
    """
    d, n = z.shape
    most = min(most, n // (d + 2) + 1)
    weights, means, covariances = np.empty(most), np.empty((most, d)), np.empty((most, d, d))
    room = np.empty((2 * d + 7, n))  # one piece of memory for all that has a number for each point
    y, lines, parts, p = room[:d], room[d : 2 * d + 2], room[2 * d + 2 : 2 * d + 6], room[2 * d + 6]
    factor, skew = np.zeros((d, d)), np.empty(d)
    waiting = [(np.arange(n), w.copy(), most)]
    below, count = n, 0  # parts of points in the waiting lists, and components found
    while waiting:
        items, amounts, allowed = waiting.pop()
        m = len(items)
        below -= m
        total, effective, changed = _whiten(z, items, amounts, y, p, parts, floor, means[count], covariances[count], factor)
        first = 0.0
        if allowed > 1 and effective > 2 * (d + 2):
            tails = _misfit(y, p, m, effective, lines, parts, skew, limits, edges, normal)
            if tails >= 0:
                least_part = NEGLIGIBLE if below + 2 * m <= ROOM * n else 0.5
                first = _division(y, p, m, effective, changed, tails, lines, parts, edges, least_part)
        if first == 0.0:
            weights[count] = total
            count += 1
            continue
        share = parts[0, :m]
        own = min(max(int(allowed * first + 0.5), 1), allowed - 1)
        for part, most_here in ((share, own), (1.0 - share, allowed - own)):
            kept = part.nonzero()[0]
            waiting.append((items[kept], part[kept] * amounts[kept], most_here))
            below += len(kept)
    return weights[:count], means[:count], covariances[:count]


@njit(**CALLED, fastmath=VECTORISE)
def _whiten(z, items, amounts, y, p, parts, floor, mean, covariance, factor):
    """Fill p with the amounts, made to sum to 1, and y with their points, given mean 0 and covariance I.

    Returns the sum of the amounts, their effective number and whether `floor` has changed the covariance.
    """
    d, m = len(y), len(items)
    total, effective = _normalise(amounts, p)
    for a in range(d):
        for i in range(m):
            y[a, i] = z[a, items[i]]
        moment = 0.0
        for i in range(m):
            moment += p[i] * y[a, i]
        mean[a] = moment
        for i in range(m):
            y[a, i] -= moment
    whole_moments(y, p, m, parts[0], covariance)
    changed = regular(covariance, floor, factor)
    for a in range(d):
        for b in range(a):
            for i in range(m):
                y[a, i] -= factor[a, b] * y[b, i]
        for i in range(m):
            y[a, i] *= factor[a, a]
    return total, effective, changed


@njit(**INSIDE)
def _normalise(amounts, p):
    total, squares = 0.0, 0.0
    for i in range(len(amounts)):
        total += amounts[i]
    for i in range(len(amounts)):
        p[i] = amounts[i] / total
        squares += p[i] * p[i]
    return total, 1.0 / squares


@njit(**CALLED, fastmath=VECTORISE)
def _division(y, p, m, effective, changed, tails, lines, parts, edges, least_part):
    """Fill ``parts[0]`` with the part of each point that goes to the first of two components; return its weight.

    The weight is 0 where one component suffices.
    """
    d = len(y)
    second, inside = np.empty((d, d)), np.empty((len(edges) + 1, 4))
    for a in range(d):
        for b in range(d):
            second[a, b] = 1.0 if a == b else 0.0
    if changed:
        whole_moments(y, p, m, parts[1], second)
    gain, best = 0.0, -np.inf
    for c in range(d + 3):  # every way to divide, then the best of them again
        again = c == d + 2
        if (c == d and d == 1) or (c == d + 1 and tails == 0):
            continue
        if not again:
            threshold = _cut(lines, c, p, m, d, edges, inside)
            for i in range(m):
                parts[1, i] = 1.0 if lines[c, i] < threshold else 0.0
        gain = maximise_two(y, p, m, parts, 0 if again else 1, second, effective, ROUNDS if again else TRIAL)
        if gain > best and not again:
            best = gain
            for i in range(m):
                parts[0, i] = parts[1, i]
    if best == -np.inf:
        return 0.0
    price = 1.0 - _price(effective, d)
    first = 0.0
    for side in range(2):
        part, squares = 0.0, 0.0
        for i in range(m):
            if parts[0, i] < least_part:
                parts[0, i] = 0.0
            elif parts[0, i] >= 1.0 - least_part:
                parts[0, i] = 1.0
            amount = p[i] * (parts[0, i] if side == 0 else 1.0 - parts[0, i])
            part += amount
            squares += amount * amount
        if side == 0:
            first = part
        price += _price(part * part / squares if part > 0.0 else 0.0, d)
    return first if effective * gain > price else 0.0


@njit(**CALLED, fastmath=VECTORISE)
def _misfit(y, p, m, effective, lines, parts, skew, limits, edges, normal):
    """Compare the points with N(0, I): -1 where they cannot be told from it, else 1 where their tails are heavy and else 0.

    Fills `lines` with the coordinates along the axes of the fourth moments, along the third and with the radius.
    """
    d, q = len(y), parts[0]
    radius = lines[d + 1]
    for i in range(m):
        radius[i] = 0.0
    for a in range(d):
        for i in range(m):
            radius[i] += y[a, i] * y[a, i]
    for i in range(m):
        q[i] = p[i] * radius[i]
        radius[i] = np.sqrt(radius[i])
    fourth = np.empty((d, d))
    whole_moments(y, q, m, lines[0], fourth)
    kurtosis, third, uneven = 0.0, 0.0, 0.0
    for a in range(d):
        skew[a] = 0.0
        for i in range(m):
            skew[a] += q[i] * y[a, i]
        third += skew[a] * skew[a]
        kurtosis += fourth[a, a]
        for b in range(d):
            uneven += fourth[a, b] * fourth[a, b]
    uneven -= kurtosis * kurtosis / d
    excess = kurtosis - d * (d + 2) * (effective - 1) / (effective + 1)
    seen = (
        effective * third > limits[0] * 2 * (d + 2)
        or effective * uneven > limits[1] * 4 * (d + 4)
        or effective * excess * excess > limits[2] * 8 * d * (d + 2)
    )
    axes = np.linalg.eigh(fourth)[1]
    inside = np.empty(len(edges) + 1)
    scale, low, last = 1.0 / (edges[1] - edges[0]), edges[0], len(edges)
    for a in range(d):
        for i in range(m):
            lines[a, i] = 0.0
        for b in range(d):
            for i in range(m):
                lines[a, i] += axes[b, a] * y[b, i]
        if seen:
            continue
        for b in range(last + 1):
            inside[b] = 0.0
        for i in range(m):
            inside[int(min(max((lines[a, i] - low) * scale + 1.0, 0.0), float(last)))] += p[i]
        below, distance = 0.0, 0.0
        for b in range(1, last - 1):
            below += inside[b] if b > 1 else inside[0] + inside[1]
            between = 0.5 * (normal[b + 1] - normal[b - 1])
            distance += between * (below - normal[b]) ** 2 / (normal[b] * (1.0 - normal[b]))
        seen = effective * distance > limits[3]
    if not seen:
        return -1
    for i in range(m):
        lines[d, i] = 0.0
    for a in range(d):
        for i in range(m):
            lines[d, i] += skew[a] / np.sqrt(max(third, 1e-300)) * y[a, i]
    return 1 if excess > 0.0 else 0


@njit(**INSIDE)
def _price(effective, d):
    """By how much a Gaussian suits the points that it was fitted to better than as many others: the corrected AIC."""
    if effective <= d + 2:
        return np.inf
    return 0.5 * effective * d * (d + 3) / (effective - d - 2)


@njit(**INSIDE)
def _cut(lines, c, p, m, d, edges, inside):
    """Return where to cut line c: the two sides have the least ``sum_k p_k log |covariance_k|`` (Scott and Symons 1971).

    Along the radius, the last line, the two sides have one centre.
    """
    step = edges[1] - edges[0]
    low = 0.0 if c == d + 1 else edges[0]
    inside[:] = 0.0
    for i in range(m):
        v = lines[c, i]
        b = int(min(max((v - low) / step + 1.0, 0.0), len(inside) - 1.0))
        inside[b, 0] += p[i]
        inside[b, 1] += p[i] * v
        inside[b, 2] += p[i] * v * v
        inside[b, 3] += p[i] * p[i]
    for b in range(1, len(inside)):
        for a in range(4):
            inside[b, a] += inside[b - 1, a]
    best, threshold, last = np.inf, np.inf, len(inside) - 1
    for b in range(last):
        score = 0.0
        for side in range(2):
            part, mean, square, squares = inside[b, 0], inside[b, 1], inside[b, 2], inside[b, 3]
            if side == 1:
                part, mean = inside[last, 0] - part, inside[last, 1] - mean
                square, squares = inside[last, 2] - square, inside[last, 3] - squares
            if part <= 0.0 or part * part <= (d + 2) * squares:
                score = np.inf
                break
            if c == d + 1:
                score += part * d * np.log(square / part / d + step * step)
            else:
                score += part * np.log(square / part - (mean / part) ** 2 + step * step)
        if score < best:
            best, threshold = score, low + step * b
    return threshold
