"""Newton's climb of the herding objective in up to four dimensions, where all components share one diagonal covariance.

In a frame where the kernel is a unit Gaussian the objective ``f(x) = mu(x) - scale sum_s v_s k(x, x_s)`` is then a sum of
bumps of two shapes, ``height_m exp(-sum_i narrowness_i (x - centre_m)_i^2 / 2)``. Centres are columns (4, M): fewer
dimensions are padded with zeros, and columns of no height make M a multiple of PAD, which leaves the loops no remainder.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter.samplers._climb import PAD
from herdfilter.samplers._fastmath import VECTORISE, exp_clipped, fill

CONVERGED = 1e-7  # a Newton step that promises less, relative to the curvature, is the last: its error is near its square
STEPS = 30  # far more than are ever needed


@njit(cache=True, nogil=True)
def whole(count):
    """Return the multiple of PAD that is not below `count`."""
    return (count + PAD - 1) // PAD * PAD


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def slopes(height, centres, count, narrowness, x, sums):
    """Sum the first `count` bumps at x, their pulls p (4,), and the lower triangle of p p', into sums (15,)."""
    x0, x1, x2, x3 = x[0], x[1], x[2], x[3]
    n0, n1, n2, n3 = narrowness[0], narrowness[1], narrowness[2], narrowness[3]
    f = a = b = c = d = aa = ba = bb = ca = cb = cc = da = db = dc = dd = 0.0
    for m in range(count):
        u0, u1, u2, u3 = centres[0, m] - x0, centres[1, m] - x1, centres[2, m] - x2, centres[3, m] - x3
        p0, p1, p2, p3 = n0 * u0, n1 * u1, n2 * u2, n3 * u3
        g = height[m] * exp_clipped(-0.5 * (u0 * p0 + u1 * p1 + u2 * p2 + u3 * p3))
        f += g
        q0, q1, q2, q3 = g * p0, g * p1, g * p2, g * p3
        a += q0
        b += q1
        c += q2
        d += q3
        aa += q0 * p0
        ba += q1 * p0
        bb += q1 * p1
        ca += q2 * p0
        cb += q2 * p1
        cc += q2 * p2
        da += q3 * p0
        db += q3 * p1
        dc += q3 * p2
        dd += q3 * p3
    sums[0], sums[1], sums[2], sums[3], sums[4] = f, a, b, c, d
    sums[5], sums[6], sums[7], sums[8], sums[9] = aa, ba, bb, ca, cb
    sums[10], sums[11], sums[12], sums[13], sums[14] = cc, da, db, dc, dd


@njit(cache=True, nogil=True)
def climb(target, samples, t, scale, place, best, workspace):
    """Climb from `place` (d,) by Newton's method, safeguarded, to a local maximum; return its height.

    The climb is given up once Newton's model promises that the maximum is below `best`.
    """
    height, centres, narrowness = target
    v, points, ones = samples
    x, step, gradient, hessian, factor, mu, kernels = workspace
    d = len(place)
    fill(x, 0.0)
    for i in range(d):
        x[i] = place[i]
    count = whole(t)
    value = before = -np.inf
    slope, rate = 0.0, 1.0
    for _ in range(STEPS):
        slopes(height, centres, len(height), narrowness, x, mu)
        slopes(v, points, count, ones, x, kernels)
        value = mu[0] - scale * kernels[0]
        if not value >= before + 1e-4 * rate * slope:
            for i in range(d):
                x[i] -= 0.7 * rate * step[i]
            rate *= 0.3
            continue
        before = value
        for i in range(d):
            place[i] = x[i]
        curvature = mu[0] + scale * kernels[0]
        k = 5
        for i in range(d):
            gradient[i] = mu[1 + i] - scale * kernels[1 + i]
            for j in range(i + 1):
                hessian[i, j] = scale * kernels[k] - mu[k]  # of -f
                k += 1
            hessian[i, i] += narrowness[i] * mu[0] - scale * kernels[0]
        shift = 0.0
        while not _solve(hessian, shift, gradient, 1e-9 * curvature, factor, step):
            shift = max(2.0 * shift, 1e-2 * curvature)
        slope = squared = 0.0
        for i in range(d):
            slope += gradient[i] * step[i]
            squared += step[i] * step[i]
        near = (
            CONVERGED if shift == 0.0 else 1e-6 * CONVERGED
        )  # there is a way up from a saddle, however flat
        if not slope > near * curvature:
            if shift == 0.0:
                for i in range(d):
                    place[i] += step[i]
                before += 0.5 * slope
            break
        if shift == 0.0 and squared < 0.25 and value + slope < best:  # twice the rise that the model predicts
            break
        rate = min(1.0, 1.0 / np.sqrt(squared))
        for i in range(d):
            x[i] += rate * step[i]
    return before


@njit(cache=True, nogil=True)
def _solve(matrix, shift, vector, least, factor, x):
    """Solve (matrix + shift I) x = vector, given the lower triangle; return whether all pivots exceed `least`.

    `factor` takes L of L D L', unit below its diagonal, which holds D.
    """
    d = len(vector)
    for i in range(d):
        x[i] = vector[i]
        pivot = matrix[i, i] + shift
        for j in range(i):
            entry = matrix[i, j]
            for k in range(j):
                entry -= factor[i, k] * factor[j, k] * factor[k, k]
            factor[i, j] = entry / factor[j, j]
            pivot -= factor[i, j] * entry
            x[i] -= factor[i, j] * x[j]
        if not pivot > least:
            return False
        factor[i, i] = pivot
    for i in range(d - 1, -1, -1):
        x[i] /= factor[i, i]
        for j in range(i + 1, d):
            x[i] -= factor[j, i] * x[j]
    return True


@njit(cache=True, nogil=True)
def climbing_room(d):
    """Workspace of `climb`."""
    return (
        np.empty(4),
        np.empty(d),
        np.empty(d),
        np.empty((d, d)),
        np.empty((d, d)),
        np.empty(15),
        np.empty(15),
    )
