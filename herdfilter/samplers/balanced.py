"""Balanced points of N(0, I), and the order of particles along a Hilbert curve."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from herdfilter._checks import Array, read_only
from herdfilter._covariances import standardise
from herdfilter.angles import unwrap
from herdfilter.mixture import GaussianMixture, equal_weights
from herdfilter.samplers import base, compiled
from herdfilter.samplers.compiled import exp
from herdfilter.samplers.mapped import MappedSampling

SETS = 8
"""Number of sets of noise, used in turn, so that the errors of a set are not repeated at the next step."""

TRIES = 8
"""Number of scrambles that are tried for a set; the best is used."""


class BalancedPoints(base.MixtureSampler):
    """The first set as a sampler of N(0, I), for `MappedSampling`."""

    def draw(
        self, mixture: GaussianMixture, n: int, rng: np.random.Generator | None
    ) -> tuple[Array, Array]:
        """Return points of the standard normal in as many dimensions as the mixture has."""
        return balanced_noise(n, mixture.dim, 0), equal_weights(n)


INITIAL_POINTS = MappedSampling(BalancedPoints())
"""Draws the initial particles."""


@lru_cache(maxsize=1024)
def balanced_noise(n: int, dim: int, set_index: int) -> Array:
    """Return n fixed points of N(0, I), (n, dim), any run of which is spread like all of them.

    They are points of a Sobol sequence, in the order of the sequence: with ``i / n`` as another coordinate they are a set of
    low discrepancy in dim + 1 dimensions (Niederreiter 1992, lemma 3.7). They are shifted and scaled to mean 0 and, if
    they span the space, covariance I. Eight scrambles are tried, by a generator that `dim` and `set_index` seed; the one
    with the least third and fourth cumulants is returned.
    """
    weights = np.full(n, 1.0 / n)
    rng = np.random.default_rng([dim, set_index])
    best: Array = np.empty((n, dim))
    best_cumulants = np.inf
    for _ in range(TRIES):
        x = standardise(scipy.special.ndtri(scrambled_sobol(n, dim, rng)), weights)
        cumulants = sum(over_chance(x, weights))
        if cumulants < best_cumulants:
            best = x
            best_cumulants = cumulants
    return read_only(best)


def sampled_noise(sampler: base.Sampler, n: int, dim: int, rng: np.random.Generator) -> Array:
    """Return n points of N(0, I), (n, dim), that a sampler draws; ValueError unless their weights are equal."""
    normal = GaussianMixture.unchecked(np.ones(1), np.zeros((1, dim)), np.eye(dim))
    points = base.draw_points(sampler, normal, n, rng)
    if np.ptp(points.weights) > 1e-9 / n:
        raise ValueError(
            f"sampler: expected points of equal weight, got weights from {points.weights.min():.3g} to "
            f"{points.weights.max():.3g} from {type(sampler).__name__}"
        )
    return points.x


# binary digits of a coordinate: the centre of each cell is a float, and neither 0 nor 1
DIGITS = 52
CELL = 2.0**-DIGITS

# Scrambled Sobol points (Sobol 1967; linear matrix scramble and digital shift, Matousek 1998)


def scrambled_sobol(n: int, dim: int, rng: np.random.Generator, ordered: bool = False) -> Array:
    """Draw n points (n, dim) of a scrambled Sobol sequence in the unit cube, sorted by first entry if `ordered`."""
    directions = direction_numbers(dim, (n - 1).bit_length())
    random = rng.integers(2**DIGITS, size=(dim, directions.shape[1] + 1))
    points: Array = scrambled_points(n, directions, random, ordered)
    return points


@lru_cache(maxsize=32)
def direction_numbers(dim: int, count: int) -> NDArray[np.int64]:
    """Return the first direction numbers of the Sobol sequence, times ``2^DIGITS``; (dim, count)."""
    from scipy.stats import qmc  # it takes longer to import than the rest of the package

    if dim > qmc.Sobol.MAXDIM:
        raise ValueError(f"noise_dim: expected at most {qmc.Sobol.MAXDIM - 1}, got {dim - 1}")
    # In the Gray code order of the sequence, point 2^k differs from the one before by direction number k.
    fractions = (qmc.Sobol(dim, scramble=False).random_base2(count) * 2.0**DIGITS).astype(np.int64)
    powers = 2 ** np.arange(count)
    return np.ascontiguousarray((fractions[powers] ^ fractions[powers - 1]).T)


@compiled.njit(**compiled.CALLED)
def scrambled_points(n, directions, random, ordered):
    """Sobol points (n, dim) of direction numbers (dim, count), scrambled by random integers (dim, count + 1).

    If `ordered`, they are sorted by their first entries, of which each of 2^count intervals holds one, or none if n is less.
    """
    dim, count = directions.shape
    x = np.zeros((n, dim))
    digits = np.zeros(n, np.int64)
    scrambled = np.zeros(count, np.int64)
    for j in range(dim):
        for k in range(count):
            scrambled[k] = 0
        # column c of a lower triangular matrix over {0, 1}, its diagonal one
        for c in range(count):
            digit = np.int64(1) << (DIGITS - 1 - c)
            column = digit | (random[j, c] & (digit - 1))
            for k in range(count):
                if directions[j, k] & digit:
                    scrambled[k] ^= column
        digits[0] = random[j, count]  # the digital shift
        # the second half of a Gray code is the first backwards, with one more digit
        for k in range(count):
            for i in range(1 << k, min(n, 2 << k)):
                digits[i] = digits[(2 << k) - 1 - i] ^ scrambled[k]
        for i in range(n):
            x[i, j] = (digits[i] + 0.5) * CELL
    if not ordered:
        return x
    # in linear time: the intervals that hold a point are counted
    ranks = np.zeros(1 << count, np.int64)
    for i in range(n):
        ranks[int(x[i, 0] * len(ranks))] = 1
    row = 0
    for interval in range(len(ranks)):
        row += ranks[interval]
        ranks[interval] = row - 1
    sorted_x = np.zeros((n, dim))
    for i in range(n):
        for j in range(dim):
            sorted_x[ranks[int(x[i, 0] * len(ranks))], j] = x[i, j]
    return sorted_x


BITS = 62  # of a position on the curve, in a signed integer of 64 bits

# The order of particles along a Hilbert curve of any dimension (Skilling 2004, "Programming the Hilbert curve")


def check_hilbert(dim: int) -> None:
    """Raise ValueError if there are more dimensions than a position on the curve has bits."""
    if dim > BITS:
        raise ValueError(
            f"model: expected at most {BITS} dimensions for the Hilbert curve, got {dim}"
        )


def hilbert_order(
    x: Array,
    weights: Array,
    circular: Sequence[int] = (),
) -> NDArray[np.integer[Any]]:
    """Return the indices that sort weighted points (n, d), d up to 62, along the Hilbert curve; by value if d is 1.

    The curve fills the unit cube, into which each coordinate is mapped by the logistic function of its standardised value.
    Angles are first unwrapped about their circular mean: the cut of the circle lies opposite to it.
    """
    x = unwrap(x, weights, tuple(circular))
    n, d = x.shape
    if d == 1:
        return sorted_order(x[:, 0])
    bits = BITS // d
    index = np.zeros(n, np.int64)
    cells = np.empty((d, n), np.int64)
    _cells(np.ascontiguousarray(x), weights / weights.sum(), bits, np.empty(n), cells)
    _index(cells, bits, index)
    return sorted_order(index)


def curve_order(x, weights, circular):
    """Do as `hilbert_order` in compiled code, for weights that sum to 1; `circular` (d,) is True for angles."""
    n, d = x.shape
    bits = BITS // d
    x = unwrapped(x, weights, circular)
    index = np.zeros(n, np.int64)
    cells = np.empty((d, n), np.int64)
    if d > 1:
        _cells(x, weights, bits, np.empty(n), cells)
        _index(cells, bits, index)
    else:
        # the bits of floats sort like the floats once those of negative ones are inverted
        for i in range(n):
            bit_pattern = np.float64(x[i, 0] + 0.0).view(np.int64)
            index[i] = bit_pattern ^ ((bit_pattern >> 63) | np.int64(-(2**63)))
    return _radix_order(index)


@compiled.njit(**compiled.INSIDE)
def unwrapped(x, weights, circular):
    """Return weighted points (n, d) with angles within pi of their circular mean; `circular` (d,) is True for angles."""
    x = x.copy()
    for a in range(x.shape[1]):
        if circular[a]:
            sine = cosine = 0.0
            for i in range(len(x)):
                sine += weights[i] * np.sin(x[i, a])
                cosine += weights[i] * np.cos(x[i, a])
            reference = np.arctan2(sine, cosine)
            for i in range(len(x)):
                x[i, a] = reference + (x[i, a] - reference + np.pi) % (2 * np.pi) - np.pi
    return x


@compiled.njit(**compiled.INSIDE)
def _radix_order(keys):
    """Return the indices that stably sort 64-bit integers, compared as unsigned: a radix sort by bytes."""
    n = len(keys)
    order = np.empty(n, np.int64)
    next_keys = np.empty(n, np.int64)
    next_order = np.empty(n, np.int64)
    counts = np.zeros((8, 256), np.int64)
    for i in range(n):
        order[i] = i
        for byte in range(8):
            counts[byte, (keys[i] >> (8 * byte)) & 255] += 1
    for byte in range(8):
        starts = counts[byte]
        shift = 8 * byte
        if starts[(keys[0] >> shift) & 255] == n:  # all keys agree in this byte
            continue
        start = 0
        for value in range(256):
            count = starts[value]
            starts[value] = start
            start += count
        for i in range(n):
            value = (keys[i] >> shift) & 255
            next_keys[starts[value]] = keys[i]
            next_order[starts[value]] = order[i]
            starts[value] += 1
        keys, next_keys = next_keys, keys
        order, next_order = next_order, order
    return order


def sorted_order(values: NDArray[Any]) -> NDArray[np.integer[Any]]:
    """Return the indices that stably sort values (n,)."""
    order = values.argsort()  # not stable, but several times as fast; ties are rare
    ranked = values[order]
    return values.argsort(kind="stable") if (ranked[1:] == ranked[:-1]).any() else order


@compiled.njit(**compiled.IN_PLACE, fastmath=compiled.VECTORISE)
def _cells(x, weights, bits, row, cells):
    """Fill the cells (d, n) of weighted points (n, d), mapped by the logistic function; row (n,) is workspace."""
    n, d = x.shape
    last_cell = 2.0**bits - 1.0
    for a in range(d):
        mean = 0.0
        variance = 0.0
        for i in range(n):
            row[i] = x[i, a]
            mean += weights[i] * row[i]
        for i in range(n):
            variance += weights[i] * (row[i] - mean) ** 2
        # A logistic function of the standardised value, as in Gerber and Chopin (2015); see `SequentialQuasiMonteCarlo`.
        scale = 1.0 / np.sqrt(variance) if variance > 0.0 else 1.0
        for i in range(n):
            below = (mean - row[i]) * scale
            row[i] = last_cell / (1.0 + exp(below if below < 700.0 else 700.0))
        for i in range(n):
            cells[a, i] = np.int64(row[i])


@compiled.njit(**compiled.IN_PLACE)
def _index(x, bits, index):
    """Fill the positions (n,) along the Hilbert curve of cells (d, n) of a grid with 2^bits cells per side, overwritten.

    The curve begins at the origin and goes from each cell to a neighbour. `index` is passed as zeros. The inner loops run
    over the points, so that the compiler can vectorise them.
    """
    d, n = x.shape
    first = x[0]
    # From the largest sub-cube down, undo the reflection or the exchange of axes that the curve undergoes in it.
    for level in range(bits - 1, 0, -1):
        lower = (np.int64(1) << level) - 1
        for i in range(n):
            first[i] ^= lower & -((first[i] >> level) & 1)
        for j in range(1, d):
            axis = x[j]
            for i in range(n):
                reflected = -((axis[i] >> level) & 1)  # all ones, or zero
                exchanged = (first[i] ^ axis[i]) & lower & ~reflected
                first[i] ^= exchanged ^ (lower & reflected)
                axis[i] ^= exchanged
    # The corners of a sub-cube are visited in the order of a Gray code.
    for i in range(n):
        for j in range(1, d):
            x[j, i] ^= x[j - 1, i]
        parity = x[d - 1, i] >> 1  # of the bits above each bit
        parity ^= parity >> 1
        parity ^= parity >> 2
        parity ^= parity >> 4
        parity ^= parity >> 8
        parity ^= parity >> 16
        parity ^= parity >> 32
        for j in range(d):
            x[j, i] ^= parity
    for level in range(bits - 1, -1, -1):
        for j in range(d):
            axis = x[j]
            # the digits of all axes are interleaved, the highest first
            for i in range(n):
                index[i] = (index[i] << 1) | ((axis[i] >> level) & 1)


@compiled.njit(**compiled.CALLED)
def over_chance(z, weights):
    """Squared third and fourth cumulants of points (n, d) of mean 0 and covariance I, over their expectations by chance."""
    n, d = z.shape
    # sums of products
    third = np.zeros((d, d, d))
    fourth = np.zeros((d, d))
    squares = 0.0
    for i in range(n):
        squares += weights[i] ** 2
        length = 0.0
        for a in range(d):
            length += z[i, a] ** 2
        for a in range(d):
            first = weights[i] * z[i, a]
            for b in range(a + 1):
                second = first * z[i, b]
                fourth[a, b] += length * second
                for c in range(b + 1):
                    third[a, b, c] += second * z[i, c]
    third_squared = fourth_squared = 0.0
    for a in range(d):
        # the tensors are symmetric: each entry counts as often as it occurs in all of them
        for b in range(a + 1):
            fourth_squared += (fourth[a, a] - (d + 2)) ** 2 if a == b else 2.0 * fourth[a, b] ** 2
            for c in range(b + 1):
                times = 1.0 if a == c else 3.0 if a == b or b == c else 6.0
                third_squared += times * third[a, b, c] ** 2
    # Expectations by chance. Each free entry, counted as above, adds 6 to the squared third cumulants, and 4 (d + 4), or 24
    # in one dimension, to those of the matrix; all times sum w^2, the inverse of the effective sample size.
    scale = 24.0 if d == 1 else 4.0 * (d + 4)
    third_by_chance = squares * 6.0 * (d * (d + 1) * (d + 2) / 6.0)
    fourth_by_chance = squares * scale * (d * (d + 1) / 2.0)
    return third_squared / third_by_chance, fourth_squared / fourth_by_chance
