"""Which grid makes the posterior of a random model exact, if one of bearable size does."""

from __future__ import annotations

from typing import Any

import numpy as np

from herdfilter._checks import Array
from herdfilter.mixture import GaussianMixture
from herdfilter.models.random.noises import Additive
from herdfilter.models.random.observations import Angle
from herdfilter.models.random.simulation import Simulation, simulated

MOST_POINTS = {1: 3000, 2: 250}
"""Dimension -> largest number of points in each dimension."""

NOISE_CELLS, LIKELIHOOD_CELLS, PRIOR_CELLS = 4.2, 2.0, 2.0
"""Cells to a standard deviation of the transition noise, of an observation's noise in state units, and of the prior."""

STRETCH_CELLS = 0.8
"""Cells, as far apart as the drift puts them at most, to a standard deviation of the transition noise."""


def grid_of(motion: Any, sensing: Any, initial: GaussianMixture, system: Simulation) -> dict[str, Any] | None:
    """Return `lower`, `upper` and `points` of a grid, or None.

    It reaches three spreads beyond the states of two simulations, or to six standard deviations of the prior: one from the
    prior on, and the long run of the system at large, with the parts that hardly a state of the prior comes to. The steepest
    places of drift and observation are looked for among these states, and all along their range.
    """
    dim = motion.dim
    if dim not in MOST_POINTS or not isinstance(motion, Additive) or motion.kind != "additive":
        return None
    if isinstance(sensing, Angle):
        return None
    run = simulated(motion, initial)
    lowest = np.minimum(run.lowest, system.states.min(axis=0))
    highest = np.maximum(run.highest, system.states.max(axis=0))
    prior_sd = np.sqrt(np.diagonal(initial.distinct_covariances[0]))
    noise = motion.transition_covariance(1.0, 1)
    noise_sd = np.sqrt(np.diagonal(noise))
    beyond = 3 * np.maximum(run.spread, noise_sd)
    lower = np.minimum(lowest - beyond, (initial.means - 6 * prior_sd).min(axis=0))
    upper = np.maximum(highest + beyond, (initial.means + 6 * prior_sd).max(axis=0))
    places = np.concatenate([run.states, system.states, np.linspace(lowest, highest, 200)])
    correlation = noise / np.outer(noise_sd, noise_sd)
    spacing = noise_sd * np.sqrt(np.linalg.eigvalsh(correlation)[0]) / NOISE_CELLS
    spacing = np.minimum(spacing, prior_sd / PRIOR_CELLS)
    whiten = np.linalg.inv(np.linalg.cholesky(noise))
    step = 1e-4 * (upper - lower)
    for i in range(dim):
        aside = np.zeros(dim)
        aside[i] = step[i]
        stretch = (motion.drift(places + aside) - motion.drift(places - aside)) @ whiten.T / (2 * step[i])
        steepness = (sensing.scaled(places + aside) - sensing.scaled(places - aside)) / (2 * step[i])
        spacing[i] = min(
            spacing[i],
            1 / (STRETCH_CELLS * _largest(stretch)),
            1 / (LIKELIHOOD_CELLS * _largest(steepness)),
        )
    points = np.ceil((upper - lower) / spacing).astype(int) + 1
    if (points > MOST_POINTS[dim]).any():
        return None
    return {"lower": lower.tolist(), "upper": upper.tolist(), "points": points.tolist()}


def _largest(vectors: Array) -> float:
    return max(float(np.linalg.norm(vectors, axis=1).max()), 1e-300)
