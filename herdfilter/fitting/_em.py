"""Compiled expectation-maximisation of a Gaussian mixture from weighted points, for `EMFit`."""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter.samplers.compiled import CALLED, FAST, ONCE, VECTORISE

PATIENCE = 10  # rises of the likelihood to hope for


@njit(**CALLED, fastmath=VECTORISE)
def spread_seeds(z, w, candidates, count):
    """Choose up to `count` candidates, each the one that most lowers the weighted squared distance to the nearest chosen.

    The points are the columns of z (d, n), as below: the inner loops run over memory in one piece.
    The greedy form of the initialisation of k-means++ (Arthur and Vassilvitskii 2007), without its random draws.
    """
    d, n = z.shape
    distances = np.empty((len(candidates), n))
    for c in range(len(candidates)):
        for i in range(n):
            squared = 0.0
            for a in range(d):
                squared += (z[a, i] - z[a, candidates[c]]) ** 2
            distances[c, i] = squared
    nearest = np.full(n, np.inf)
    seeds = np.empty((count, d))
    lowest = np.inf
    for k in range(count):
        best = -1
        for c in range(len(candidates)):
            total = 0.0
            for i in range(n):
                total += w[i] * min(nearest[i], distances[c, i])
            if total < lowest * (1.0 - 1e-9):
                best, lowest = c, total
        if best < 0:  # no further place where there are particles
            return seeds[:k]
        for a in range(d):
            seeds[k, a] = z[a, candidates[best]]
        for i in range(n):
            nearest[i] = min(nearest[i], distances[best, i])
    return seeds


@njit(**CALLED, fastmath=VECTORISE)
def maximise(z, w, seeds, widening, floor, least, shared, tolerance, max_iterations, wanted):
    """Return weights, means, covariances and the log-likelihoods after each iteration since a component was last dropped.

    `widening` (d, d) is added to every covariance, before none of its eigenvalues is left below `floor`. The iteration is
    given up where even `PATIENCE` more rises like the last would not reach the log-likelihood `wanted`.
    """
    d, n = z.shape
    count = len(seeds)
    weights, means, covariances = np.empty(count), np.empty((count, d)), np.empty((count, d, d))
    factors = np.empty((count, d, d))
    shares = np.zeros((count, n))  # w[i] times the probability that point i belongs to component k
    for i in range(n):
        nearest, best = 0, np.inf
        for k in range(count):
            squared = 0.0
            for a in range(d):
                squared += (z[a, i] - seeds[k, a]) ** 2
            if squared < best:
                nearest, best = k, squared
        shares[nearest, i] = w[i]
    history = np.empty(max_iterations)
    done = -1
    while done < max_iterations:
        # The first covariance is that within all groups: no group is too small for it.
        _update(z, count, shares, widening, floor, shared or done < 0, weights, means, covariances, factors)
        weakest = _weakest(shares, count, least) if done >= 0 else -1
        if weakest >= 0:
            count -= 1
            _move_up(weakest, count, weights, means, factors)
        likelihood = _share_out(z, w, count, weights, means, factors, shares)
        if done < 0 or weakest >= 0:
            done = 0
            continue
        history[done] = likelihood
        done += 1
        if done > 1:
            rise = history[done - 1] - history[done - 2]
            if rise < tolerance or likelihood + PATIENCE * rise < wanted:
                break
    return weights[:count], means[:count], covariances[:count], history[:done]


@njit(**ONCE)
def _weakest(shares, count, least):
    """Return the component with the smallest effective number of points, if that is below `least`; else -1."""
    weakest, fewest = -1, least * (1.0 - 1e-9)  # as many particles as that, of equal weights, are enough
    if count > 1:
        for k in range(count):
            total, squares = 0.0, 0.0
            for i in range(shares.shape[1]):
                total += shares[k, i]
                squares += shares[k, i] ** 2
            effective = total * total / squares if squares > 0.0 else 0.0
            if effective < fewest:
                weakest, fewest = k, effective
    return weakest


@njit(**ONCE)
def _move_up(gap, count, weights, means, factors):
    """Close the gap that a component leaves."""
    d = means.shape[1]
    for k in range(gap, count):
        weights[k] = weights[k + 1]
        for a in range(d):
            means[k, a] = means[k + 1, a]
            for b in range(a + 1):
                factors[k, a, b] = factors[k + 1, a, b]


@njit(**ONCE)
def _update(z, count, shares, widening, floor, shared, weights, means, covariances, factors):
    """M-step: the weights, means and covariances of greatest likelihood among covariances of eigenvalues >= `floor`."""
    d, n = z.shape
    matrices = 1 if shared else count
    for k in range(matrices):
        for a in range(d):
            for b in range(d):
                covariances[k, a, b] = 0.0
    for k in range(count):
        total = 0.0
        for i in range(n):
            total += shares[k, i]
        weights[k] = total
        scale = 1.0 / max(total, 1e-300)  # a component without points is about to be dropped
        for a in range(d):
            moment = 0.0
            for i in range(n):
                moment += shares[k, i] * z[a, i]
            means[k, a] = moment * scale
        m = 0 if shared else k
        for a in range(d):
            for b in range(a + 1):
                moment = 0.0
                for i in range(n):
                    moment += shares[k, i] * (z[a, i] - means[k, a]) * (z[b, i] - means[k, b])
                covariances[m, a, b] += moment if shared else moment * scale
    for m in range(matrices):
        for a in range(d):
            for b in range(a + 1):
                covariances[m, a, b] += widening[a, b]
                covariances[m, b, a] = covariances[m, a, b]
        if not _factorise(covariances[m], floor, factors[m]):
            values, vectors = np.linalg.eigh(covariances[m])
            for a in range(d):
                for b in range(d):
                    covariances[m, a, b] = 0.0
                    for c in range(d):
                        covariances[m, a, b] += vectors[a, c] * max(values[c], floor) * vectors[b, c]
        _factorise(covariances[m], 0.0, factors[m])
    for k in range(matrices, count):
        for a in range(d):
            for b in range(d):
                covariances[k, a, b], factors[k, a, b] = covariances[0, a, b], factors[0, a, b]


@njit(**ONCE)
def _share_out(z, w, count, weights, means, factors, shares):
    """E-step: fill `shares` and return the mean log-likelihood of the points."""
    d, n = z.shape
    y = np.empty((d, n))
    whole = 0.0  # 1, unless a component has just been dropped
    for k in range(count):
        whole += weights[k]
    for k in range(count):
        log_peak = np.log(weights[k] / whole) if weights[k] > 0.0 else -np.inf
        for a in range(d):
            log_peak += np.log(factors[k, a, a])
        for i in range(n):
            shares[k, i] = log_peak
        for a in range(d):
            for i in range(n):
                y[a, i] = z[a, i] - means[k, a]
            for b in range(a):
                for i in range(n):
                    y[a, i] -= factors[k, a, b] * y[b, i]
            for i in range(n):
                y[a, i] *= factors[k, a, a]
                shares[k, i] -= 0.5 * y[a, i] ** 2
    likelihood = -0.5 * d * np.log(2.0 * np.pi)
    for i in range(n):
        peak = shares[0, i]
        for k in range(1, count):
            peak = max(peak, shares[k, i])
        total = 0.0
        for k in range(count):
            shares[k, i] = np.exp(shares[k, i] - peak)
            total += shares[k, i]
        likelihood += w[i] * (peak + np.log(total))
        for k in range(count):
            shares[k, i] *= w[i] / total
    return likelihood


@njit(**FAST)
def _factorise(matrix, less, factor):
    """Cholesky factor of `matrix` less a multiple of I, its diagonal INVERTED; False where that is not positive definite."""
    d = len(matrix)
    for a in range(d):
        for b in range(a + 1):
            rest = matrix[a, b]
            for c in range(b):
                rest -= factor[a, c] * factor[b, c]
            if a > b:
                factor[a, b] = rest * factor[b, b]
            else:
                rest -= less
                if not rest > 0.0:
                    return False
                factor[a, a] = 1.0 / np.sqrt(rest)
    return True
