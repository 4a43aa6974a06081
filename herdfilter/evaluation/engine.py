"""The Monte Carlo engine: a task is one run, one recording given to every filter at every particle count."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from herdfilter._checks import Array, as_count
from herdfilter.evaluation.measures import SCALARS, measure
from herdfilter.evaluation.recording import Recording, record
from herdfilter.evaluation.reference import Reference, compute_reference, snapshot_steps
from herdfilter.evaluation.study import Key, Study, StudyResult, Trace, Trajectory
from herdfilter.evaluation.watch import watch

_WARM_UP_STEPS = 20


def run_study(study: Study, workers: int = 1, progress: bool = False) -> StudyResult:
    """Perform all runs of a study.

    Parameters
    ----------
    study : Study
    workers : int
        Processes. Each uses one thread, so that they do not fight and results do not depend on their number.
    progress : bool
        Whether to draw a progress bar on the error output, if that is a terminal.
    """
    import joblib
    import pandas as pd

    rows: list[dict[str, Any]] = []
    squared: dict[Key, list[Array]] = {key: [] for key in study.keys}
    trajectory: Trajectory | None = None
    with joblib.parallel_config("loky", inner_max_num_threads=1):
        outcomes = joblib.Parallel(
            n_jobs=min(as_count("workers", workers), study.runs), return_as="generator_unordered"
        )(joblib.delayed(_run)(study, run) for run in range(study.runs))
        for outcome in _with_bar(outcomes, study) if progress else outcomes:
            trajectory = trajectory or outcome.trajectory
            for result in outcome.results:
                rows.append(result.row)
                if result.squared is not None:
                    squared[result.key].append(result.squared)
    assert trajectory is not None  # run 0 brings it
    order = {key: place for place, key in enumerate(study.keys)}
    rows.sort(key=lambda row: (order[row["filter"], row["n_particles"]], row["run"]))
    traces = {key: _trace(errors) for key, errors in squared.items() if errors}
    return StudyResult(study, pd.DataFrame(rows), traces, trajectory)


@dataclass(frozen=True, eq=False)
class _Result:
    """One filter in one run: its row of the table, and squared errors (2, T) against truth and reference."""

    key: Key
    row: dict[str, Any]
    squared: Array | None = None


@dataclass(frozen=True, eq=False)
class _Outcome:
    """What a task sends back."""

    results: list[_Result]
    trajectory: Trajectory | None


def _trace(squared: list[Array]) -> Trace:
    """Median over the runs; a reference counts only if some run has it at every step."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # steps without any reference: NaN
        truth, reference = np.sqrt(np.nanmedian(squared, axis=0))
    return Trace(truth, reference if np.isfinite(reference).all() else None)


def _run(study: Study, run: int) -> _Outcome:
    """Perform one run."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(1):
        model = study.build_model()
        recording = record(study.scenario, model, study.data, study.recording_rng(run))
        task = _Task(study, run, model, recording, _reference(study, run, model, recording))
        task.warm_up()
        return _Outcome([task.measure(key) for key in study.keys], task.trajectory() if run == 0 else None)


def _reference(study: Study, run: int, model: Any, recording: Recording) -> Reference | None:
    """Return the reference of a run; none where even its many particles lose the target."""
    from herdfilter import DegenerateWeightsError

    try:
        return compute_reference(study.scenario, model, recording, study.reference_rng(run))
    except DegenerateWeightsError:
        return None


_warm: set[str] = set()
"""Studies whose filters this process has compiled."""


@dataclass(frozen=True, eq=False)
class _Task:
    """One run, ready for the filters."""

    study: Study
    run: int
    model: Any
    recording: Recording
    reference: Reference | None

    def warm_up(self) -> None:
        """Run every filter over a few steps, once in a process, so that compilation is not timed."""
        if self.study.token in _warm:
            return
        _warm.add(self.study.token)
        start = self.recording.first(_WARM_UP_STEPS)
        for key in self.study.keys:
            with suppress(
                Exception
            ):  # what fails here fails again when it is measured, and is recorded there
                _feed(self._build(key), start)

    def measure(self, key: Key) -> _Result:
        """Run one filter, timed. A failure becomes part of its row."""
        row = {
            "scenario": self.study.scenario.name,
            "filter": key[0],
            "n_particles": key[1],
            "run": self.run,
            "seed": self.study.seed,
            "reference": "" if self.reference is None else (self.study.scenario.reference or {})["type"],
            "reference_sd": self._reference_sd(),
        }
        try:
            particle_filter = self._build(key)
            watched = watch(particle_filter, self.recording, self._snapshots())
            ms_per_step = 1e3 * watched.seconds / len(self.recording)
            measured = measure(
                self.study,
                self.model,
                self.recording,
                self.reference,
                watched.result,
                ms_per_step,
                watched,
            )
        except Exception as error:
            text = " ".join(f"{type(error).__name__}: {error}".split())
            return _Result(key, row | dict.fromkeys(SCALARS, np.nan) | {"diverged": True, "error": text})
        truth = measured.series["truth"]
        squared = np.stack([truth, measured.series.get("reference", np.full_like(truth, np.nan))])
        diverged = bool(measured.scalars["diverged"])
        return _Result(key, row | measured.scalars | {"diverged": diverged, "error": ""}, squared)

    def trajectory(self) -> Trajectory:
        """Run every filter once more at the middle particle count, and keep what it did."""
        n = self.study.particles[len(self.study.particles) // 2]
        estimates, particles = {}, {}
        for name in self.study.filters:
            with suppress(Exception):  # failed when it was measured, too
                result = _feed(self._build((name, n)), self.recording, keep_particles=True)
                estimates[name] = np.asarray(result.means)
                if getattr(result, "particles", None) is not None:
                    particles[name] = np.asarray(result.particles)
        return Trajectory(self.recording, self.reference, n, estimates, particles)

    def _build(self, key: Key) -> Any:
        return self.study.filters[key[0]](self.model, key[1], self.study.filter_rng(self.run, key))

    def _snapshots(self) -> list[int]:
        """Return the steps at which particles are compared with the exact posterior, where there is one."""
        known = self.reference is not None and self.reference.posteriors
        return snapshot_steps(len(self.recording)) if known else []

    def _reference_sd(self) -> float:
        return np.nan if self.reference is None else self.reference.sd(self.study.dims(self.model))


def _feed(particle_filter: Any, recording: Recording, keep_particles: bool = False) -> Any:
    """Run a filter over a recording; particles are asked for where the filter can keep them."""
    can_keep = "keep_particles" in inspect.signature(particle_filter.run).parameters
    options = {"keep_particles": True} if keep_particles and can_keep else {}
    return particle_filter.run(
        recording.observations, dt=recording.dt, controls=recording.controls, **options
    )


def _with_bar(outcomes: Iterable[_Outcome], study: Study) -> Iterator[_Outcome]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (
        TextColumn(study.scenario.name),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs, left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        yield from bar.track(outcomes, total=study.runs)
