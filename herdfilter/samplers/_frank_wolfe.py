"""Compiled weight rules of kernel herding as a Frank-Wolfe method (Bach, Lacoste-Julien and Obozinski, ICML 2012).

The points so far stand for the function ``g = sum_s w_s k(., x_s)``, and the error is the distance of g from the expected
kernel mu. Each new point x is the vertex ``phi = k(., x)`` along which the error falls fastest from g. The weights are kept
as ``w_s = scale v_s``, so that shrinking all of them costs one multiplication.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter._simplex_weights import correct_weights
from herdfilter.samplers._fastmath import exp

EQUAL, LINE_SEARCH, FULLY_CORRECTIVE = 0, 1, 2
RULES = {"equal": EQUAL, "line-search": LINE_SEARCH, "fully-corrective": FULLY_CORRECTIVE}


@njit(cache=True, nogil=True)
def first_weights(n, rule):
    """Make room for what a rule remembers: <mu, g>, |g|^2; Gram matrix, expectations, free points, factor, their number."""
    m = n if rule == FULLY_CORRECTIVE else 0
    return (
        np.zeros(2),
        np.empty((m, m)),
        np.empty(m),
        np.empty(m, np.int64),
        np.empty((m, m)),
        np.zeros(1, np.int64),
    )


@njit(cache=True, nogil=True)
def next_weights(rule, t, points, v, scale, mu, kernels, memory):
    """Weigh the points anew once point t is there, at which mu and ``kernels = g / scale`` have these values.

    Writes v, and returns the scale and whether weights of earlier points have changed other than by the scale.
    """
    if rule == EQUAL:
        v[t] = 1.0
        return 1.0 / (t + 1), False
    if rule == LINE_SEARCH:
        rho = _line_search(t, mu, scale * kernels, memory[0])
        if rho < 1.0:
            scale *= 1.0 - rho
            v[t] = rho / scale
            return scale, False
        for s in range(t):
            v[s] = 0.0
        v[t] = 1.0
        return 1.0, t > 0
    _, gram, z, free, factor, size = memory
    for s in range(t + 1):
        squared = 0.0
        for i in range(len(points)):
            squared += (points[i, s] - points[i, t]) ** 2
        gram[s, t] = gram[t, s] = exp(-0.5 * min(squared, 1400.0))
    z[t] = mu
    size[0] = correct_weights(gram, z, v, t + 1, free, size[0], factor)
    return 1.0, True


@njit(cache=True, nogil=True)
def _line_search(t, mu, g, inner):
    """Step rho in [0, 1] from g to phi that minimises the error; mu and g are the functions' values at the new point.

    ``rho = <mu - g, phi - g> / |phi - g|^2``, where ``<mu, phi> = mu(x)``, ``<g, phi> = g(x)`` and ``|phi| = 1``;
    `inner` holds ``<mu, g>`` and ``|g|^2`` and is brought up to date for ``g + rho (phi - g)``.
    """
    rho = 1.0
    if t > 0:
        squared = 1.0 - 2.0 * g + inner[1]
        rho = min(max((mu - g - inner[0] + inner[1]) / squared, 0.0), 1.0) if squared > 0.0 else 0.0
    inner[0] = (1.0 - rho) * inner[0] + rho * mu
    inner[1] = (1.0 - rho) ** 2 * inner[1] + 2.0 * rho * (1.0 - rho) * g + rho * rho
    return rho
