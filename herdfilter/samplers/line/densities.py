"""Log-densities of a mixture on a line, in one sweep over its cells."""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter._checks import Array
from herdfilter.mixture import GaussianMixture
from herdfilter.samplers.compiled import CALLED, FAST, INSIDE, exp
from herdfilter.samplers.line.cells import ROOT, as_line, before_the_first, enter, integral_and_density
from herdfilter.samplers.line.crowds import condensed

TRUSTED = 1e-7  # of the largest density there might be: below, the polynomials no longer hold 13 digits
NEGLIGIBLE = 36.0  # logarithm of what is left out of a sum of terms, below rounding


def log_densities(mixture: GaussianMixture, x: Array) -> Array:
    """Log-density of a one-dimensional mixture at points (n, 1), (n,), to 1e-12, as `GaussianMixture.log_density` has it.

    The price grows with M + n, and not with their product.
    """
    line = as_line(mixture)
    near = condensed(line)
    peaks = np.log(line.weights) - np.log(line.deviations * ROOT)
    largest = np.log((line.weights / (line.deviations * ROOT)).sum())
    order = np.argsort(x[:, 0], kind="stable")
    values, room = np.empty(len(x)), np.empty(len(peaks))
    _sweep(near, before_the_first(near), line, peaks, largest, line.starts[:-1].copy(), x[order, 0], values, room)
    result = np.empty(len(x))
    result[order] = values
    return result


@njit(**CALLED)
def _sweep(near, cells, line, peaks, largest, places, x, values, terms):
    """Fill in the log-densities at points that ascend.

    `near` is the line condensed; `peaks` are those of the components, with their weights, and `largest` their sum, as
    logarithms; `places` are the groups' starts, and `terms` is room to work in.
    """
    trusted = np.exp(largest) * TRUSTED
    for i in range(len(x)):
        density = 0.0
        for g in range(len(cells.right)):
            if cells.right[g] <= x[i]:
                enter(near, cells, g, x[i])
            if cells.active[g]:
                density += integral_and_density(cells, g, x[i])[1]
        if density > trusted:
            values[i] = np.log(density)
        else:
            values[i] = _in_the_tails(line, peaks, largest, places, x[i], terms)


@njit(**INSIDE)
def _in_the_tails(line, peaks, largest, places, x, terms):
    """Log-sum-exp over the components near enough to matter beside the nearest ones."""
    nearest = -np.inf
    for g in range(len(places)):
        start, end, i = line.starts[g], line.starts[g + 1], places[g]
        while i < end and line.means[i] < x:
            i += 1
        places[g] = i
        if i > start:
            nearest = max(nearest, _term(line, peaks, x, i - 1))
        if i < end:
            nearest = max(nearest, _term(line, peaks, x, i))
    reach = np.sqrt(2 * (largest - nearest + NEGLIGIBLE))
    size, peak = 0, -np.inf
    for g in range(len(places)):
        i = places[g]
        while i < line.starts[g + 1] and line.means[i] - x <= reach * line.widest[g]:
            terms[size] = _term(line, peaks, x, i)
            peak = max(peak, terms[size])
            i, size = i + 1, size + 1
        i = places[g] - 1
        while i >= line.starts[g] and x - line.means[i] <= reach * line.widest[g]:
            terms[size] = _term(line, peaks, x, i)
            peak = max(peak, terms[size])
            i, size = i - 1, size + 1
    return peak + np.log(_sum_exp(terms, size, peak)) if peak > -np.inf else peak


@njit(**INSIDE)
def _term(line, peaks, x, i):
    """Log-density of component i at x, with its weight."""
    u = (line.means[i] - x) / line.deviations[i]
    return peaks[i] - 0.5 * u * u


@njit(**FAST)
def _sum_exp(terms, size, peak):
    """Sum of exp(terms - peak)."""
    total = 0.0
    for i in range(size):
        total += exp(terms[i] - peak)
    return total
