"""A study compiles on all cores at once, before its runs, and its idle processes help to draw."""

import os

import pytest
from helpers import refusal

import herdfilter as hf
from herdfilter.study import engine
from herdfilter.study.tasks import Task
from herdfilter.study.workers import Packed, begin, end_idle_children, in_child


class Deadly(hf.BootstrapProposal):
    """Ends its process, as a fault in compiled code does."""

    def propose(self, *args, **options):
        os._exit(1)


@pytest.fixture
def batches(monkeypatch):
    """What is distributed, in turn, and the line of the first part."""
    seen = []
    distribute = engine.distribute
    live_line = engine.live_line

    def spied(tasks, *arguments, **options):
        seen.append([task.filter for task in tasks])
        return distribute(tasks, *arguments, **options)

    def told(text, *counts, visible=True):
        seen.append(text)
        return live_line(text, *counts[:3], visible=False)

    monkeypatch.setattr(engine, "distribute", spied)
    monkeypatch.setattr(engine, "live_line", told)
    return seen


def test_filters_of_the_package_are_compiled_in_view_before_the_runs_and_their_errors_wait(
    scenario, constant, batches, monkeypatch
):
    """The last filter cannot even be fed in the first steps; only the runs may say so."""
    feed = engine.feed

    def failing(*args):
        monkeypatch.setattr(engine, "feed", feed)
        raise ArithmeticError("too early")

    monkeypatch.setattr(engine, "feed", failing)
    filters = {"bootstrap": "bootstrap", "mine": constant, "sqmc": "sqmc"}
    table = hf.compare(scenario, filters, runs=1, progress=True)
    assert (table["error"] == "").all()
    compiled, line, runs, counter = batches
    assert line == "compiling (once) or loading bootstrap, sqmc"
    assert compiled == ["sqmc", "bootstrap"]
    assert counter == "walk"
    assert set(runs) == set(filters)


@pytest.mark.slow
def test_a_filter_that_kills_the_process_that_compiles_it_fails_in_its_runs_only(scenario):
    filters = {"bootstrap": "bootstrap", "deadly": {"proposal": Deadly()}}
    runs = hf.compare(scenario, filters, [10], runs=1, workers=2)
    assert runs["error"].str.startswith("ProcessDied").tolist() == [False, True]


def test_an_idle_process_is_given_work_and_without_one_this_process_does_it():
    end_idle_children()
    here = os.getpid()
    assert begin(lambda: [os.getpid()])() == [here]
    (other,) = in_child(Packed(lambda tasks: [os.getpid()]), [Task("any", 1, 0)], None)
    assert begin(lambda: [os.getpid()])() == [other] != [here]
    with refusal("disk is full", OSError):
        begin(full_disk)()
    assert begin(lambda: [os.getpid()] if os.getpid() == here else os._exit(1))() == [here]


def full_disk():
    raise OSError("the disk is full")
