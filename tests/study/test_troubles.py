"""Whatever a filter does to the process it runs in: it is a failed run, and the rest of the study goes on."""

import dataclasses
import os
import signal
import time
from collections import deque
from itertools import repeat
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import cases, same_runs

import herdfilter as hf
from herdfilter.plotting import drawings
from herdfilter.study.engine import perform
from herdfilter.study.plan import plan_study
from herdfilter.study.store import open_store
from herdfilter.study.tasks import TaskResult, failure_row


@pytest.fixture
def scenario(scenario):
    """Without reference, whose packages take long to import."""
    return dataclasses.replace(scenario, reference=None)


def raising(error):
    def trouble():
        raise error

    return trouble


def endless_recursion():
    endless_recursion()


def loop_that_nothing_interrupts():
    deque(repeat(0), maxlen=0)  # in C, and nobody else may run meanwhile


def dies():
    os.kill(os.getpid(), signal.SIGKILL)


def dies_once(file):
    def trouble():
        if not file.exists():
            file.touch()
            dies()

    return trouble


def kills_its_parent():
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(10)


RAISED = [
    (raising(SystemExit(3)), "SystemExit: 3"),
    (raising(KeyboardInterrupt()), "KeyboardInterrupt"),
    (raising(MemoryError("too large")), "MemoryError: too large"),
    (endless_recursion, "RecursionError: maximum recursion depth exceeded"),
    (raising(OSError("no file \ud800")), r"OSError: no file \ud800"),
]
DEATH = (dies, "ProcessDied: the process that worked on it ended, killed or out of memory")
LOOP = (
    loop_that_nothing_interrupts,
    "TimeoutError: the filter, or recording and reference of the run, took longer than 1 s",
)
SOUND = (lambda: None, "")
CLUSTER = {"run_timeout": 1, "workers": 1, "scheduler": "dask"}


def filters(troubles):
    """A filter for each trouble."""

    def factory(trouble):
        def run(observations, dt=1.0, controls=None):
            trouble()
            return SimpleNamespace(means=np.zeros((len(observations), 1)))

        return lambda model, n_particles, rng: SimpleNamespace(run=run)

    return {f"filter {i}": factory(trouble) for i, (trouble, _) in enumerate(troubles)}


def test_tables_do_not_depend_on_the_number_of_workers(scenario):
    """20,000 particles of the reference: enough for a threaded linear algebra library to sum in another order.

    The processes wait for the next test: to start others takes longer than all they do.
    """
    many = dataclasses.replace(scenario, reference={"type": "large", "n": 20000})
    first, other = (hf.compare(many, ["bootstrap"], runs=2, workers=workers) for workers in (1, 2))
    same_runs(first, other)
    assert (first["reference_error"] > 0).all()


@pytest.mark.filterwarnings("ignore::UserWarning")
@cases(
    "troubles options",
    (RAISED, {}),
    ([LOOP], {"run_timeout": 1}),
    pytest.param([*RAISED, DEATH], {"workers": 2}, marks=pytest.mark.slow),
    pytest.param([(kills_its_parent, DEATH[1]), LOOP], CLUSTER, marks=pytest.mark.slow),
    ids=["in process", "limited", "processes", "cluster"],
)
def test_a_trouble_is_a_failed_run_and_the_rest_goes_on(
    scenario, tmp_path, monkeypatch, troubles, options
):
    """What kills its process once may have been killed from outside, and is done again."""
    if options is CLUSTER:
        pytest.importorskip("distributed")
        # Dask gives up a worker that is away for so long after a death: here, while it starts anew
        dask = pytest.importorskip("dask")
        monkeypatch.setitem(
            dask.config.config["distributed"]["deploy"], "lost-worker-timeout", "1s"
        )
    elif "workers" in options:
        troubles = [*troubles, (dies_once(tmp_path / "died"), "")]
    named = filters([*troubles, SOUND])
    table = hf.compare(scenario, named, [10], runs=1, store=tmp_path / "study.sqlite", **options)
    for text, (_, expected) in zip(table["error"], [*troubles, SOUND], strict=True):
        assert text.startswith(expected)
        assert bool(text) == bool(expected)
    sound = {name: named[name] for name in list(named)[-1:]}
    same_runs(table[-1:], hf.compare(scenario, sound, [10], runs=1))


def test_a_study_whose_first_run_nobody_survived_has_a_result(scenario):
    study = plan_study(scenario, ["bootstrap"], [10], 2)
    with open_store(None, study) as store:
        store.begin("local")
        store.add(
            [TaskResult(study.tasks[0], failure_row(DEATH[1])), *perform(study, study.tasks[1:])]
        )
        result = store.result()
    assert list(result.runs["error"]) == [DEATH[1], ""]
    assert result.trajectory.estimates == {}
    assert drawings(result).keys() >= {"error_over_time"}
