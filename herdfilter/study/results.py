"""The result of a study: the table of runs, its summary, series over time, and the first run in full."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from herdfilter._checks import Array
from herdfilter._repr import fields_in_line
from herdfilter.study import tasks
from herdfilter.study.columns import error_measures
from herdfilter.study.families import over_models, verdict_over_models
from herdfilter.study.plan import Study
from herdfilter.study.recording import Recording, feed
from herdfilter.study.reference import Reference
from herdfilter.study.run_record import RunRecord
from herdfilter.study.statistics import fitted_slopes
from herdfilter.study.summary import summarise, verdict

if TYPE_CHECKING:
    import pandas as pd


__all__ = ["StudyResult"]

LEAST_COUNTS = 4
"""Smallest number of particle counts for which slopes are fitted: a line through fewer shows little but chance."""


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    """The first run in full at one particle count, for figures; arrays by the names of the filters that did not fail.

    The recording has truth and times but no observations, and the reference only its means. Estimates of many targets are
    (T, labels, d), NaN where a label has none, with the labels in the order of first appearance.
    """

    recording: Recording
    reference: Reference | None
    n_particles: int
    estimates: Mapping[str, Array]  # posterior means (T, d)
    particles: Mapping[str, Array]  # (T, n, d), of the filters that store them
    weights: Mapping[str, Array]  # (T, n)
    # Detections (k, 2) of every scan in the plane drawn; None if they are no positions.
    positions: list[Array] | None

    __repr__ = fields_in_line

    @classmethod
    def of_arrays(
        cls, arrays: Mapping[tuple[str, str], Array], filters: Iterable[str], n_particles: int
    ) -> Trajectory:
        """Make a trajectory of the arrays of `TaskResult.trajectory`, with the filters in this order."""
        # Figures need no observations and no errors of the reference.
        unknown = np.full((len(arrays["", "truth"]), 1), np.nan)
        means = arrays.get(("", "reference"))
        reference = None if means is None else Reference(means, np.nan, unknown)
        positions = None
        if ("", "positions") in arrays:
            positions = np.split(arrays["", "positions"], arrays["", "scan_ends"].astype(int)[:-1])
        estimates, particles, weights = (
            {name: arrays[name, part] for name in filters if (name, part) in arrays}
            for part in ("estimates", "particles", "weights")
        )
        return cls(
            Recording(arrays["", "truth"], unknown, arrays["", "dt"]),
            reference,
            n_particles,
            estimates,
            particles,
            weights,
            positions,
        )


@dataclass(frozen=True, eq=False, repr=False)
class StudyResult:
    """The result of a study, read from its store.

    Attributes
    ----------
    study : Study
    runs : pandas.DataFrame
        One row per filter, particle count and run (see `herdfilter.compare`).
    series : mapping
        (filter, n) -> name -> array (runs, T), read from the store on access; rows of failed runs are NaN, and a filter all
        of whose runs failed is left out.
    trajectory : Trajectory
        The first run.
    description : mapping
        The study as it was planned (`Study.describe`); `study` has the runs that all filters have finished.
    sessions : sequence of mapping
        ``started``, ``executor``, ``versions`` and ``machine`` of every session of computing.

    Examples
    --------
    >>> from herdfilter.study.engine import run_study
    >>> from herdfilter.study.plan import plan_study
    >>> result = run_study(plan_study("linear_gaussian", ["bootstrap"], particles=[20], runs=1))
    >>> len(result.runs), result.series["bootstrap", 20]["truth"].shape
    (1, (1, 100))
    """

    study: Study
    runs: pd.DataFrame
    series: Mapping[tasks.Key, Mapping[str, Array]]
    trajectory: Trajectory
    description: Mapping[str, Any] = field(default_factory=dict)
    sessions: Sequence[Mapping[str, Any]] = ()

    __repr__ = fields_in_line

    @cached_property
    def summary(self) -> pd.DataFrame:
        """One row per filter and particle count (see `summarise`)."""
        return summarise(self.runs)

    @cached_property
    def models(self) -> pd.DataFrame | None:
        """One row per filter and particle count, over the models of a family (see `over_models`); None for one model."""
        return None if self.study.family is None else over_models(self.runs)

    @property
    def verdict(self) -> str:
        """The finding, in one sentence."""
        return verdict(self.summary) if self.models is None else verdict_over_models(self.models)

    @cached_property
    def slopes(self) -> dict[str, pd.DataFrame]:
        """Measure -> fitted slopes (see `fitted_slopes`), first the measure that ranks filters; empty below four counts."""
        if len(self.study.particles) < LEAST_COUNTS:
            return {}
        return {name: fitted_slopes(self.runs, name) for name in error_measures(self.runs)}


READINGS: tuple[Callable[[Array], Array], ...] = (
    lambda z: z,
    lambda z: z[:, ::-1],
    lambda z: z[:, :1] * np.column_stack([np.cos(z[:, 1]), np.sin(z[:, 1])]),
)
"""Meanings of the two entries of a detection: a position in either order, or range and bearing; (k, 2) -> (k, 2)."""

_SAME_POSITION = 1e-9  # relative difference up to which two positions are the same


def positions(model: Any, recording: Recording, plane: Sequence[int]) -> list[Array] | None:
    """Return the detections of every scan as positions (k, 2) in the plane of two dimensions of the state.

    The model's observations of the true states, without noise, decide among the `READINGS`; None if no reading fits.
    """
    scans = recording.scans
    if scans is None:
        return None
    # A user's model may raise anything or lack the function, the plane lie outside the state, and a target never appear:
    # a figure is not worth an error.
    with suppress(Exception):
        states = recording.truth[np.isfinite(recording.truth).all(axis=-1)]
        true_positions = states[:, list(plane)]
        observations = np.asarray(model.observation_mean(states, 1), dtype=np.float64)
        for read in READINGS if observations.shape == true_positions.shape else ():
            # A reading fits if it is off by the same vector everywhere: the sensor's position.
            offsets = true_positions - read(observations)
            if np.ptp(offsets, axis=0).max() <= _SAME_POSITION * np.abs(true_positions).max():
                return [read(scan.reshape(-1, 2)) + offsets.mean(axis=0) for scan in scans]
    return None


def trajectory_arrays(
    study: Study, task: tasks.Task, run: RunRecord
) -> dict[tuple[str, str], Array]:
    """Run a filter once more, and return the arrays of `TaskResult.trajectory`."""
    recording = run.recording
    arrays = {
        ("", "truth"): recording.truth,
        ("", "dt"): np.broadcast_to(recording.dt, len(recording)),
    }
    scans = positions(run.model, recording, study.scenario.plane)
    if scans is not None:
        arrays["", "positions"] = np.concatenate(scans)
        arrays["", "scan_ends"] = np.cumsum([len(scan) for scan in scans])
    if run.reference is not None:
        arrays["", "reference"] = run.reference.means
    with tasks.suppress_errors():  # they were recorded when the filter was measured
        result = feed(study.build_filter(task, run.model), recording, keep_particles=True)
        arrays[task.filter, "estimates"] = replace(run, result=result).means
        for name in () if recording.many else ("particles", "weights"):
            values = getattr(result, name, None)
            if values is not None:
                arrays[task.filter, name] = np.asarray(values, dtype=np.float64)
    return arrays
