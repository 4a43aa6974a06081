"""A call that compiles for long says so, once, to somebody who waits for it and is not told otherwise."""

import multiprocessing
import re
import sys
from types import SimpleNamespace

import pytest
from numba import njit
from numba.core import event

import herdfilter as hf
from herdfilter.filters import progress
from herdfilter.filters.progress import live_line, tell_compilation
from herdfilter.study.tasks import Task
from herdfilter.study.workers import Packed, in_child


@pytest.fixture
def hasty(monkeypatch):
    """A listener of the test's own, without patience."""
    monkeypatch.setitem(event._registered, "numba:compile", [])
    monkeypatch.setattr(progress, "_COMPILING", 0.0)
    monkeypatch.setattr(progress, "lines", [0])
    tell_compilation()


def compile_a_function(monkeypatch, module="herdfilter.samplers.new", terminal=True):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)

    def function(x):
        return x + 1

    function.__module__ = module
    assert njit(function)(1) == 2


def test_a_call_that_compiles_says_so_once_and_another_call_again(hasty, monkeypatch, capsys):
    for _ in range(2):
        compile_a_function(monkeypatch)
        compile_a_function(monkeypatch)
        (listener,) = event._registered["numba:compile"]
        listener._latest -= 2.0  # seconds pass
    assert re.fullmatch(r"(herdfilter compiles, once \(\d s so far\)\n){2}", capsys.readouterr().err)


def test_three_seconds_are_not_told(hasty, monkeypatch, capsys):
    monkeypatch.setattr(progress, "_COMPILING", 3.0)
    compile_a_function(monkeypatch)
    assert capsys.readouterr().err == ""


def test_functions_of_others_are_not_told(hasty, monkeypatch, capsys):
    compile_a_function(monkeypatch, module="herdfilters_of_my_own")
    compile_a_function(monkeypatch, module=None)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("place", ["a pipe", "a worker of the user's", "below a line"])
def test_elsewhere_nothing_is_said(hasty, monkeypatch, capsys, place):
    if place == "a worker of the user's":
        monkeypatch.setattr(multiprocessing, "parent_process", object)
    with live_line(lambda seconds: "studying", place == "below a line"):
        compile_a_function(monkeypatch, terminal=place != "a pipe")
    assert capsys.readouterr().err == ""


def test_in_a_notebook_it_is_no_error_output(hasty, monkeypatch, capsys):
    shown = []
    monkeypatch.setattr(progress, "notebook", lambda: True)
    display = SimpleNamespace(display=lambda data, **options: shown.append(data["text/plain"]))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    compile_a_function(monkeypatch)
    assert (len(shown), capsys.readouterr().err) == (1, "")


def test_importing_the_package_is_enough():
    assert hf
    assert any(isinstance(listener, progress._Compilation) for listener in event._registered["numba:compile"])


def test_a_process_of_a_study_leaves_it_to_the_study():
    assert in_child(Packed(lambda tasks: [progress.lines[0]]), [Task("any", 1, 0)], None) == [1]
