"""A call that compiles for long says so, once, to somebody who waits for it and is not told otherwise."""

import re
import sys

import pytest
from numba import njit
from numba.core import event

import herdfilter as hf
from herdfilter.filters import progress
from herdfilter.study.tasks import Task
from herdfilter.study.workers import Packed, in_child


@pytest.fixture
def hasty(monkeypatch):
    """A listener of the test's own, without patience."""
    monkeypatch.setitem(event._registered, "numba:compile", [progress._Compilation()])
    monkeypatch.setattr(progress, "COMPILE_SECONDS", 0.0)


def compile_a_function(monkeypatch, module="herdfilter.samplers.new", terminal=True):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)

    def function(x):
        return x + 1

    function.__module__ = module
    assert njit(function)(1) == 2


def test_a_process_that_compiles_says_so_once(hasty, monkeypatch, capsys):
    for _ in range(3):
        compile_a_function(monkeypatch)
    assert re.fullmatch(r"herdfilter compiles, once \(\d s so far\)\n", capsys.readouterr().err)


def test_three_seconds_are_not_told(hasty, monkeypatch, capsys):
    monkeypatch.setattr(progress, "COMPILE_SECONDS", 3.0)
    compile_a_function(monkeypatch)
    assert capsys.readouterr().err == ""


def test_functions_of_others_are_not_told(hasty, monkeypatch, capsys):
    compile_a_function(monkeypatch, module="herdfilters_of_my_own")
    compile_a_function(monkeypatch, module=None)
    assert capsys.readouterr().err == ""


def test_a_pipe_is_not_told(hasty, monkeypatch, capsys):
    compile_a_function(monkeypatch, terminal=False)
    assert capsys.readouterr().err == ""


def test_importing_the_package_is_enough():
    assert hf
    assert any(
        isinstance(listener, progress._Compilation)
        for listener in event._registered["numba:compile"]
    )


def test_a_process_of_a_study_leaves_it_to_the_study():
    listens = lambda tasks: [progress.compilation in event._registered["numba:compile"]]  # noqa: E731
    assert in_child(Packed(listens), [Task("any", 1, 0)], None) == [False]
