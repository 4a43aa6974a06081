"""Many targets: what a tracker says at every step in one array, and how far that is from the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from herdfilter._checks import Array, as_array, short_repr
from herdfilter.study.targets import Targets
from herdfilter.tracking.metrics import gospa, label_switches, ospa


@dataclass(frozen=True, eq=False)
class SetErrors:
    """How far the estimates of a run are from its targets; over time each (T,).

    Attributes
    ----------
    gospa, ospa : ndarray
        Distances, in the unit of the error.
    localisation, missed, false : ndarray
        Parts of the p-th power of GOSPA.
    cardinality : ndarray
        Number of estimates minus number of targets.
    label_switches : int
        Of the whole run (`herdfilter.tracking.label_switches`).
    order : float
        The order p of GOSPA.
    """

    gospa: Array
    ospa: Array
    localisation: Array
    missed: Array
    false: Array
    cardinality: Array
    label_switches: int
    order: float

    def part(self, name: str) -> float:
        """Mean over time of a part of GOSPA, its p-th root: in the unit of the error."""
        return float(np.mean(getattr(self, name)) ** (1 / self.order))


def set_errors(truth: Array, estimates: Array, targets: Targets, dims: Sequence[int]) -> SetErrors:
    """Measure labelled estimates (T, labels, d) against targets (T, targets, d), NaN where there is none, over `dims`."""
    x, y = truth[..., list(dims)], estimates[..., list(dims)]
    points = [row[~np.isnan(row).any(axis=1)] for row in y]
    labels = [np.flatnonzero(~np.isnan(row).any(axis=1)).tolist() for row in y]
    c, p = targets.cutoff, targets.gospa_order
    steps = [gospa(row, found, c, p) for row, found in zip(x, points, strict=True)]
    return SetErrors(
        np.array([one.distance for one in steps]),
        np.array([ospa(row, found, c, targets.ospa_order) for row, found in zip(x, points, strict=True)]),
        np.array([one.localisation for one in steps]),
        np.array([one.missed for one in steps]),
        np.array([one.false for one in steps]),
        np.array([len(found) for found in points], dtype=float) - count(truth),
        label_switches(x, points, labels, c),
        p,
    )


def count(states: Array) -> Array:
    """Count targets, or estimates, at every step: those of (T, targets, d) that are not NaN; (T,)."""
    return np.isfinite(states).all(axis=2).sum(axis=1).astype(float)


def labelled_estimates(result: Any, steps: int, dim: int) -> Array:
    """Return the estimates of a tracker as one array (T, labels, d), NaN where there is none of a label.

    Labels are in the order in which they appear.

    Parameters
    ----------
    result : object
        What the tracker's ``run`` returned: ``means``, for each step an array (m, d), and ``labels``, for each step m
        labels that are hashable; none twice at a step.
    steps, dim : int
        Number T of steps, and dimension d of a state.

    Raises
    ------
    ValueError
        If these do not fit, or an estimate is not finite.
    """
    for name in ("means", "labels"):
        given = getattr(result, name, None)
        if given is None or len(given) != steps:
            got = "none" if given is None else len(given)
            raise ValueError(f"{name}: expected one entry for each of {steps} steps from a tracker, got {got}")
    places: dict[Any, int] = {}
    entries = []
    for step, (means, labels) in enumerate(zip(result.means, result.labels, strict=True)):
        points = as_array("means", means, (None, dim)) if len(means) else np.empty((0, dim))
        if len(labels) != len(points) or len(set(labels)) < len(labels):
            raise ValueError(
                f"labels: expected {len(points)} different ones at step {step + 1}, got {short_repr(list(labels))}"
            )
        for label, point in zip(labels, points, strict=True):
            entries.append((step, places.setdefault(label, len(places)), point))
    estimates = np.full((steps, len(places), dim), np.nan)
    for step, place, point in entries:
        estimates[step, place] = point
    return estimates
