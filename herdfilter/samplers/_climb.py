"""Compiled herding objective with its slopes in up to three dimensions, and Newton's climb to a maximum.

In a frame where the kernel is a unit Gaussian the objective is ``f(x) = mu(x) - scale sum_s v_s k(x, x_s)`` with
``mu(x) = sum_m height[m] exp(-(x - means[:, m])' P_m (x - means[:, m]) / 2)``. Fewer dimensions are padded to three with
zeros: the loops then hold everything in registers. A target is (height, means, precision), with columns of means (3, M) and
of the precisions' lower triangles 00, 10, 11, 20, 21, 22 (6, M); samples are (v, points), points (3, n). Both are padded
with zero heights to multiples of PAD, which leaves the vectorised loops no remainder. Hessians are those of -f.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter.samplers._fastmath import VECTORISE, exp_clipped

PAD = 16  # a multiple of what the compiler takes at once
CONVERGED = 1e-12  # a Newton step that promises less, relative to the curvature, is the last: its error is near its square
FARTHEST = 1.0  # kernel widths a step may go


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def target_slopes(target, x, y, z):
    """mu, its gradient, and the Hessian of -mu."""
    height, means, precision = target
    f = a = b = c = aa = ba = bb = ca = cb = cc = 0.0
    for m in range(len(height)):
        u, v, w = means[0, m] - x, means[1, m] - y, means[2, m] - z
        pu = precision[0, m] * u + precision[1, m] * v + precision[3, m] * w
        pv = precision[1, m] * u + precision[2, m] * v + precision[4, m] * w
        pw = precision[3, m] * u + precision[4, m] * v + precision[5, m] * w
        g = height[m] * exp_clipped(-0.5 * (u * pu + v * pv + w * pw))
        f += g
        a += g * pu
        b += g * pv
        c += g * pw
        aa += g * (precision[0, m] - pu * pu)
        ba += g * (precision[1, m] - pv * pu)
        bb += g * (precision[2, m] - pv * pv)
        ca += g * (precision[3, m] - pw * pu)
        cb += g * (precision[4, m] - pw * pv)
        cc += g * (precision[5, m] - pw * pw)
    return f, a, b, c, aa, ba, bb, ca, cb, cc


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def kernel_slopes(v, points, count, x, y, z):
    """Kernel sum, its gradient, and the Hessian of minus the sum."""
    f = a = b = c = aa = ba = bb = ca = cb = cc = 0.0
    for s in range(count):
        p, q, r = points[0, s] - x, points[1, s] - y, points[2, s] - z
        g = v[s] * exp_clipped(-0.5 * (p * p + q * q + r * r))
        f += g
        a += g * p
        b += g * q
        c += g * r
        aa += g * (1.0 - p * p)
        ba -= g * q * p
        bb += g * (1.0 - q * q)
        ca -= g * r * p
        cb -= g * r * q
        cc += g * (1.0 - r * r)
    return f, a, b, c, aa, ba, bb, ca, cb, cc


@njit(cache=True, nogil=True)
def newton_climb(d, target, v, points, count, scale, place, best, leash):
    """Climb from `place` by Newton's method, safeguarded, to a local maximum.

    The climb is given up once it is clear that the maximum is below `best` or farther away than `leash`. Returns the value
    at the place reached, mu there, and how high the maximum is (at most, where the climb was given up).
    """
    x, y, z = place[0], place[1], place[2]
    before, slope, rate = -np.inf, 0.0, 1.0
    sx = sy = sz = 0.0
    value = mu = -np.inf
    for _ in range(100):
        mu, a, b, c, aa, ba, bb, ca, cb, cc = target_slopes(target, x, y, z)
        kernels, ka, kb, kc, kaa, kba, kbb, kca, kcb, kcc = kernel_slopes(v, points, count, x, y, z)
        value = mu - scale * kernels
        if not value >= before + 1e-4 * rate * slope:
            x, y, z = x - rate * sx, y - rate * sy, z - rate * sz
            rate *= 0.3
            if rate < 1e-6:
                value = before
                break
            x, y, z = x + rate * sx, y + rate * sy, z + rate * sz
            continue
        before = value
        curvature = mu + scale * kernels
        a, b, c = a - scale * ka, b - scale * kb, c - scale * kc
        aa, ba, bb = aa - scale * kaa, ba - scale * kba, bb - scale * kbb
        ca, cb, cc = ca - scale * kca, cb - scale * kcb, cc - scale * kcc
        if d < 3:
            c, ca, cb, cc = 0.0, 0.0, 0.0, curvature
        if d < 2:
            b, ba, bb = 0.0, 0.0, curvature
        shift = 0.0
        while True:
            sx, sy, sz, sure = solve_triangle(
                aa + shift, ba, bb + shift, ca, cb, cc + shift, a, b, c, 1e-9 * curvature
            )
            if sure:
                break
            shift = max(2.0 * shift, 1e-2 * curvature)
        slope = a * sx + b * sy + c * sz
        squared = sx * sx + sy * sy + sz * sz
        if not slope > CONVERGED * curvature:
            if shift == 0.0 and squared < 1.0:
                x, y, z = x + sx, y + sy, z + sz
                value += 0.5 * slope
            break
        rate = min(1.0, FARTHEST / np.sqrt(squared))
        if (
            max(abs(x + rate * sx - place[0]), abs(y + rate * sy - place[1]), abs(z + rate * sz - place[2]))
            > leash
        ):
            break
        if (
            shift == 0.0 and squared < 0.25 and value + slope < best
        ):  # twice the rise that Newton's model predicts
            place[0], place[1], place[2] = x, y, z
            return value, mu, value + slope
        x, y, z = x + rate * sx, y + rate * sy, z + rate * sz
    place[0], place[1], place[2] = x, y, z
    return value, mu, value


@njit(cache=True, nogil=True)
def solve_triangle(aa, ba, bb, ca, cb, cc, a, b, c, least):
    """Solve the symmetric system of three equations; the last value says whether all pivots exceed `least`."""
    if not aa > least:
        return a, b, c, False
    f, g = ba / aa, ca / aa
    bb -= f * ba
    cb -= f * ca
    cc -= g * ca
    if not bb > least:
        return a, b, c, False
    h = cb / bb
    cc -= h * cb
    if not cc > least:
        return a, b, c, False
    b -= f * a
    c -= g * a + h * b
    z = c / cc
    y = b / bb - h * z
    return a / aa - f * y - g * z, y, z, True
