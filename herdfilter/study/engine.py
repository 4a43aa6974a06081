"""The Monte Carlo engine: a task runs one filter, at one particle count, over the recording of one run and measures it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from herdfilter._checks import as_positive, check_count
from herdfilter.catalogue.specifications import FilterSpec
from herdfilter.filters.progress import live_line
from herdfilter.filters.results import DegenerateWeightsError
from herdfilter.study.columns import measured, series_of
from herdfilter.study.families import kind_of
from herdfilter.study.plan import Study
from herdfilter.study.recording import feed
from herdfilter.study.reference import compute_reference
from herdfilter.study.results import StudyResult, trajectory_arrays
from herdfilter.study.run_record import RunRecord, watch
from herdfilter.study.store import open_store
from herdfilter.study.tasks import (
    Key,
    Stopped,
    Task,
    TaskResult,
    error_text,
    row_of_error,
    stop_on_signals,
    suppress_errors,
)
from herdfilter.study.workers import BATCH_SECONDS, Deadline, check_scheduler, distribute

__all__ = ["run_study"]

_log = logging.getLogger(__name__)

# A filter that runs for so many steps resamples, and so compiles all that it needs.
_WARM_UP_STEPS = 20


def run_study(
    study: Study,
    workers: int = 1,
    progress: bool = False,
    store: str | Path | None = None,
    resume: bool = False,
    scheduler: str | None = None,
    run_timeout: float | None = None,
    only: Callable[[Task], bool] = lambda _: True,
) -> StudyResult:
    """Perform the runs of a study, or `only` some of them; see `compare` for the other arguments.

    Raises
    ------
    StoreError
        If the store cannot be used (see `herdfilter.study.store`); the runs that were finished before are kept.
    ImportError, ConnectionError
        If distributed is not installed, or the cluster cannot be reached or is lost.

    Examples
    --------
    >>> from herdfilter.study.engine import run_study
    >>> from herdfilter.study.plan import plan_study
    >>> result = run_study(plan_study("linear_gaussian", ["bootstrap"], particles=[20], runs=1))
    >>> result.runs["rmse"].notna().tolist()
    [True]
    """
    scheduler = check_scheduler(scheduler)
    workers = check_count("workers", workers)
    run_timeout = None if run_timeout is None else as_positive("run_timeout", run_timeout)
    if resume and store is None:
        raise ValueError("resume: expected a store to continue, got none")
    with (
        stop_on_signals("SIGINT"),
        open_store(None if store is None else Path(store), study, resume) as storage,
    ):
        finished = storage.finished()
        tasks = [task for task in study.tasks if task not in finished and only(task)]
        if tasks:
            storage.begin(scheduler)
            count = min(workers, len(tasks))
            # A cluster's workers may share no disk; and with a time limit nothing would end a filter that hangs here.
            if "://" not in scheduler and (progress or workers > 1) and run_timeout is None:
                _compile(study, count, progress)
            _log.info(
                "%s: %d runs to make, %d in the store",
                study.scenario.name,
                len(tasks),
                len(finished),
            )
            batches = distribute(tasks, partial(perform, study), scheduler, count, run_timeout)
            line = live_line(
                study.scenario.name, len(finished) + len(tasks), len(finished), "runs", progress
            )
            failed = 0
            with closing(batches), line as bar:
                for results in batches:
                    # Before anything else: nothing that is computed may be lost.
                    storage.add(results)
                    failures = [result for result in results if result.row["error"]]
                    failed += len(failures)
                    bar.set_postfix_str(f"{failed} failed" if failed else "", refresh=False)
                    bar.update(len(results))
                    for result in failures:
                        error = result.row["error"]
                        _log.warning("%s, n = %d, run %d failed: %s", *result.task, error)
        return storage.result()


def _compile(study: Study, count: int, visible: bool) -> None:
    """Have each worker run a different filter of this package, so that all find its compiled functions on the disk.

    The last filters come first: they compile most, and the first one, a baseline, next to nothing. A caller's own filters
    are compiled in the runs.
    """
    names = [name for name, factory in study.filters.items() if isinstance(factory, FilterSpec)]
    fewest = dict(sorted(study.keys, key=lambda key: -key[1]))
    tasks = [Task(name, fewest[name], i) for i, name in enumerate(reversed(names))]
    batches = distribute(tasks, partial(_warm_up, study), count=count)
    with (
        closing(batches),
        live_line(f"compiling (once) or loading {', '.join(names)}", visible=visible),
    ):
        list(batches)


def _warm_up(study: Study, tasks: Sequence[Task]) -> list[TaskResult]:
    """Run the filter of the first task over a few steps of run 0; its errors will be raised again by the runs."""
    with suppress_errors():
        model = study.build_model()
        recording = study.record(model).first(_WARM_UP_STEPS)
        feed(study.build_filter(tasks[0]._replace(run=0), model), recording)
    return [TaskResult(tasks[0], {})]


def perform(
    study: Study, tasks: Sequence[Task], seconds: float = BATCH_SECONDS, limit: float | None = None
) -> list[TaskResult]:
    """Do tasks in turn, at least one, until `seconds` have passed; return the results.

    The process ends (`Deadline`) if a filter, or the recording and reference of a run, take longer than `limit` seconds.
    """
    results: list[TaskResult] = []
    with threadpool_limits(1), Deadline(limit) as deadline:
        end = time.perf_counter() + seconds
        for task in tasks:
            results.append(_perform(study, task, deadline.restart))
            if time.perf_counter() > end:
                break
    return results


_warm: set[tuple[str, int, Key]] = set()
"""Studies, seeds of models and filters that this process has warmed up."""


def _perform(study: Study, task: Task, restart: Callable[[], None]) -> TaskResult:
    """Do one task; `restart` begins the deadline of each stage."""
    restart()
    # Cached: the tasks of a run follow one another.
    run = _prepared(study, task.run)
    if not isinstance(run, RunRecord):
        return TaskResult(task, run)
    restart()
    warm = (study.token, 0 if study.family is None else study.family.seed(task.run), task.key)
    if warm not in _warm:
        # Compilation, once in a process and for each model, must not be timed.
        _warm.add(warm)
        with suppress_errors():
            # Errors are raised again, and recorded, when the filter is measured.
            feed(study.build_filter(task, run.model), run.recording.first(_WARM_UP_STEPS))
    restart()
    # Known of the run even if the filter fails.
    common = {
        "reference": "" if run.reference is None else (study.scenario.reference or {})["type"],
        **measured(run, of_reference=True),
    }
    if study.family is not None:
        # Another model may have `labels` of any kind.
        common["kind"] = kind_of(run.model)
    series: Mapping[str, Any] = {}
    try:
        observed = watch(run, study.build_filter(task, run.model), study.watched)
        row = common | {"error": "", "traceback": ""} | measured(observed)
        series = series_of(observed)
    except Stopped:
        raise
    except BaseException as error:  # a model may raise SystemExit, too
        row = row_of_error(error) | common
    trajectory = {}
    if task.run == 0 and task.n_particles == study.shown_particles:
        restart()
        # The filter runs again, because the timed run keeps no particles.
        trajectory = trajectory_arrays(study, task, run)
    return TaskResult(task, row, series, trajectory)


@lru_cache(maxsize=1)
def _prepared(study: Study, run: int) -> RunRecord | dict[str, Any]:
    """Return recording and reference of a run; the reference is None if even its many particles lose the target.

    Errors of the first run are raised, because every run would have them. An error of a later run, or of any run of a
    family of models, is returned as the row of all its tasks.
    """
    reference = None
    try:
        model = study.build_model(run)
        recording = study.record(model, run)
        with suppress(DegenerateWeightsError):
            reference = compute_reference(
                study.scenario, model, recording, study.reference_rng(run)
            )
    except Stopped:
        raise
    except BaseException as error:
        if run == 0 and study.family is None:
            if isinstance(error, Exception):
                raise
            # SystemExit of a user's model must not end the study's process without a word.
            raise ValueError(f"the first run cannot be prepared: {error_text(error)}") from error
        return row_of_error(error)
    return RunRecord(study.scenario, model, recording, reference)
