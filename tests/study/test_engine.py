"""The engine does tasks: each is the same wherever, whenever and beside whatever it is done."""

import pickle

import numpy as np
from helpers import TIMES, same_runs

import herdfilter as hf
from herdfilter.study.engine import perform
from herdfilter.study.plan import Study, plan_study


def rows(outcomes):
    return {o.task: {k: v for k, v in o.row.items() if k not in TIMES} for o in outcomes}


def test_tasks_do_not_depend_on_their_order_nor_on_the_others(scenario):
    """Nor on the process: a study travels by pickle."""
    study = plan_study(
        scenario, filters={"name": "bootstrap", "objects": {"proposal": hf.GuidedProposal()}}
    )
    forwards = rows(perform(study, study.tasks, seconds=np.inf))
    there = pickle.loads(pickle.dumps(study))
    np.testing.assert_equal(rows(perform(there, there.tasks[::-1], seconds=np.inf)), forwards)
    some = study.tasks[3::5]
    np.testing.assert_equal(
        rows(perform(study, some, seconds=np.inf)), {task: forwards[task] for task in some}
    )


def test_a_run_that_cannot_be_made_ready_fails_for_every_filter_and_the_rest_goes_on(
    scenario, monkeypatch
):
    good = hf.compare(scenario)
    prepare = Study.record
    calls = []

    def sometimes(*args):
        calls.append(1)
        if len(calls) == 4:  # the first is a trial
            raise OverflowError("too far\naway")
        return prepare(*args)

    monkeypatch.setattr(Study, "record", sometimes)
    table = hf.compare(scenario)
    failed = table["run"] == 2
    assert (
        table["error"][failed]
        .str.startswith("OverflowError: too far away (test_engine.py, line ")
        .all()
    )
    assert table["traceback"][failed].str.contains("in sometimes").all()
    assert table["diverged"][failed].all()
    same_runs(table[~failed], good[~failed])


def test_labels_of_a_model_that_is_no_familys_may_be_anything(scenario, monkeypatch):
    """Only a family's model tells its kind by them."""
    for labels in (np.array([1, 2]), 3):
        monkeypatch.setattr(hf.models.LinearGaussian, "labels", labels, raising=False)
        table = hf.compare(scenario, ["bootstrap"], particles=[10], runs=1)
        assert (table["error"] == "").all()
