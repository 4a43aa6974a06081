"""Compiled division of weighted points into Gaussian components, for `DivisiveFit`."""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter.fitting._em import SUMS, _factorise

NEGLIGIBLE = 1e-2 # part of a point that is given to the component that has the rest
ROUNDS = 3  # of expectation-maximisation after a division, at most


@njit(cache=True, nogil=True, fastmath=SUMS)
def divide(z, w, floor, limits, edges, normal):
    """Return weights (K,), means (K, d) and covariances (K, d, d) of the components of the points z (d, n), weights w.

    A component holds parts of points: ``items[start:end]`` and ``amounts[start:end]``, both used as stacks.
    """
    d, n = z.shape
    most = n // (d + 2) + 1
    weights, means, covariances = np.empty(most), np.empty((most, d)), np.zeros((most, d, d))
    capacity = 16 * n
    items, amounts = np.empty(capacity, np.int64), np.empty(capacity)
    starts, ends = np.zeros(most, np.int64), np.zeros(most, np.int64)
    items[:n] = np.arange(n)
    amounts[:n] = w
    ends[0] = n
    waiting, count = 1, 0
    factor = np.zeros((d, d))
    while waiting > 0:
        waiting -= 1
        start, end = starts[waiting], ends[waiting]
        m = end - start
        y, p = np.empty((d, m)), amounts[start:end].copy()
        for a in range(d):
            for i in range(m):
                y[a, i] = z[a, items[start + i]]
        total, squares = 0.0, 0.0
        for i in range(m):
            total += p[i]
            squares += p[i] * p[i]
        for i in range(m):
            p[i] /= total
        effective = total * total / squares
        mean, covariance = means[count], covariances[count]
        weights[count] = total
        _whiten(y, p, floor, mean, covariance, factor)
        share = np.empty(0)
        if count + waiting + 2 <= most and effective > 2 * (d + 2):
            share = _division(y, p, effective, limits, edges, normal, NEGLIGIBLE if start + 2 * m <= capacity else 0.5)
        if len(share) == 0:
            count += 1
            continue
        own = items[start:end].copy()
        top = start
        for side in range(2):
            starts[waiting] = top
            for i in range(m):
                part = share[i] if side == 0 else 1.0 - share[i]
                if part > 0.0:
                    items[top] = own[i]
                    amounts[top] = part * p[i] * total
                    top += 1
            ends[waiting] = top
            waiting += 1
    return weights[:count], means[:count], covariances[:count]


@njit(cache=True, nogil=True, fastmath=SUMS)
def _whiten(y, p, floor, mean, covariance, factor):
    """Give the points y (d, m), in place, mean 0 and covariance I; no eigenvalue of the covariance is left below `floor`."""
    d, m = y.shape
    for a in range(d):
        moment = 0.0
        for i in range(m):
            moment += p[i] * y[a, i]
        mean[a] = moment
        for i in range(m):
            y[a, i] -= moment
    _moments(y, p, covariance)
    _regular(covariance, floor, factor)
    for a in range(d):
        for b in range(a):
            for i in range(m):
                y[a, i] -= factor[a, b] * y[b, i]
        for i in range(m):
            y[a, i] *= factor[a, a]


@njit(cache=True, nogil=True, fastmath=SUMS)
def _moments(y, p, second):
    """Weighted sums of the products of two coordinates."""
    d, m = y.shape
    weighted = np.empty(m)
    for a in range(d):
        for i in range(m):
            weighted[i] = p[i] * y[a, i]
        for b in range(a + 1):
            moment = 0.0
            for i in range(m):
                moment += weighted[i] * y[b, i]
            second[a, b] = moment
            second[b, a] = moment


@njit(cache=True, nogil=True, fastmath=SUMS)
def _regular(covariance, floor, factor):
    """Raise the eigenvalues to `floor`, fill `factor` with the Cholesky factor, its diagonal inverted."""
    d = len(covariance)
    if not _factorise(covariance, floor, factor):
        values, vectors = np.linalg.eigh(covariance)
        for a in range(d):
            for b in range(d):
                covariance[a, b] = 0.0
                for c in range(d):
                    covariance[a, b] += vectors[a, c] * max(values[c], floor) * vectors[b, c]
    _factorise(covariance, 0.0, factor)


@njit(cache=True, nogil=True, fastmath=SUMS)
def _division(y, p, effective, limits, edges, normal, least_part):
    """Return the part (m,) of each point that goes to the first of two components; none where one suffices.

    The points y have mean 0 and covariance I.
    """
    d, m = y.shape
    radius, q = np.zeros(m), np.empty(m)
    for a in range(d):
        for i in range(m):
            radius[i] += y[a, i] * y[a, i]
    for i in range(m):
        q[i] = p[i] * radius[i]
    skew, fourth = np.zeros(d), np.empty((d, d))
    for a in range(d):
        for i in range(m):
            skew[a] += q[i] * y[a, i]
    _moments(y, q, fourth)
    kurtosis, third = 0.0, 0.0
    for a in range(d):
        kurtosis += fourth[a, a]
        third += skew[a] * skew[a]
    uneven = 0.0
    for a in range(d):
        for b in range(d):
            uneven += (fourth[a, b] - (kurtosis / d if a == b else 0.0)) ** 2
    excess = kurtosis - d * (d + 2) * (effective - 1.0) / (effective + 1.0)
    seen = (
        effective * third / (2 * (d + 2)) > limits[0]
        or effective * uneven / (4 * (d + 4)) > limits[1]
        or effective * excess * excess / (8 * d * (d + 2)) > limits[2]
    )
    lines = np.empty((d + 2, m))  # along which the points may be divided
    axes = np.linalg.eigh(fourth)[1]
    for a in range(d):
        for i in range(m):
            lines[a, i] = 0.0
        for b in range(d):
            for i in range(m):
                lines[a, i] += axes[b, a] * y[b, i]
    if not seen:
        for a in range(d):
            if effective * _anderson_darling(lines[a], p, edges, normal) > limits[3]:
                seen = True
    none = np.empty(0)
    if not seen:
        return none
    for i in range(m):
        lines[d, i] = 0.0
        lines[d + 1, i] = np.sqrt(radius[i])
    for a in range(d):
        for i in range(m):
            lines[d, i] += skew[a] / np.sqrt(max(third, 1e-300)) * y[a, i]
    best, share = -np.inf, np.empty(m)
    second, factor, mean = np.empty((d, d)), np.zeros((d, d)), np.empty(d)
    other = np.empty((d, d))
    g, r = np.empty(m), np.empty(m)
    least = d + 2.0
    for c in range(d + 2):
        if d == 1 and c == 1:
            continue
        threshold = _cut(lines[c], p, least, edges, d if c > d else 0)
        for i in range(m):
            r[i] = 1.0 if lines[c, i] < threshold else 0.0
        if c == d + 1:
            radial = _soften(y, p, r, effective, 2)
            line = _soften(y, p, share, effective, 2)
            if radial > line:
                share[:] = r
            break
        first, score = _two(y, p, r, g, mean, second, other, factor)
        if score > best:
            best = score
            share[:] = r
    likelihood = _soften(y, p, share, effective, ROUNDS)
    price = 1.0 - _price(effective, d)
    for side in range(2):
        part, squares = 0.0, 0.0
        for i in range(m):
            if share[i] < least_part:
                share[i] = 0.0
            elif share[i] >= 1.0 - least_part:
                share[i] = 1.0
            amount = p[i] * (share[i] if side == 0 else 1.0 - share[i])
            part += amount
            squares += amount * amount
        if part <= 0.0:
            return none
        price += _price(part * part / squares, d)
    if not (price < np.inf and effective * (likelihood + 0.5 * d) > price):
        return none
    return share


@njit(cache=True, nogil=True, fastmath=SUMS)
def _price(effective, d):
    """How much better a Gaussian fits the points it was fitted to than as many others, as a log-likelihood."""
    if effective <= d + 2:
        return np.inf
    return effective * d * (d + 3) / (2.0 * (effective - d - 2))


@njit(cache=True, nogil=True, fastmath=SUMS)
def _anderson_darling(line, p, edges, normal):
    """Squared distance of the distribution functions of the points and N(0, 1), weighted as Anderson and Darling do."""
    bins = len(edges) + 1
    inside = np.zeros(bins)
    scale = 1.0 / (edges[1] - edges[0])
    for i in range(len(line)):
        inside[int(min(max((line[i] - edges[0]) * scale + 1.0, 0.0), bins - 1.0))] += p[i]
    below, total = 0.0, 0.0
    for b in range(len(edges)):
        below += inside[b]
        nearest = normal[min(b + 1, len(edges) - 1)] - normal[max(b - 1, 0)]
        total += 0.5 * nearest * (below - normal[b]) ** 2 / (normal[b] * (1.0 - normal[b]))
    return total


@njit(cache=True, nogil=True, fastmath=SUMS)
def _cut(line, p, least, edges, radial):
    """Return the place at which two Gaussians, one each side, are most likely; for a radius two about one centre."""
    bins = len(edges) + 1
    inside = np.zeros((bins, 4))
    scale, low = 1.0 / (edges[1] - edges[0]), edges[0]
    step = edges[1] - edges[0]
    if radial > 0:
        low = 0.0
    for i in range(len(line)):
        v = line[i]
        b = int(min(max((v - low) * scale + 1.0, 0.0), bins - 1.0))
        inside[b, 0] += p[i]
        inside[b, 1] += p[i] * v
        inside[b, 2] += p[i] * v * v
        inside[b, 3] += p[i] * p[i]
    whole = np.zeros(4)
    for b in range(bins):
        for c in range(4):
            whole[c] += inside[b, c]
    best, threshold = -np.inf, np.inf
    sums = np.zeros(4)
    for b in range(bins - 1):
        for c in range(4):
            sums[c] += inside[b, c]
        score = 0.0
        for side in range(2):
            part = sums if side == 0 else whole - sums
            if part[0] <= 0.0 or part[0] ** 2 <= least * part[3]:
                score = -np.inf
                break
            if radial > 0:
                score -= part[0] * 0.5 * radial * np.log(part[2] / part[0] / radial + 1e-4)
            else:
                variance = part[2] / part[0] - (part[1] / part[0]) ** 2
                score -= part[0] * 0.5 * np.log(variance + step * step / 12)
        if score > best:
            best, threshold = score, low + step * b
    return threshold


@njit(cache=True, nogil=True, fastmath=SUMS)
def _two(y, p, r, g, mean, second, other, factor):
    """Moments of the parts r of the points, and of the rest; the weight of the first, and the likelihood of the parts."""
    d, m = y.shape
    first = 0.0
    for i in range(m):
        g[i] = p[i] * r[i]
        first += g[i]
    if not 0.0 < first < 1.0:
        return first, -np.inf
    for a in range(d):
        mean[a] = 0.0
        for i in range(m):
            mean[a] += g[i] * y[a, i]
    _moments(y, g, second)
    score = 0.0
    for a in range(d):
        for b in range(d):
            whole = 1.0 if a == b else 0.0
            other[a, b] = (whole - second[a, b]) / (1 - first) - mean[a] * mean[b] / (1 - first) ** 2
            second[a, b] = second[a, b] / first - mean[a] * mean[b] / first**2
    _regular(second, 1e-6, factor)
    for a in range(d):
        score += first * np.log(factor[a, a])
    _regular(other, 1e-6, factor)
    for a in range(d):
        score += (1 - first) * np.log(factor[a, a])
    return first, score


@njit(cache=True, nogil=True, fastmath=SUMS)
def _soften(y, p, r, effective, rounds):
    """Expectation-maximisation of two components from the parts r, in place; return the log-likelihood."""
    d, m = y.shape
    g, mean = np.empty(m), np.empty(d)
    second, other, factor = np.empty((d, d)), np.empty((d, d)), np.zeros((d, d))
    logs, v = np.empty((2, m)), np.empty((d, m))
    last = -np.inf
    for _ in range(rounds):
        first, _score = _two(y, p, r, g, mean, second, other, factor)
        if not 0.0 < first < 1.0:
            return last
        for side in range(2):
            _regular(second if side == 0 else other, 1e-6, factor)
            part = first if side == 0 else 1 - first
            peak = np.log(part)
            for a in range(d):
                peak += np.log(factor[a, a])
            for i in range(m):
                logs[side, i] = peak
            for a in range(d):
                centre = mean[a] / part if side == 0 else -mean[a] / part
                for i in range(m):
                    v[a, i] = y[a, i] - centre
                for b in range(a):
                    for i in range(m):
                        v[a, i] -= factor[a, b] * v[b, i]
                for i in range(m):
                    v[a, i] *= factor[a, a]
                    logs[side, i] -= 0.5 * v[a, i] ** 2
        likelihood = 0.0
        for i in range(m):
            high = max(logs[0, i], logs[1, i])
            e = np.exp(min(logs[0, i], logs[1, i]) - high)
            likelihood += p[i] * (high + np.log(1.0 + e))
            r[i] = (1.0 if logs[0, i] > logs[1, i] else e) / (1.0 + e)
        if effective * (likelihood - last) < 0.5:
            return likelihood
        last = likelihood
    return last
