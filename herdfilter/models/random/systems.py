"""The distribution of drifts and of transition noises."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from herdfilter._checks import Array
from herdfilter.models.random import drifts, flows, maps, noises
from herdfilter.models.random._numbers import log_uniform, rotation, rounded
from herdfilter.models.random.drifts import Drift

Rng = np.random.Generator

DIMENSIONS = {1: 0.15, 2: 0.25, 3: 0.2, 4: 0.15, 5: 0.0625, 6: 0.0625, 7: 0.0625, 8: 0.0625}
"""Dimension -> probability."""


def choose(rng: Rng, shares: Mapping[Any, float]) -> Any:
    """Draw a key with a probability in proportion to its value."""
    keys, values = list(shares), np.array(list(shares.values()))
    return keys[int(np.searchsorted(np.cumsum(values), rng.random() * values.sum(), side="right"))]


def _blocks(rng: Rng, dim: int, low: float, high: float, turning: bool) -> Array:
    """Block-diagonal matrix with eigenvalues of sizes from `low` to `high`, in pairs that turn or each by itself."""
    matrix, i = np.zeros((dim, dim)), 0
    while i < dim:
        size = rng.uniform(low, high)
        if i + 1 < dim and (turning or rng.random() < 0.5):
            angle = rng.uniform(0.1, 2.5)
            matrix[i : i + 2, i : i + 2] = size * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
            i += 2
        else:
            matrix[i, i] = size if turning or rng.random() < 0.8 else -size
            i += 1
    return matrix


def _linear(rng: Rng, dim: int) -> Drift:
    basis = rotation(rng, dim) * log_uniform(rng, 0.6, 1.6, dim)
    blocks = _blocks(rng, dim, 0.3, 0.97, turning=False)
    return drifts.Linear(rounded(basis @ blocks @ np.linalg.inv(basis)))


def _rotating(rng: Rng, dim: int) -> Drift:
    basis = rotation(rng, dim) if dim > 2 else np.eye(2)
    return drifts.Rotating(rounded(basis @ _blocks(rng, dim, 0.8, 0.98, turning=True) @ basis.T))


def _wells(rng: Rng, dim: int) -> Drift:
    wells = int(rng.integers(1, dim + 1))
    return drifts.Wells(
        rounded(rng.uniform(0.5, 2.0, wells)),
        float(rounded(rng.uniform(0.3, 1.5))),
        rounded(rng.uniform(0.3, 0.95, dim - wells)),
        float(rounded(rng.uniform(0.05, 0.3))) if dim > 1 else 0.0,
    )


def _saturating(rng: Rng, dim: int) -> Drift:
    inward = rng.standard_normal((dim, dim)) * rng.uniform(0.8, 3.0) / np.sqrt(dim)
    return drifts.Saturating(
        float(rounded(rng.uniform(0.0, 0.7))),
        rounded(rotation(rng, dim) * rng.uniform(0.7, 1.5)),
        rounded(inward),
        rounded(0.5 * rng.standard_normal(dim)),
    )


def _population(rng: Rng, dim: int) -> Drift:
    competition = rng.uniform(0.0, 0.8 / dim, (dim, dim))
    np.fill_diagonal(competition, 1.0)
    return drifts.Population(rounded(rng.uniform(0.5, 2.6, dim)), rounded(competition))


def _map(rng: Rng, dim: int) -> Drift:
    kind = choose(rng, {"sines": 1.0, "henon": 1.0, "ikeda": 1.0} if dim == 2 else {"sines": 1.0})
    if kind == "henon":
        return maps.Henon(float(rounded(rng.uniform(1.2, 1.4))), 0.3)
    if kind == "ikeda":
        return maps.Ikeda(float(rounded(rng.uniform(0.7, 0.88))))
    coupling = float(rounded(rng.uniform(0.02, 0.3))) if dim > 1 else 0.0
    return maps.CoupledSines(rounded(rng.uniform(2.6, 3.4, dim)), coupling)


def _flow(rng: Rng, dim: int) -> Drift:
    if dim > 3:
        return flows.LorenzRing(int(rng.integers(1, 5)), 0.04, dim, float(rounded(rng.uniform(8.0, 11.0))))
    if rng.random() < 0.6:
        return flows.Lorenz(int(rng.integers(2, 6)), 0.04, float(rounded(rng.uniform(25.0, 35.0))))
    return flows.Roessler(int(rng.integers(2, 6)), 0.1, float(rounded(rng.uniform(5.0, 9.0))))


def _cycle(rng: Rng, dim: int) -> Drift:
    spring = float(rounded(rng.uniform(0.05, 0.5))) if dim > 2 else 0.0
    return flows.VanDerPol(
        int(rng.integers(1, 4)), 0.12, dim=dim, stiffness=float(rounded(rng.uniform(0.5, 2.5))), spring=spring
    )


class DriftKind(NamedTuple):
    """A kind of drift: its share among those of a dimension, the dimensions in which it exists, and how one is drawn."""

    share: float
    dims: tuple[int, ...]
    draw: Callable[[Rng, int], Drift]


_ALL = tuple(DIMENSIONS)

DRIFTS = {
    "linear": DriftKind(2.0, _ALL, _linear),
    "rotating": DriftKind(1.5, _ALL[1:], _rotating),
    "wells": DriftKind(2.0, _ALL, _wells),
    "chaotic map": DriftKind(1.5, _ALL, _map),
    "chaotic flow": DriftKind(2.0, _ALL[2:], _flow),
    "limit cycle": DriftKind(1.0, _ALL[1::2], _cycle),
    "saturating": DriftKind(1.5, _ALL, _saturating),
    "population": DriftKind(1.0, _ALL, _population),
}
"""Kinds of drift."""


def draw_drift(rng: Rng) -> Drift:
    """Draw a dimension and a drift."""
    dim = choose(rng, DIMENSIONS)
    kind = choose(rng, {name: kind.share for name, kind in DRIFTS.items() if dim in kind.dims})
    return DRIFTS[kind].draw(rng, dim)


NOISES = {"additive": 0.6, "rank-deficient": 0.12, "multiplicative": 0.2, "only simulable": 0.08}
"""Kind of transition noise -> probability; in one dimension, noise of deficient rank is additive."""


def draw_noise(rng: Rng, drift: Drift) -> Any:
    """Draw the noise of a drift and return the transition."""
    dim, kind = drift.dim, choose(rng, NOISES)
    size = float(log_uniform(rng, *drift.noise_range)) * drift.scale
    if kind == "rank-deficient" and dim > 1:
        rank = int(rng.integers(1, dim))
        shape = rotation(rng, dim)[:, :rank] * np.sqrt(dim / rank)
    elif rng.random() < 0.5:
        shape = np.eye(dim)
    else:
        shape = np.linalg.cholesky(_correlation(rng, dim))
    factor = rounded(size[:, None] * shape)
    if kind == "multiplicative":
        if rng.random() < 0.4:
            return noises.RandomScale(drift, factor, float(rounded(rng.uniform(0.3, 0.8))))
        direction = rng.standard_normal(dim)
        direction *= rng.uniform(0.7, 1.5) / np.linalg.norm(direction) / drift.scale
        strength, offset = rounded([rng.uniform(0.4, 1.2), 0.5 * rng.standard_normal()])
        return noises.StateDependent(drift, factor, float(strength), rounded(direction), float(offset))
    if kind == "only simulable":
        if rng.random() < 0.5:
            return noises.Simulated(drift, factor, freedom=float(rounded(rng.uniform(3.0, 6.0))))
        share, times = rounded([rng.uniform(0.02, 0.1), rng.uniform(3.0, 8.0)])
        return noises.Simulated(drift, factor, jump_share=float(share), jump_size=float(times))
    return noises.Additive(drift, factor)


def _correlation(rng: Rng, dim: int) -> Array:
    """Draw a correlation matrix with no correlation near one."""
    loadings = rng.standard_normal((dim, dim)) * 0.7 / np.sqrt(dim)
    covariance = loadings @ loadings.T + 0.5 * np.eye(dim)
    sd = np.sqrt(np.diagonal(covariance))
    return covariance / np.outer(sd, sd)
