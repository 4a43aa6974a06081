"""Compiled division of weighted points into Gaussian components, for `DivisiveFit`."""

from __future__ import annotations

import numpy as np

from herdfilter._checks import Array
from herdfilter.fitting.em import _factorise
from herdfilter.samplers.compiled import CALLED, FAST, INSIDE, ONCE, VECTORISE, njit

NEGLIGIBLE_PART = 1e-2  # of a point: a smaller part goes to the other component
TRIAL_ROUNDS = 1  # rounds of expectation-maximisation before two ways to divide are compared
FINAL_ROUNDS = 4  # and after that
PARTS_AT_ONCE = 16  # parts of points held at once, as a multiple of the points
LEAST_VARIANCE = 1e-6  # least variance in any direction, that of all points being 1
CHANCE = 0.5  # rise of the log-likelihood of all points, that ends the iteration: less than another sample would change


def divide(
    z: Array, w: Array, floor: float, limits: Array, edges: Array, normal: Array, most: int
) -> tuple[Array, Array, Array]:
    """Divide points z (d, n) into up to `most` components; return their weights (K,), means (K, d), covariances (K, d, d).

    A component is a list of points and the amount of each. Lists that may still be divided form a stack; the two halves of
    the list on top take its place. This loop is not compiled, since its callees would be compiled with it once more.
    """
    d, n = z.shape
    most = min(most, n // (d + 2) + 1)
    weights, means, covariances = np.empty(most), np.empty((most, d)), np.empty((most, d, d))
    memory = np.empty((2 * d + 7, n))  # one piece for all arrays with a number for each point
    y, lines, parts, p = memory[:d], memory[d : 2 * d + 2], memory[2 * d + 2 : 2 * d + 6], memory[2 * d + 6]
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
                least_part = NEGLIGIBLE_PART if below + 2 * m <= PARTS_AT_ONCE * n else 0.5
                first = _division(y, p, m, effective, changed, tails, lines, parts, edges, least_part)
        if first == 0.0:
            weights[count] = total
            count += 1
            continue
        share = parts[0, :m]
        own = min(max(int(allowed * first + 0.5), 1), allowed - 1)
        for part, most_here in ((share, own), (1.0 - share, allowed - own)):
            present = part.nonzero()[0]
            waiting.append((items[present], part[present] * amounts[present], most_here))
            below += len(present)
    return weights[:count], means[:count], covariances[:count]


@njit(**CALLED, fastmath=VECTORISE)
def _whiten(z, items, amounts, y, p, parts, floor, mean, covariance, factor):
    """Fill p with the amounts, scaled to sum to 1, and y with their points, whitened to mean 0 and covariance I.

    Returns the sum of the amounts, their effective number, and True if `floor` has changed the covariance.
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
    changed = regularised_factor(covariance, floor, factor)
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

    The weight is 0 if one component suffices.
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
            threshold = _best_cut(lines, c, p, m, d, edges, inside)
            for i in range(m):
                parts[1, i] = 1.0 if lines[c, i] < threshold else 0.0
        gain = maximise_two(y, p, m, parts, 0 if again else 1, second, effective, FINAL_ROUNDS if again else TRIAL_ROUNDS)
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
    """Compare the points with N(0, I): -1 if they agree, else 1 if their tails are heavy and else 0.

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
    differs = (
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
        if differs:
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
        differs = effective * distance > limits[3]
    if not differs:
        return -1
    for i in range(m):
        lines[d, i] = 0.0
    for a in range(d):
        for i in range(m):
            lines[d, i] += skew[a] / np.sqrt(max(third, 1e-300)) * y[a, i]
    return 1 if excess > 0.0 else 0


@njit(**INSIDE)
def _price(effective, d):
    """Return how much better a Gaussian is expected to fit its own points than new ones: the corrected AIC."""
    if effective <= d + 2:
        return np.inf
    return 0.5 * effective * d * (d + 3) / (effective - d - 2)


@njit(**INSIDE)
def _best_cut(lines, c, p, m, d, edges, inside):
    """Return the place to cut line c: the two sides have the least ``sum_k p_k log |covariance_k|`` (Scott and Symons 1971).

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


@njit(**FAST)
def whole_moments(y, p, m, g, second):
    """Fill `second` (d, d) with the sums of the products of two coordinates, over m points of weight p; g is overwritten."""
    for a in range(len(y)):
        for i in range(m):
            g[i] = p[i] * y[a, i]
        for b in range(a + 1):
            moment = 0.0
            for i in range(m):
                moment += g[i] * y[b, i]
            second[a, b] = moment
            second[b, a] = moment


@njit(**INSIDE)
def regularised_factor(covariance, floor, factor):
    """Fill `factor` with that of `_factorise`; if an eigenvalue is below `floor`, add `floor` to all and return True."""
    low = not _factorise(covariance, floor, factor)
    if low:
        for a in range(len(covariance)):
            covariance[a, a] += floor
    _factorise(covariance, 0.0, factor)
    return low


@njit(**ONCE)
def _estimate(y, p, m, parts, row, second, contrast):
    """M-step: the two Gaussians of the points' parts in ``parts[row]``, and of the rest; `second` holds the moments of all.

    Fills `contrast` (d + 1, d + 1) so that ``contrast[d, d] + contrast[d, :d] y + y' contrast[:d, :d] y`` is the weighted
    log-density of the first less that of the second. Returns the mean of the latter less that of N(0, I).
    """
    d = len(y)
    g, first = parts[2], 0.0
    for i in range(m):
        g[i] = p[i] * parts[row, i]
        first += g[i]
    contrast[:] = 0.0
    if not LEAST_VARIANCE < first < 1.0 - LEAST_VARIANCE:
        return -np.inf
    inner, moments = np.empty((d, d)), np.empty(d)
    for a in range(d):
        moments[a] = 0.0
        for i in range(m):
            moments[a] += g[i] * y[a, i]
    whole_moments(y, g, m, parts[3], inner)
    covariance, factor, inverse = np.empty((d, d)), np.empty((d, d)), np.empty((d, d))
    mean, base = np.empty(d), 0.0
    for side in range(2):
        part, sign = (first, 1.0) if side == 0 else (1.0 - first, -1.0)
        for a in range(d):
            mean[a] = sign * moments[a] / part
            for b in range(d):
                inside = inner[a, b] if side == 0 else second[a, b] - inner[a, b]
                covariance[a, b] = inside / part - moments[a] * moments[b] / (part * part)
        regularised_factor(covariance, LEAST_VARIANCE, factor)
        peak = np.log(part)
        for a in range(d):  # the inverse of the factor, row by row
            peak += np.log(factor[a, a])
            for b in range(a + 1):
                entry = 1.0 if a == b else 0.0
                for c in range(b, a):
                    entry -= factor[a, c] * inverse[c, b]
                inverse[a, b] = entry * factor[a, a]
        for a in range(d):
            for b in range(d):
                precision = 0.0
                for c in range(max(a, b), d):
                    precision += inverse[c, a] * inverse[c, b]
                contrast[a, b] -= 0.5 * sign * precision
                contrast[d, a] += sign * precision * mean[b]
                peak -= 0.5 * precision * mean[a] * mean[b]
                if side == 1:
                    base -= 0.5 * precision * second[a, b]
        contrast[d, d] += sign * peak
        base += peak if side == 1 else 0.0
    for a in range(d):
        base += 0.5 * second[a, a]
    return base


@njit(**ONCE)
def maximise_two(y, p, m, parts, row, second, effective, rounds):
    """Raise the likelihood of the parts in ``parts[row]``, in place; return its mean rise over that of N(0, I)."""
    d = len(y)
    gain, contrast, excess = -np.inf, np.empty((d + 1, d + 1)), parts[2]
    for _ in range(rounds):
        last, gain = gain, _estimate(y, p, m, parts, row, second, contrast)
        if gain == -np.inf:
            break
        for i in range(m):
            excess[i] = contrast[d, d]
        for a in range(d):
            for i in range(m):
                excess[i] += (contrast[d, a] + contrast[a, a] * y[a, i]) * y[a, i]
            for b in range(a):
                for i in range(m):
                    excess[i] += 2 * contrast[a, b] * y[a, i] * y[b, i]
        for i in range(m):
            # exp(-|x|) and log(1 + exp(-|x|)) by powers, which vectorise.
            t = -min(abs(excess[i]), 32.0) / 32.0
            e = 1.0 + t * (1.0 + t / 2 * (1.0 + t / 3 * (1.0 + t / 4 * (1.0 + t / 5 * (1.0 + t / 6 * (1.0 + t / 7))))))
            e *= e
            e *= e
            e *= e
            e *= e
            e *= e
            u = e / (2.0 + e)
            v = u * u
            log = 2 * u * (1.0 + v * (1 / 3 + v * (1 / 5 + v * (1 / 7 + v * (1 / 9 + v / 11)))))
            gain += p[i] * (max(excess[i], 0.0) + log)
            parts[row, i] = (1.0 if excess[i] > 0.0 else e) / (1.0 + e)
        if effective * (gain - last) < CHANCE:
            break
    return gain
