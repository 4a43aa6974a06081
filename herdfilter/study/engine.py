"""The Monte Carlo engine: a task feeds one filter, at one particle count, with the recording of one run, and measures it."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from herdfilter._checks import as_positive, check_count, check_flags, short_repr
from herdfilter.catalogue.specifications import Filters, FilterSpec
from herdfilter.filters.progress import Counter, live_line, stage
from herdfilter.filters.results import DegenerateWeightsError
from herdfilter.study.columns import measured, series_of
from herdfilter.study.families import kind_of
from herdfilter.study.plan import Study, plan_study
from herdfilter.study.recording import Recording, record
from herdfilter.study.reference import Reference, compute_reference, snapshot_steps
from herdfilter.study.results import StudyResult, feed, shown_of
from herdfilter.study.run_record import RunRecord, watch
from herdfilter.study.scenario import Scenario
from herdfilter.study.tasks import Key, Stopped, Task, TaskResult, failed_by, stopped_by, summary_repr, unless_stopped
from herdfilter.study.workers import BATCH_SECONDS, check_scheduler, distribute, make_executor

if TYPE_CHECKING:
    import pandas as pd


__all__ = ["run_study"]

_log = logging.getLogger(__name__)

_WARM_UP_STEPS = 20


def run_study(
    study: Study,
    workers: int = 1,
    progress: bool = False,
    store: str | Path | None = None,
    resume: bool = False,
    scheduler: str | None = None,
    run_timeout: float | None = None,
) -> StudyResult:
    """Perform all runs of a study.

    Parameters
    ----------
    study : Study
    workers : int
        Processes on this machine. Each uses one thread, so that they do not fight and results do not depend on their number.
    progress : bool
        Whether to tell on the error output how far it is: a bar on a terminal, else a line every few seconds.
    store : str or Path, optional
        SQLite file that takes every finished run at once (see `herdfilter.study.store`); in memory unless given.
    resume : bool
        Whether to continue a study that is in the store, if there is one.
    scheduler : str, optional
        ``"local"``, ``"dask"`` (a Dask cluster of `workers` processes on this machine), or the address of a Dask
        scheduler such as ``"tcp://host:8786"``, whose workers need herdfilter and the files that the scenario names.
    run_timeout : float, optional
        Seconds that a filter may take for a run, and the recording and the reference of a run; what takes longer is a run
        that failed. The work is done by processes that can be killed then, even for one worker.

    Raises
    ------
    StoreError
        If the store cannot be used (see `open_store`); what was finished before is kept.
    ImportError
        If a cluster is asked for and distributed is not installed.
    ConnectionError
        If the cluster cannot be reached, or is lost.

    Examples
    --------
    >>> from herdfilter.study.engine import run_study
    >>> from herdfilter.study.plan import plan_study
    >>> result = run_study(plan_study("linear_gaussian", ["bootstrap"], particles=[20], runs=1))
    >>> result.runs["rmse"].notna().tolist()
    [True]
    """
    from herdfilter.study.store import open_store

    scheduler, workers = check_scheduler(scheduler), check_count("workers", workers)
    run_timeout = None if run_timeout is None else as_positive("run_timeout", run_timeout)
    if resume and store is None:
        raise ValueError("resume: expected a store to continue, got none")
    with stopped_by("SIGINT"), open_store(None if store is None else Path(store), study, resume) as kept:
        finished = kept.finished()
        tasks = [task for task in study.tasks if task not in finished]
        if tasks:
            kept.begin(scheduler)
            work, places = partial(perform, study), min(workers, len(tasks))
            executor = make_executor(work, scheduler, places, run_timeout)
            _log.info("%s: %d runs to make, %d in the store", study.scenario.name, len(tasks), len(finished))
            try:
                if "://" not in scheduler and (progress or workers > 1) and run_timeout is None:
                    _compile(study, progress)
                counter = Counter(study.scenario.name, len(finished), len(tasks))
                with live_line(counter, progress):
                    for outcomes in distribute(tasks, executor):
                        kept.add(outcomes)
                        failed = [one for one in outcomes if one.row["error"] != ""]
                        counter.add(len(outcomes), len(failed))
                        for one in failed:
                            task = one.task
                            _log.warning(
                                "%s, n = %d, run %d failed: %s",
                                task.filter,
                                task.n_particles,
                                task.run,
                                one.row["error"],
                            )
            finally:
                executor.close()
        return kept.result()


def _compile(study: Study, visible: bool) -> None:
    """Run every filter of this package over a few steps, so that the workers find its compiled functions on the disk.

    Filters of the caller are left to the workers: whatever they do, it is a worker that it happens to.
    """
    n = min(study.particles)
    with unless_stopped():
        model = study.build_model()
        recording = record(study.scenario, model, study.data, study.recording_rng(0))
        for name, factory in study.filters.items():
            if isinstance(factory, FilterSpec):
                with stage(f"compiling {name}, once", visible), unless_stopped():
                    filter_ = study.build_filter(Task(name, n, 0), model)
                    feed(filter_, recording.first(_WARM_UP_STEPS))


@lru_cache(maxsize=1)
def _thread_pools(modules: int) -> Any:
    """Return what limits the threads of the libraries that are loaded; looked for again when there are more modules."""
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


def perform(
    study: Study,
    tasks: Sequence[Task],
    seconds: float = BATCH_SECONDS,
    *,
    stage: Callable[[str], None] = lambda name: None,
) -> list[TaskResult]:
    """Do tasks in turn until the time is over, at least one; return the outcomes. Tell which stage of a task begins."""
    _local.stage = stage
    outcomes: list[TaskResult] = []
    with _thread_pools(len(sys.modules)).limit(limits=1):
        end = time.perf_counter() + seconds
        for task in tasks:
            outcomes.append(_perform(study, task))
            if time.perf_counter() > end:
                break
    return outcomes


@dataclass(frozen=True, eq=False)
class _Run:
    """One run, ready for the filters; or the row of all its tasks, if it could not be made ready."""

    model: Any
    recording: Recording
    reference: Reference | None
    failure: dict[str, Any] = field(default_factory=dict)


class _Local(threading.local):
    """The run that this thread has at hand."""

    at_hand: tuple[str, int] | None = None
    run: _Run
    stage: Callable[[str], None]


_local = _Local()
_warm: set[tuple[str, int, Key]] = set()
"""Studies, seeds of models and filters that this process has compiled."""


def _perform(study: Study, task: Task) -> TaskResult:
    start = time.perf_counter()
    preparation = 0.0
    if _local.at_hand != (study.token, task.run):
        _local.stage("making recording and reference of the run")
        _local.run = _prepare(study, task.run)
        _local.at_hand = (study.token, task.run)
        preparation = time.perf_counter() - start
    run = _local.run
    if run.failure:
        return TaskResult(task, run.failure, preparation=preparation)
    _local.stage("the filter")
    _warm_up(study, task, run)
    _local.stage("the filter")
    start = time.perf_counter()
    evidence = RunRecord(study.scenario, run.model, run.recording, run.reference)
    known = {"reference": "" if run.reference is None else (study.scenario.reference or {})["type"]}
    known |= measured(evidence, of_reference=True)
    if study.family is not None:
        known["kind"] = kind_of(run.model)
    try:
        evidence = _observe(study.build_filter(task, run.model), evidence)
        row = known | {"error": "", "traceback": ""} | measured(evidence)
        row["diverged"], series = bool(row["diverged"]), series_of(evidence)
    except Stopped:
        raise
    except BaseException as error:  # a model may raise SystemExit, too
        row, series = failed_by(error) | known, {}
    shown = {}
    if task.run == 0 and task.n_particles == study.shown_particles:
        _local.stage("the filter")
        shown = shown_of(study, task, run.model, run.recording, run.reference)
    return TaskResult(task, row, series, shown, time.perf_counter() - start, preparation)


def _observe(filter_: Any, known: RunRecord) -> RunRecord:
    """Run a filter, and return what is known of it then."""
    exact = known.reference is not None and known.reference.posteriors
    watched = watch(filter_, known.recording, snapshot_steps(len(known.recording)) if exact else ())
    return replace(known, result=watched.result, seconds=watched.seconds, watched=watched)


def _prepare(study: Study, run: int) -> _Run:
    """Make the recording of a run and its reference; there is none where even its many particles lose the target.

    What goes wrong with the first run is raised, because it goes wrong with all; later it is a failure of that run, and in
    a family of models always.
    """
    reference = None
    try:
        model = study.build_model(run)
        recording = record(study.scenario, model, study.data, study.recording_rng(run))
        with suppress(DegenerateWeightsError):
            reference = compute_reference(study.scenario, model, recording, study.reference_rng(run))
    except Stopped:
        raise
    except BaseException as error:
        if run == 0 and study.family is None and isinstance(error, Exception):
            raise
        if run == 0 and study.family is None:
            raise ValueError(f"the first run cannot be made ready: {summary_repr(error)}") from error
        nothing: Any = None
        return _Run(nothing, nothing, None, failed_by(error))
    return _Run(model, recording, reference)


def _warm_up(study: Study, task: Task, run: _Run) -> None:
    """Run a filter over a few steps, once in a process and for each model, so that compilation is not timed."""
    warm = (study.token, 0 if study.family is None else study.family.seed(task.run), task.key)
    if warm in _warm:
        return
    _warm.add(warm)
    with unless_stopped():  # what fails here fails again when it is measured, and is recorded there
        feed(study.build_filter(task, run.model), run.recording.first(_WARM_UP_STEPS))


def compare(
    scenario: str | Path | Scenario,
    filters: Filters | None = None,
    particles: int | Iterable[int] | None = None,
    runs: int | None = None,
    seed: int = 0,
    workers: int = 1,
    data: str | Path | None = None,
    progress: bool = False,
    store: str | Path | None = None,
    resume: bool = False,
    scheduler: str | None = None,
    run_timeout: float | None = None,
    models: int | None = None,
    first_model: int | None = None,
) -> pd.DataFrame:
    """Compare filters on a scenario: every filter of a run sees the same truth and the same measurements.

    Parameters
    ----------
    scenario : str, Path or Scenario
        A name that ``herdfilter scenarios`` lists, a path to a TOML file of one's own, or a `Scenario`.
    filters : str, iterable of str, or mapping, optional
        Names that ``herdfilter filters`` lists, or the scenario's own; or a mapping from a name to one of these, to a
        mapping of `ParticleFilter` keywords, or to a function ``(model, n_particles, rng)`` that returns an object with
        ``run(observations, dt=..., controls=...)``. The scenario's filters unless given.
    particles : int or iterable of int, optional
        Particle counts; the scenario's unless given.
    runs : int, optional
        Independent runs, of a family of each model; the scenario's unless given. With real data only the filters' random
        numbers differ.
    seed : int
        Root of all seeds. The table is the same for any number of workers, except for the times.
    workers : int
        Processes.
    data : str or Path, optional
        Folder of real data, for scenarios that need one.
    progress : bool
        Whether to tell on the error output how far it is.
    store : str or Path, optional
        SQLite file that takes every finished run at once, for `resume` and for ``herdfilter show``.
    resume : bool
        Whether to continue the same comparison in `store` where it was cut off, or with more `runs`.
    scheduler : str, optional
        ``"local"`` processes, ``"dask"`` for a Dask cluster of `workers` processes on this machine, or the address of one.
    run_timeout : float, optional
        Seconds that a filter may take for a run, and the recording and the reference of a run; what takes longer is a run
        that failed, even where it hangs for ever in compiled code.
    models : int, optional
        Of a scenario that is a family of models, such as ``"random"``: how many; the scenario's unless given. Results are
        summarised over them by `herdfilter.study.families`.
    first_model : int, optional
        Seed of the first of them; the next ones have the next seeds. Seeds below 10,000 are for tuning; what is claimed
        should be found on seeds from 1,000,000 on.

    Returns
    -------
    pandas.DataFrame
        One row per filter, particle count and run: ``scenario``, ``filter``, ``n_particles``, ``run``, ``seed``, the type
        of the ``reference``, the numbers that `herdfilter.study.columns` declares, such as ``rmse``, and ``error``
        and ``traceback`` of a run that failed: its measured numbers are NaN. Of a family there are also the seed of the
        ``model`` and its ``kind``, in words.

    Raises
    ------
    ValueError
        If a name is unknown (with the nearest known one) or a value does not fit, or the store cannot be used.
    TypeError, FileNotFoundError
        If the model lacks a function that a filter needs, or a file or the data are not there.
    ImportError, ConnectionError
        If distributed is not installed, or the cluster cannot be reached.

    Examples
    --------
    >>> table = hf.compare("linear_gaussian", ["bootstrap", "ukf"], particles=[20], runs=2, seed=0)
    >>> print(table.groupby("filter")["reference_error"].median().round(6) > 0)  # the UKF is exact
    filter
    bootstrap     True
    ukf          False
    Name: reference_error, dtype: bool
    """
    if not (store is None or (isinstance(store, (str, Path)) and str(store))):
        raise ValueError(f"store: expected the path of a file, got {short_repr(store)}")
    check_flags(progress=progress, resume=resume)
    study = plan_study(scenario, filters, particles, runs, seed, data, models, first_model)
    return run_study(study, workers, progress, store, resume, scheduler, run_timeout).runs
