"""The engine does tasks: each is the same wherever, whenever and beside whatever it is done."""

import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

import herdfilter as hf
from herdfilter.study import engine
from herdfilter.study.columns import TIMES
from herdfilter.study.engine import perform
from herdfilter.study.plan import plan_study
from herdfilter.study.workers.child import end_idle_processes


def rows(outcomes):
    return {o.task: {k: v for k, v in o.row.items() if k not in TIMES} for o in outcomes}


def same_rows(a, b):
    assert a.keys() == b.keys()
    for task, row in a.items():
        np.testing.assert_equal(row, b[task])


def test_tasks_do_not_depend_on_their_order_nor_on_the_others(scenario):
    """Nor on the process: a study travels by pickle."""
    study = plan_study(scenario, filters={"name": "bootstrap", "objects": {"proposal": hf.GuidedProposal()}})
    forwards = rows(perform(study, study.tasks, seconds=np.inf))
    there = pickle.loads(pickle.dumps(study))
    same_rows(forwards, rows(perform(there, there.tasks[::-1], seconds=np.inf)))
    some = study.tasks[3::5]
    same_rows({task: forwards[task] for task in some}, rows(perform(study, some, seconds=np.inf)))


def test_a_worker_stops_when_its_time_is_over_but_does_one_task(scenario):
    study = plan_study(scenario)
    assert [o.task for o in perform(study, study.tasks[2:], seconds=0.0)] == [study.tasks[2]]


def test_recording_and_reference_of_a_run_are_made_once(scenario, monkeypatch):
    made = []
    compute = engine.compute_reference
    monkeypatch.setattr(engine, "compute_reference", lambda *args: made.append(1) or compute(*args))
    hf.compare(scenario)
    assert len(made) == scenario.runs


def test_a_run_that_cannot_be_made_ready_fails_for_every_filter_and_the_rest_goes_on(scenario, monkeypatch):
    good = hf.compare(scenario)
    prepare, calls = engine.record, []

    def sometimes(*args):
        calls.append(1)
        if len(calls) == 3:
            raise OverflowError("too far\naway")
        return prepare(*args)

    monkeypatch.setattr(engine, "record", sometimes)
    table = hf.compare(scenario)
    failed = table["run"] == 2
    assert table["error"][failed].str.startswith("OverflowError: too far away (test_engine.py, line ").all()
    assert table["traceback"][failed].str.contains("in sometimes").all()
    assert table["diverged"][failed].all()
    assert table["rmse"][failed].isna().all()
    columns = ["filter", "n_particles", "run", "rmse", "error"]
    pd.testing.assert_frame_equal(table[~failed][columns], good[~failed][columns])


def test_what_goes_wrong_with_the_first_run_goes_wrong_with_all_and_is_raised(scenario, monkeypatch):
    def never(*args):
        raise OverflowError("too far")

    monkeypatch.setattr(engine, "record", never)
    with pytest.raises(OverflowError, match="too far"):
        hf.compare(scenario)


def counting_threads(model, n_particles, rng):
    """A filter whose likelihood is the number of threads that linear algebra may use."""
    from threadpoolctl import threadpool_info

    threads = max(library["num_threads"] for library in threadpool_info())
    means = np.zeros((10, model.dim))
    return SimpleNamespace(
        run=lambda observations, dt=1.0, controls=None: SimpleNamespace(means=means, log_likelihood=threads)
    )


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_workers_use_one_thread(scenario, workers, monkeypatch):
    """Though this process, and those that it starts, may use two."""
    if workers == 2:
        end_idle_processes()
    for library in ("OMP", "OPENBLAS", "MKL"):
        monkeypatch.setenv(f"{library}_NUM_THREADS", "2")
    with threadpool_limits(2):
        table = hf.compare(scenario, filters={"counting": counting_threads}, particles=[5], runs=2, workers=workers)
    assert (table["log_likelihood"] == 1).all()
