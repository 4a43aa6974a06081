"""Drifts of random models, the distribution from which they are drawn, and helpers that draw and print numbers.

Every number is rounded to three significant digits: the printed words are then the model itself, and machines that differ in
the last bit get the same model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from herdfilter._checks import Array, RowFunction
from herdfilter.mixture import GaussianMixture
from herdfilter.models.parts import runge_kutta

# dimension -> probability
DIMENSIONS = {1: 0.15, 2: 0.25, 3: 0.2, 4: 0.15, 5: 0.0625, 6: 0.0625, 7: 0.0625, 8: 0.0625}
POPULATION_LIMITS = (-4.0, 1.5)  # the logarithm of a population is clipped to this range
HENON_EDGE = 1.5  # end of the attractor of Henon's map, at which x is clipped

# Numbers


def rounded(values: ArrayLike) -> Array:
    """Return numbers with three significant digits."""
    array = np.asarray(values, dtype=np.float64)
    return np.array([float(f"{value:.2e}") for value in array.flat]).reshape(array.shape)


def draw_number(rng: Generator, low: float, high: float) -> float:
    """Draw a uniform number and round it."""
    return float(rounded(rng.uniform(low, high)))


def draw_count(rng: Generator, lowest: int, highest: int) -> int:
    """Draw a whole number; both limits are possible."""
    return int(rng.integers(lowest, highest + 1))


def log_uniform(rng: Generator, low: float, high: float, size: int | None = None) -> Array:
    """Draw numbers whose logarithm is uniform."""
    return np.exp(rng.uniform(np.log(low), np.log(high), size))


def rotation(rng: Generator, dim: int) -> Array:
    """Draw an orthogonal matrix (dim, dim) from the uniform distribution."""
    # QR of a Gaussian matrix; the signs of R's diagonal make Q uniform (Mezzadri 2007)
    q, r = np.linalg.qr(rng.standard_normal((dim, dim)))
    return q * np.where(np.diagonal(r) < 0, -1.0, 1.0)


def draw_vectors(rng: Generator, count: int, dim: int, shortest: float, longest: float) -> Array:
    """Draw vectors (count, dim) in random directions, whose lengths are uniform."""
    vectors = rng.standard_normal((count, dim))
    lengths = rng.uniform(shortest, longest, (count, 1))
    return vectors * (lengths / np.linalg.norm(vectors, axis=1, keepdims=True))


def draw_weights(rng: Generator, means: Array, sd: Array) -> GaussianMixture:
    """Return the mixture of Gaussians with these means (M, d) and standard deviations (d,), rounded, and random weights."""
    weights = rounded(rng.uniform(0.5, 1.5, len(means))) if len(means) > 1 else np.ones(1)
    return GaussianMixture(weights, rounded(means), np.diag(rounded(sd) ** 2))


def draw_key(rng: Generator, shares: Mapping[Any, float]) -> Any:
    """Draw a key with a probability in proportion to its value."""
    keys = list(shares)
    values = np.array(list(shares.values()))
    level = rng.random() * values.sum()
    return keys[int(np.searchsorted(np.cumsum(values), level, side="right"))]


def listed(values: ArrayLike) -> str:
    """Write a number, or a vector in brackets, or the rows of a matrix."""
    array = np.asarray(values)
    if array.size == 1:
        return f"{array.item():.3g}"
    if array.ndim > 1:
        return "; ".join(listed(row) for row in array)
    return "(" + ", ".join(f"{value:.3g}" for value in array) + ")"


def coordinates(dims: Iterable[int]) -> str:
    """Write the names of coordinates: x1, x2, ..."""
    return ", ".join(f"x{dim + 1}" for dim in dims)


# Drifts that forget their start


class Drift(NamedTuple):
    """A function f that takes states over one step without noise, (n, d) -> (n, d).

    Its natural `scale` in each coordinate, (d,), is the unit of the noise; after `settled` steps it has forgotten its start.
    `words` are its equation.
    """

    kind: str
    scale: Array
    settled: int
    f: RowFunction
    words: str

    @property
    def dim(self) -> int:
        """Dimension d of the state."""
        return len(self.scale)


def linear(matrix: Array, kind: str = "linear") -> Drift:
    """Return ``A x`` with a stable matrix A, (d, d); its scale is 1, as a linear map has no natural one."""
    sizes = np.sort(np.abs(np.linalg.eigvals(matrix)))[::-1]
    words = f"{kind}, A x with eigenvalues of size {listed(sizes)}; rows of A: {listed(matrix)}"
    return Drift(kind, np.ones(len(matrix)), 300, lambda x: x @ matrix.T, words)


def _mix(x: Array, coupling: float) -> Array:
    """Move each coordinate towards its neighbour."""
    return x + coupling * (np.roll(x, 1, axis=1) - x)


def draw_wells(rng: Generator, dim: int) -> Drift:
    """Draw the exact flow of ``dx/dt = x - x^3 / width^2`` in m coordinates; the others decay; then neighbours mix."""
    m = draw_count(rng, 1, dim)
    width = rounded(rng.uniform(0.5, 2.0, m))
    time = draw_number(rng, 0.3, 1.5)
    decay = rounded(rng.uniform(0.3, 0.95, dim - m))
    coupling = draw_number(rng, 0.05, 0.3) if dim > 1 else 0.0
    growth = np.exp(time)

    # the equation is linear in 1 / x^2 (Bernoulli), which gives the exact flow
    def f(x: Array) -> Array:
        squared = (x[:, :m] / width) ** 2
        in_wells = growth * x[:, :m] / np.sqrt(1 + squared * (growth**2 - 1))
        return _mix(np.hstack([in_wells, x[:, m:] * decay]), coupling)

    words = (
        f"double wells at +-{listed(width)} in {coordinates(range(m))}: "
        f"dx/dt = x - x^3 / width^2 for a time of {time:.3g}"
    )
    words += f"; {coordinates(range(m, dim))} times {listed(decay)}" if len(decay) else ""
    words += f"; then {coupling:.3g} of the way to the next coordinate" if coupling else ""
    return Drift("wells", np.append(width, np.full(dim - m, width[0])), 60, f, words)


def draw_saturating(rng: Generator, dim: int) -> Drift:
    """Draw a network, ``share x + B tanh(W x + b)``."""
    W = rounded(rng.standard_normal((dim, dim)) * rng.uniform(0.8, 3.0) / np.sqrt(dim))
    share = draw_number(rng, 0.0, 0.7)
    B = rounded(rotation(rng, dim) * rng.uniform(0.7, 1.5))
    b = rounded(0.5 * rng.standard_normal(dim))
    words = f"saturating, {share:.3g} x + B tanh(W x + b), b = {listed(b)}; rows of B: {listed(B)}; rows of W: {listed(W)}"
    scale = np.linalg.norm(B, axis=1)
    return Drift("saturating", scale, 60, lambda x: np.tanh(x @ W.T + b) @ B.T + share * x, words)


def draw_population(rng: Generator, dim: int) -> Drift:
    """Draw Ricker's ``x + r (1 - C e^x)`` of competing species: x are the logarithms of their populations, clipped."""
    # each species limits itself with weight 1, others with at most 0.8 in all, so that all of them survive
    C: Array = rng.uniform(0.0, 0.8 / dim, (dim, dim))
    np.fill_diagonal(C, 1.0)
    C = rounded(C)
    rate = rounded(rng.uniform(0.5, 2.6, dim))

    def f(x: Array) -> Array:
        logs = np.clip(x, *POPULATION_LIMITS)
        return logs + rate * (1 - np.exp(logs) @ C.T)

    lowest, highest = POPULATION_LIMITS
    words = f"population, x + r (1 - C exp x) with x between {lowest:g} and {highest:g}, r = {listed(rate)}"
    words += f"; rows of C: {listed(C)}" if dim > 1 else ""
    return Drift("population", np.full(dim, 0.5), 25, f, words)


# Chaotic maps, all bounded


def henon(a: float, b: float) -> Drift:
    """Return Henon's map ``(1 - a x^2 + y, b x)`` with x clipped to the range of the attractor."""

    def f(x: Array) -> Array:
        first = np.clip(x[:, 0], -HENON_EDGE, HENON_EDGE)
        return np.column_stack([x[:, 1] + (1 - a * first * first), b * first])

    words = f"chaotic map of Henon, (1 - {a:.3g} x1^2 + x2, {b:.3g} x1) with x1 cut off at +-{HENON_EDGE:g}"
    return Drift("chaotic map", np.array([0.7, 0.7 * b]), 25, f, words)


def ikeda(u: float) -> Drift:
    """Return Ikeda's map ``1 + u z exp(i (0.4 - 6 / (1 + |z|^2)))`` of the complex plane: it contracts and rotates."""

    def f(x: Array) -> Array:
        first, second = x.T
        turn = 0.4 - 6 / (1 + first * first + second * second)
        cos = u * np.cos(turn)
        sin = u * np.sin(turn)
        return np.column_stack([1 + first * cos - second * sin, first * sin + second * cos])

    words = f"chaotic map of Ikeda, 1 + {u:.3g} z exp(i (0.4 - 6 / (1 + |z|^2))) with z = x1 + i x2"
    return Drift("chaotic map", np.array([0.4, 0.6]), 25, f, words)


def coupled_sines(gain: Array, coupling: float) -> Drift:
    """Return coupled maps ``a sin x``, which fold like logistic maps and cannot escape."""
    words = f"chaotic maps a sin x with a = {listed(gain)}"
    words += f", then {coupling:.3g} of the way to the next coordinate" if coupling else ""
    return Drift("chaotic map", 0.6 * gain, 25, lambda x: _mix(gain * np.sin(x), coupling), words)


# Chaotic flows and limit cycles. Each step first clips the state to a box about the attractor, so that noise cannot drive it
# away. Rates are (d, n) -> (d, n), coordinates first, so that each coordinate is contiguous in memory.


def _flow(
    words: str,
    rate: RowFunction,
    scale: ArrayLike,
    box: tuple[ArrayLike, ArrayLike],
    steps: tuple[int, float],
    kind: str = "chaotic flow",
    memory: float = 8.0,
) -> Drift:
    """Return the flow of a differential equation over one step, by classical Runge-Kutta steps of this (number, length).

    The `memory` is the time until the start is forgotten: about ten Lyapunov times, or a few periods of a cycle.
    """
    count, h = steps
    scale = np.asarray(scale)
    lower, upper = (np.broadcast_to(edge, scale.shape) for edge in box)

    def f(x: Array) -> Array:
        y = np.ascontiguousarray(np.clip(x, lower, upper).T)
        return np.ascontiguousarray(runge_kutta(rate, y, h, count).T)

    duration = count * h
    words += (
        f"; {duration:.3g} time units a step, by {count} Runge-Kutta steps from the state cut off to "
        f"{listed(lower)} .. {listed(upper)}"
    )
    return Drift(kind, scale, math.ceil(memory / duration), f, words)


def lorenz(count: int, h: float, rho: float) -> Drift:
    """Return Lorenz's equations of 1963; the box is about three times as wide as the attractor, except below zero in z."""
    return _flow(
        f"chaotic flow of Lorenz (1963), sigma = 10, rho = {rho:.3g}, beta = 8/3",
        lambda x: np.array(
            [10.0 * (x[1] - x[0]), (rho - x[2]) * x[0] - x[1], x[0] * x[1] - (8.0 / 3.0) * x[2]]
        ),
        [8.0, 9.0, 8.5],
        ([-40, -50, -10], [40, 50, 70]),
        (count, h),
    )


def roessler(count: int, h: float, c: float) -> Drift:
    """Return Roessler's equations, a spiral that folds back; the box ends at z = 0, below which z would diverge."""
    return _flow(
        f"chaotic flow of Roessler, a = b = 0.2, c = {c:.3g}",
        lambda x: np.array([-(x[1] + x[2]), x[0] + 0.2 * x[1], 0.2 + x[2] * (x[0] - c)]),
        [5.0, 4.7, 2.5],
        ([-20, -20, 0], [20, 20, 40]),
        (count, h),
        memory=60.0,
    )


def lorenz_ring(count: int, h: float, dim: int, forcing: float) -> Drift:
    """Return Lorenz's equations of 1996 for d variables on a ring."""

    def rate(x: Array) -> Array:
        # two neighbours before and one after, so that slices replace indices modulo d
        ring = np.concatenate([x[-2:], x, x[:1]])
        return (ring[3:] - ring[:-3]) * ring[1:-2] - x + forcing

    words = f"chaotic flow of Lorenz (1996) on a ring of {dim}, forcing {forcing:.3g}"
    return _flow(words, rate, np.full(dim, 3.6), (-20.0, 25.0), (count, h))


def draw_cycle(rng: Generator, dim: int) -> Drift:
    """Draw van der Pol's oscillators coupled by springs; the state has position and velocity of each in turn."""
    spring = draw_number(rng, 0.05, 0.5) if dim > 2 else 0.0
    count = draw_count(rng, 1, 3)
    stiffness = draw_number(rng, 0.5, 2.5)

    def rate(x: Array) -> Array:
        position = x[0::2]
        speed = x[1::2]
        pull = spring * (np.roll(position, 1, axis=0) - position)
        force = (1 - position**2) * speed * stiffness - position + pull
        # position and velocity of each oscillator in turn
        return np.stack([speed, force], axis=1).reshape(x.shape)

    words = f"limit cycle of van der Pol, x'' = {stiffness:.3g} (1 - x^2) x' - x, position and velocity in turn"
    words += f", a spring of {spring:.3g} to the next" if dim > 2 else ""
    scale = [1.4, 1.5] * (dim // 2)
    edge = np.tile([3.0, 6.0], dim // 2)
    return _flow(words, rate, scale, (-edge, edge), (count, 0.12), "limit cycle", 30.0)


# The distribution


def _draw_blocks(rng: Generator, dim: int, low: float, high: float, turning: bool) -> Array:
    """Draw a block-diagonal matrix of rotations and numbers, whose eigenvalues have absolute values from `low` to `high`."""
    matrix = np.zeros((dim, dim))
    i = 0
    while i < dim:
        size = rng.uniform(low, high)
        if i + 1 < dim and (turning or rng.random() < 0.5):
            angle = rng.uniform(0.1, 2.5)
            cos = np.cos(angle)
            sin = np.sin(angle)
            matrix[i : i + 2, i : i + 2] = size * np.array([[cos, -sin], [sin, cos]])
            i += 2
        else:
            matrix[i, i] = size if turning or rng.random() < 0.8 else -size
            i += 1
    return matrix


def _draw_linear(rng: Generator, dim: int) -> Drift:
    basis = rotation(rng, dim) * log_uniform(rng, 0.6, 1.6, dim)
    blocks = _draw_blocks(rng, dim, 0.3, 0.97, turning=False)
    return linear(rounded(basis @ blocks @ np.linalg.inv(basis)))


def _draw_rotating(rng: Generator, dim: int) -> Drift:
    basis = rotation(rng, dim) if dim > 2 else np.eye(2)
    blocks = _draw_blocks(rng, dim, 0.8, 0.98, turning=True)
    return linear(rounded(basis @ blocks @ basis.T), "rotating")


def _draw_map(rng: Generator, dim: int) -> Drift:
    kind = draw_key(rng, {"sines": 1.0} | ({"henon": 1.0, "ikeda": 1.0} if dim == 2 else {}))
    if kind == "henon":
        return henon(draw_number(rng, 1.2, 1.4), 0.3)
    if kind == "ikeda":
        return ikeda(draw_number(rng, 0.7, 0.88))
    coupling = draw_number(rng, 0.02, 0.3) if dim > 1 else 0.0
    return coupled_sines(rounded(rng.uniform(2.6, 3.4, dim)), coupling)


def _draw_flow(rng: Generator, dim: int) -> Drift:
    if dim > 3:
        return lorenz_ring(draw_count(rng, 1, 4), 0.04, dim, draw_number(rng, 8.0, 11.0))
    if rng.random() < 0.6:
        return lorenz(draw_count(rng, 2, 5), 0.04, draw_number(rng, 25.0, 35.0))
    return roessler(draw_count(rng, 2, 5), 0.1, draw_number(rng, 5.0, 9.0))


class DriftKind(NamedTuple):
    """A kind of drift, and how often and in which settings it is drawn."""

    share: float  # relative probability
    dims: tuple[int, ...]  # possible dimensions
    noise_range: tuple[float, float]  # of the noise, in units of the drift's scale
    draw: Callable[[Generator, int], Drift]


# Kinds of drift
DRIFTS = {
    "linear": DriftKind(2.0, tuple(DIMENSIONS), (0.01, 10.0), _draw_linear),
    "rotating": DriftKind(1.5, tuple(DIMENSIONS)[1:], (0.01, 10.0), _draw_rotating),
    "wells": DriftKind(2.0, tuple(DIMENSIONS), (0.03, 2.0), draw_wells),
    "chaotic map": DriftKind(1.5, tuple(DIMENSIONS), (0.01, 0.3), _draw_map),
    "chaotic flow": DriftKind(2.0, tuple(DIMENSIONS)[2:], (0.01, 0.3), _draw_flow),
    "limit cycle": DriftKind(1.0, tuple(DIMENSIONS)[1::2], (0.01, 1.0), draw_cycle),
    "saturating": DriftKind(1.5, tuple(DIMENSIONS), (0.01, 10.0), draw_saturating),
    "population": DriftKind(1.0, tuple(DIMENSIONS), (0.03, 2.0), draw_population),
}


def draw_drift(rng: Generator) -> Drift:
    """Draw a dimension and a drift."""
    dim = draw_key(rng, DIMENSIONS)
    name = draw_key(rng, {name: kind.share for name, kind in DRIFTS.items() if dim in kind.dims})
    return DRIFTS[name].draw(rng, dim)
