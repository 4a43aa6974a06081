"""The engine does tasks: each is the same wherever, whenever and beside whatever it is done."""

import pickle

import numpy as np
import pandas as pd
import pytest

import herdfilter as hf
from herdfilter.study import engine
from herdfilter.study.columns import TIMES
from herdfilter.study.engine import perform
from herdfilter.study.plan import plan_study


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
