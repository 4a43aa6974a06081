"""The distribution of observations: what is seen of a system that is known from a simulation of it, how well, and when."""

from __future__ import annotations

from typing import Any

import numpy as np

from herdfilter._checks import Array
from herdfilter.angles import moments, wrap_angles
from herdfilter.mixture import GaussianMixture
from herdfilter.models.random import observations, views
from herdfilter.models.random._numbers import log_uniform, rounded
from herdfilter.models.random.simulation import Simulation
from herdfilter.models.random.systems import Rng, choose
from herdfilter.models.random.views import View

VIEWS = {
    "linear": 0.22,
    "partial": 0.18,
    "range": 0.17,
    "bearing": 0.1,
    "square": 0.13,
    "saturating": 0.1,
    "counts": 0.1,
}
"""What is seen -> probability; in one dimension there is no bearing, and no part of the coordinates."""

HEAVY_TAILED, SHARP, MISSING = 0.15, 0.12, 0.2
"""Probabilities of heavy-tailed noise and of sharp noise, of all but counts, and of long stretches without observation."""

NOISE = (0.03, 3.0)
"""Noise of an observation in units of the spread of what is observed: smallest and largest."""

SHARPNESS = 0.01
"""Noise of a sharp entry, in units of its predicted spread."""

MULTIMODAL = 0.15
"""Probability of a prior of several far Gaussians."""

LEAST_SHARE = NOISE[0]
"""Least product of those ratios of an observation that are below one: about the share of the particles that it leaves."""


def draw_view(rng: Rng, system: Simulation) -> View:
    """Draw what is seen, in units of the system's own spread."""
    dim = system.states.shape[1]
    kind = choose(rng, {k: share for k, share in VIEWS.items() if dim > 1 or k not in ("bearing", "partial")})
    if kind == "partial":
        most = min(3, dim - 1)
        dims = rng.permutation(dim)[: int(rng.integers(1, most + 1))]
        return views.Partial(tuple(int(i) for i in np.sort(dims)))
    if kind in ("range", "bearing"):
        places = 2 if kind == "bearing" else min(dim, int(rng.integers(1, 4)))
        matrix, offset = _standardised(np.eye(dim)[np.sort(rng.permutation(dim)[:places])], system)
        count = int(rng.integers(1, 4)) if kind == "range" else int(rng.integers(1, 3))
        sensors = rng.standard_normal((count, places))
        away = rng.uniform(1.5, 4.0, (count, 1)) if kind == "bearing" else rng.uniform(0.3, 4.0, (count, 1))
        sensors *= away / np.linalg.norm(sensors, axis=1, keepdims=True)
        return (views.Range if kind == "range" else views.Bearing)(matrix, offset, rounded(sensors))
    rows = int(rng.integers(1, min(dim, 3) + 1))
    directions = rng.standard_normal((rows, dim))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    if kind == "square":
        return views.Square(*_standardised(directions, system, 0.3 * rng.standard_normal(rows)))
    if kind == "saturating":
        gain = rng.uniform(0.7, 3.0, (rows, 1))
        return views.Saturating(*_standardised(gain * directions, system, 0.3 * rng.standard_normal(rows)))
    if kind == "counts":
        gain, level = rng.uniform(0.4, 1.5, (rows, 1)), np.log(log_uniform(rng, 0.5, 30.0, rows))
        return views.Intensity(*_standardised(gain * directions, system, level))
    return views.Linear(*_standardised(directions, system))


def _standardised(directions: Array, system: Simulation, offset: Array | float = 0.0) -> tuple[Array, Array]:
    """Matrix and offset of linear combinations of the coordinates in units of their spread about their centre."""
    matrix = rounded(directions / system.spread)
    return matrix, rounded(offset - matrix @ system.centre)


def draw_schedule(rng: Rng) -> observations.Schedule:
    """Draw the steps with an observation: all, or a few every so often."""
    if rng.random() >= MISSING:
        return observations.Schedule()
    period = int(rng.integers(6, 26))
    length = int(rng.integers(1, max(2, period // 5) + 1))
    return observations.Schedule(period, length, int(rng.integers(1, period - length + 2)))


def draw_observation(rng: Rng, system: Simulation) -> tuple[Any, tuple[str, ...]]:
    """Draw an observation, and return it with what is special about it."""
    view, schedule, special = draw_view(rng, system), draw_schedule(rng), rng.random(2)
    missing = ("missing",) if schedule.period > 1 else ()
    seen = view(system.states)
    size = seen.shape[1]
    if isinstance(view, views.Intensity):
        return observations.Counts(view, size, schedule), missing
    angle = isinstance(view, views.Bearing)
    circular = tuple(range(size)) if angle else ()
    spread = np.sqrt(np.diagonal(moments(seen, np.full(len(seen), 1 / len(seen)), circular)[1]))
    ratio = log_uniform(rng, *NOISE, size)
    sharp = special[0] < SHARP
    if sharp:
        apart = wrap_angles(view(system.one) - view(system.other), circular)
        moved = np.sqrt((apart**2).mean(axis=0) / 2)
        ratio = np.maximum(ratio, 1.0)
        ratio[0] = SHARPNESS * max(moved[0] / spread[0], 0.2)
    else:
        ratio = _bearable(ratio)
    sd = np.minimum(rounded(ratio * spread), 0.5 if angle else np.inf)
    labels = (("sharp",) if sharp else ()) + missing
    if angle:
        return observations.Angle(view, sd, schedule), labels
    if not sharp and special[1] < HEAVY_TAILED:
        freedom = float(rounded(rng.uniform(2.5, 6.0)))
        return observations.HeavyTailed(view, sd, schedule, freedom), ("heavy-tailed", *labels)
    return observations.Gaussian(view, sd, schedule), labels


def _bearable(ratio: Array) -> Array:
    """Raise the small ones of these ratios to a common power, such that together they leave enough of the particles."""
    small = np.minimum(ratio, 1.0)
    share = np.log(small).sum()
    if share >= np.log(LEAST_SHARE):
        return ratio
    return np.where(ratio < 1, small ** (np.log(LEAST_SHARE) / share), ratio)


def draw_prior(rng: Rng, system: Simulation) -> GaussianMixture:
    """Draw the distribution of the state at step 0: one Gaussian among the states of the system, or several far apart."""
    dim = system.states.shape[1]
    count = int(rng.integers(2, 5)) if rng.random() < MULTIMODAL else 1
    if count == 1:
        width = log_uniform(rng, 0.1, 1.0)
        offsets = 0.7 * rng.standard_normal((1, dim))
    else:
        width = log_uniform(rng, 0.1, 0.3)
        offsets = rng.standard_normal((count, dim))
        offsets *= rng.uniform(1.5, 3.0, (count, 1)) / np.linalg.norm(offsets, axis=1, keepdims=True)
    weights = rounded(rng.uniform(0.5, 1.5, count)) if count > 1 else np.ones(1)
    means = rounded(system.centre + offsets * system.spread)
    return GaussianMixture(weights, means, np.diag(rounded(width * system.spread) ** 2))
