"""Compiled division of weighted points into Gaussian components, for `DivisiveFit`."""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter.fitting._em import SUMS
from herdfilter.fitting._two_components import maximise_two, regular, whole_moments

NEGLIGIBLE = 1e-2  # part of a point under which all of it goes to the other component
TRIAL = 1  # rounds of expectation-maximisation before two ways to divide are compared
ROUNDS = 4  # and after that
ROOM = 16  # parts of points held at once, as a multiple of the points


@njit(cache=True, nogil=True)
def divide(z, w, floor, limits, edges, normal, most):
    """Return weights (K,), means (K, d) and covariances (K, d, d) of at most `most` components of the points z (d, n).

    A component is a list of parts of points, ``items[start:end]`` and ``amounts[start:end]``. The lists that wait to be
    looked at form a stack; the two halves of the list on top take its place.
    """
    d, n = z.shape
    most = min(most, n // (d + 2) + 1)
    weights, means, covariances = np.empty(most), np.empty((most, d)), np.empty((most, d, d))
    items, amounts = np.empty(ROOM * n, np.int64), np.empty(ROOM * n)
    starts, ends, shares = np.zeros(most, np.int64), np.zeros(most, np.int64), np.full(most, most)
    room = np.empty((2 * d + 7, n))  # one piece of memory for all that has a number for each point
    y, lines, parts, p = room[:d], room[d : 2 * d + 2], room[2 * d + 2 : 2 * d + 6], room[2 * d + 6]
    factor = np.zeros((d, d))
    for i in range(n):
        items[i], amounts[i] = i, w[i]
    ends[0] = n
    waiting, count = 1, 0
    while waiting > 0:
        waiting -= 1
        start, allowed = starts[waiting], shares[waiting]
        m = ends[waiting] - start
        total, squares = 0.0, 0.0
        for i in range(m):
            total += amounts[start + i]
        for i in range(m):
            p[i] = amounts[start + i] / total
            squares += p[i] * p[i]
            for a in range(d):
                y[a, i] = z[a, items[start + i]]
        effective = 1.0 / squares
        weights[count] = total
        changed = _whiten(y, p, m, parts[0], floor, means[count], covariances[count], factor)
        first = 0.0
        if allowed > 1 and effective > 2 * (d + 2):
            least_part = NEGLIGIBLE if start + 2 * m <= len(items) else 0.5
            first = _division(y, p, m, effective, changed, lines, parts, limits, edges, normal, least_part)
        if first == 0.0:
            count += 1
            continue
        top = start
        for i in range(m):  # set aside what the halves are made of
            lines[0, i], lines[1, i] = items[start + i], amounts[start + i]
        for side in range(2):
            starts[waiting] = top
            for i in range(m):
                part = parts[0, i] if side == 0 else 1.0 - parts[0, i]
                if part > 0.0:
                    items[top], amounts[top] = int(lines[0, i]), part * lines[1, i]
                    top += 1
            ends[waiting] = top
            own = min(max(int(allowed * first + 0.5), 1), allowed - 1)
            shares[waiting] = own if side == 0 else allowed - own
            waiting += 1
    return weights[:count], means[:count], covariances[:count]


@njit(cache=True, nogil=True, fastmath=SUMS)
def _whiten(y, p, m, g, floor, mean, covariance, factor):
    """Give the first m points y, in place, mean 0 and covariance I; return whether `floor` has changed the covariance."""
    d = len(y)
    for a in range(d):
        moment = 0.0
        for i in range(m):
            moment += p[i] * y[a, i]
        mean[a] = moment
        for i in range(m):
            y[a, i] -= moment
    whole_moments(y, p, m, g, covariance)
    changed = regular(covariance, floor, factor)
    for a in range(d):
        for b in range(a):
            for i in range(m):
                y[a, i] -= factor[a, b] * y[b, i]
        for i in range(m):
            y[a, i] *= factor[a, a]
    return changed


@njit(cache=True, nogil=True)
def _division(y, p, m, effective, changed, lines, parts, limits, edges, normal, least_part):
    """Fill ``parts[0]`` with the part of each point that goes to the first of two components; return its weight.

    The weight is 0 where one component suffices.
    """
    d = len(y)
    skew, second = np.empty(d), np.zeros((d, d))
    concentric = _misfit(y, p, m, effective, lines, parts[0], skew, limits, edges, normal)
    if concentric < 0:
        return 0.0
    for a in range(d):
        second[a, a] = 1.0
    if changed:
        whole_moments(y, p, m, parts[1], second)
    inside, best = np.empty((len(edges) + 1, 4)), -np.inf
    for c in range(d + 3):  # every way to divide, then the best of them again
        again = c == d + 2
        if (c == d and d == 1) or (c == d + 1 and concentric == 0):
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


@njit(cache=True, nogil=True, fastmath=SUMS)
def _misfit(y, p, m, effective, lines, q, skew, limits, edges, normal):
    """Compare the points with N(0, I): -1 where they cannot be told from it, else 1 where their tails are heavy and else 0.

    Fills `lines` with the coordinates along the axes of the fourth moments, along the third and with the radius.
    """
    d = len(y)
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


@njit(cache=True, nogil=True)
def _price(effective, d):
    """By how much a Gaussian suits the points that it was fitted to better than as many others: the corrected AIC."""
    if effective <= d + 2:
        return np.inf
    return 0.5 * effective * d * (d + 3) / (effective - d - 2)


@njit(cache=True, nogil=True)
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
