"""What comes out of a study: the table of runs, its summary, series over time, and the first run in full."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from herdfilter._checks import Array
from herdfilter._repr import fields_in_line
from herdfilter.study.columns import error_measures
from herdfilter.study.families import over_models, verdict_over_models
from herdfilter.study.recording import Observations, Recording, unpacked
from herdfilter.study.reference import Reference
from herdfilter.study.statistics import fitted_slopes
from herdfilter.study.study import Study
from herdfilter.study.summary import summarise, verdict
from herdfilter.study.tasks import Key

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["StudyResult", "Trace", "Trajectory"]


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    """The first run in full at one particle count, for looking at.

    Attributes
    ----------
    recording : Recording
    reference : Reference or None
    n_particles : int
    estimates : dict
        Filter name -> posterior means (T, d), of the filters that did not fail. Of many targets (T, labels, d), NaN where
        there is no estimate of a label; labels are in the order of their first appearance.
    particles : dict
        Filter name -> particles (T, n, d), of those that keep them.
    weights : dict
        Filter name -> their weights (T, n), of those that keep them.
    positions : list of ndarray, each (k, 2), or None
        Detections of every scan in the plane that is drawn; None where they do not lie in a plane.

    Examples
    --------
    >>> from herdfilter.study.engine import run_study
    >>> from herdfilter.study.study import plan_study
    >>> result = run_study(plan_study("linear_gaussian", ["bootstrap"], particles=[20], runs=1))
    >>> trajectory = result.trajectory
    >>> trajectory.estimates["bootstrap"].shape, trajectory.particles["bootstrap"].shape
    ((100, 2), (100, 20, 2))
    """

    recording: Recording
    reference: Reference | None
    n_particles: int
    estimates: Mapping[str, Array]
    particles: Mapping[str, Array]
    weights: Mapping[str, Array] = field(default_factory=dict)
    positions: list[Array] | None = None

    __repr__ = fields_in_line

    @classmethod
    def of_arrays(cls, arrays: Mapping[tuple[str, str], Array], filters: Iterable[str], n_particles: int) -> Trajectory:
        """Put together what was kept (`tasks.Outcome.shown`): (filter, name) -> array, in the order of the filters."""
        common = {what: array for (name, what), array in arrays.items() if not name}
        dt = common["dt"]
        if "detections" in common:
            observations: Observations = unpacked(common["detections"], common["scan_sizes"])
        else:
            observations = common["observations"]
        recording = Recording(common["truth"], observations, float(dt) if dt.ndim == 0 else dt, common.get("controls"))
        reference = None
        if "reference" in common:
            likelihood = float(common["reference_log_likelihood"])
            reference = Reference(common["reference"], likelihood, common["reference_error"])
        names = list(filters)
        estimates, particles, weights = (
            {name: arrays[name, what] for name in names if (name, what) in arrays}
            for what in ("estimates", "particles", "weights")
        )
        positions = unpacked(common["positions"], common["scan_sizes"]) if "positions" in common else None
        return cls(recording, reference, n_particles, estimates, particles, weights, positions)

    @classmethod
    def unknown(cls, steps: int, dt: float, n_particles: int) -> Trajectory:
        """Return what is known of a first run that no filter has survived: how long it was."""
        nothing = np.full((steps, 1), np.nan)
        return cls(Recording(nothing, nothing, dt), None, n_particles, {}, {})


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """Median over runs of the error at every step (T,), against truth and reference (None without one).

    Of many targets the error against the truth is the GOSPA distance.

    Examples
    --------
    >>> from herdfilter.study.results import Trace
    >>> trace = Trace(truth=np.array([0.9, 1.1]), reference=np.array([0.2, 0.1]))
    >>> trace.reference.tolist()
    [0.2, 0.1]
    """

    truth: Array
    reference: Array | None

    __repr__ = fields_in_line


@dataclass(frozen=True, eq=False, repr=False)
class StudyResult:
    """Outcome of a study, read from its store.

    Attributes
    ----------
    study : Study
    runs : pandas.DataFrame
        One row per filter, particle count and run (see `herdfilter.compare`).
    series : mapping
        (filter, n) -> name -> array (runs, T) in the order of the runs; NaN in the rows of those that failed. It is read
        when it is asked for, one filter and particle count at a time; there is none where every run failed.
    trajectory : Trajectory
        The first run.
    description : mapping
        What was planned (`Study.describe`); `study` has the runs that all filters have finished.
    sessions : sequence of mapping
        ``started``, ``executor``, ``versions`` and ``machine`` of every time that somebody worked on it.

    Examples
    --------
    >>> from herdfilter.study.engine import run_study
    >>> from herdfilter.study.study import plan_study
    >>> result = run_study(plan_study("linear_gaussian", ["bootstrap"], particles=[20], runs=1))
    >>> len(result.runs), result.series["bootstrap", 20]["truth"].shape
    (1, (1, 100))
    """

    study: Study
    runs: pd.DataFrame
    series: Mapping[Key, Mapping[str, Array]]
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
        """One row per filter and particle count, over the models of a family (see `over_models`); None of one model."""
        return None if self.study.family is None else over_models(self.runs)

    @property
    def verdict(self) -> str:
        """What was found, in one sentence."""
        return verdict(self.summary) if self.models is None else verdict_over_models(self.models)

    @cached_property
    def slopes(self) -> dict[str, pd.DataFrame]:
        """Measure -> fitted slopes (see `fitted_slopes`); the measure that ranks filters comes first."""
        return {measure: fitted_slopes(self.runs, measure) for measure in error_measures(self.runs)}

    @cached_property
    def traces(self) -> dict[Key, Trace]:
        """(filter, n) -> `Trace`, over the runs that did not fail."""
        return {key: _trace(series) for key, series in self.series.items()}


def _trace(series: Mapping[str, Array]) -> Trace:
    """Median over the runs; a reference counts only if some run has it at every step."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # steps without any reference: NaN
        if "gospa" in series:
            return Trace(np.nanmedian(series["gospa"], axis=0), None)
        medians = {name: np.sqrt(np.nanmedian(series[name], axis=0)) for name in ("truth", "reference") if name in series}
    reference = medians.get("reference")
    return Trace(medians["truth"], reference if reference is not None and np.isfinite(reference).all() else None)
