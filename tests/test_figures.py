"""How the figures of the pages are made: what they hang on, when they are stale, and in which order they are run."""

import ast
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import cases

import herdfilter as hf
from herdfilter.study.scenario import load_scenario

FOLDER = Path(__file__).parents[1] / "benchmarks"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not FOLDER.is_dir(), reason="the benchmarks are not part of this installation"
    ),
]


@pytest.fixture
def counted(scripts):
    """A function: what counts of the text of a module."""
    dependencies = scripts("benchmarks/dependencies")
    return lambda text, **options: dependencies._written(
        dependencies.computing(ast.parse(text), **options)
    )


COMPUTES = """
import warnings

import numpy as np

from herdfilter._checks import check_count
from herdfilter.models import ungm


def _look_at(x):
    if x is None:
        raise TypeError("x: expected numbers")


def run(x, n: int = 3) -> float:
    n = check_count("n", n)
    if n > 10:
        expected = "at most 10"
        raise ValueError(f"n: expected {expected}, got {n}")
    _look_at(x)
    try:
        y = ungm.run(x)
    except KeyError as error:
        raise ValueError(f"{error}: not known") from None
    if y < 0:
        warnings.warn("below zero", stacklevel=2)
        return 0.0
    return np.sqrt(y) * n
"""


@cases(
    "old new",
    ('"x: expected numbers"', '"x: expected an array of numbers"'),
    ("x is None", "x is None or len(x) > 100"),
    ("n > 10", "n > 20"),
    ('"n"', '"number of points"'),
    ('"at most 10"', '"ten at most"'),
    ("    _look_at(x)\n", ""),
    ('f"{error}: not known"', '"unknown"'),
    ('"below zero"', '"lower than zero"'),
    (
        "import warnings\n",
        "import math\nimport warnings\n\nfrom herdfilter.catalogue import names\n",
    ),
    ("n: int = 3) -> float", "n=3)"),
    ("    return np", "    # a comment\n    return np"),
    (
        "def run(x, n: int = 3) -> float:\n",
        'def run(x, n: int = 3) -> float:\n    """Say what it does."""\n\n',
    ),
    (
        "    n = check",
        "    for name in x:\n        if not name:\n            raise ValueError(name)\n    n = check",
    ),
)
def test_words_and_refusals_do_not_count(counted, old, new):
    assert old in COMPUTES
    assert counted(COMPUTES.replace(old, new)) == counted(COMPUTES)


@cases(
    "old new",
    ("y < 0", "y <= 0"),
    ("* n", "* (n + 1)"),
    ("n: int = 3", "n: int = 4"),
    ("return 0.0", "return 1.0"),
    ("ungm.run(x)", "ungm.run(2 * x)"),
    ("import ungm", "import bearings as ungm"),
    ('raise ValueError(f"{error}: not known") from None', "y = 1.0"),
    ('    if n > 10:\n        expected = "at most 10"\n', "    if n > 10:\n        n = 10\n"),
    ("if n > 10:", "if (n := n + 1) > 10:"),
    ("raise TypeError", "raise DegenerateWeightsError"),
)
def test_what_computes_counts(counted, old, new):
    assert old in COMPUTES
    assert counted(COMPUTES.replace(old, new)) != counted(COMPUTES)


def test_refusals_that_choose_a_reference_count_but_not_their_words(counted):
    written = counted(COMPUTES, refusals=True)
    assert counted(COMPUTES.replace("n > 10", "n > 20"), refusals=True) != written
    assert counted(COMPUTES.replace("not known", "unknown"), refusals=True) == written


def test_refusals_count_where_they_are_what_is_measured(counted, scripts):
    assert counted(COMPUTES.replace("    _look_at(x)\n", ""), refusals=True) != counted(
        COMPUTES, refusals=True
    )
    dependencies = scripts("benchmarks/dependencies")
    module = dependencies.modules()["points"]
    assert "Raise(" in dependencies.read(module, True)[0]
    assert "Raise(" not in dependencies.read(module)[0]


def test_a_module_that_is_needed_for_refusals_alone_is_not_needed(scripts):
    dependencies = scripts("benchmarks/dependencies")
    names = {
        name
        for name, path in dependencies.modules().items()
        if path in dependencies.needed(["filters"])
    }
    assert {"filters.filter", "models.contract", "mixture"} <= names
    assert names.isdisjoint(dependencies.NO_NUMBERS)
    assert set(dependencies.CAUGHT) <= set(dependencies.modules())


def test_parts_that_measure_times_run_alone_and_the_others_in_pairs(scripts, tmp_path, monkeypatch):
    make_figures = scripts("benchmarks/make_figures")
    cases = {
        "clock": {"alone": True},
        "one": {},
        "two": {"stores": "own"},
        "three": {"stores": "own"},
        "four": {},
    }
    parts = {
        name: make_figures.Part(f"python benchmarks/{name}.py", name, "points", **case)
        for name, case in cases.items()
    }
    for name, value in {
        "PARTS": parts,
        "RESULTS": tmp_path,
        "LOGS": tmp_path / "logs",
        "OF_WORKERS": ("one", "clock"),
    }.items():
        monkeypatch.setattr(make_figures, name, value)
    running, beside, commands = set(), {}, {}

    def process(command, **keywords):
        name = Path(command[1]).stem
        running.add(name)
        time.sleep(0.05)
        beside.setdefault(name, set()).update(running)
        commands[name] = command[2:]
        running.discard(name)
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(make_figures.subprocess, "run", process)
    assert make_figures.run_all(list(parts), 2) == []
    assert beside["clock"] == {"clock"}
    assert max(len(names) for names in beside.values()) == 2
    assert "two" not in beside["three"]
    assert {name: bool(options) for name, options in commands.items()} == {
        name: name == "one" for name in parts
    }
    assert {name for name in parts if make_figures.stale(name)} == set()
    assert set(make_figures.measured(tmp_path)["table"]) == set(parts)


def test_a_reference_is_computed_once(scripts, tmp_path):
    calls = []

    def compute():
        calls.append(1)
        return np.array([1.5, 2.5])

    for _ in range(2):
        assert scripts("benchmarks/common").stored(
            tmp_path / "exact" / "model-1.npy", compute
        ).tolist() == [
            1.5,
            2.5,
        ]
    assert calls == [1]
    assert [path.name for path in (tmp_path / "exact").iterdir()] == ["model-1.npy"]


def test_parts_of_one_seed_share_the_references_of_a_scenario(tmp_path, monkeypatch):
    monkeypatch.setenv("HERDFILTER_CACHE", str(tmp_path))
    scenario = replace(load_scenario("double_well"), steps=5)
    for name, n in (("bootstrap", 20), ("sqmc", 50)):
        hf.compare(scenario, [name], [n], 2, 7, 1)
        assert len(list(tmp_path.rglob("*.npz"))) == 2


def test_only_filters_of_a_curve_have_many_particles_in_the_study(scripts):
    found = scripts("benchmarks/bench_study").cells(
        ["ukf", "auto", "bootstrap"], [20, 100, 500], [1000]
    )
    assert found[:4] == [("bootstrap", n) for n in (20, 100, 500, 1000)]
    assert found[4:] == [("ukf", 20), ("ukf", 100), ("auto", 20), ("auto", 100), ("auto", 500)]


def test_no_figure_is_older_than_the_code_it_measures(scripts):
    """Make the figures anew, or keep them on purpose: `python benchmarks/make_figures.py --list` tells of each part."""
    make_figures = scripts("benchmarks/make_figures")
    written = sorted(table for part in make_figures.PARTS.values() for table in part.made)
    assert written == sorted(make_figures.measured(make_figures.RESULTS)["table"])
    assert [name for name in make_figures.PARTS if make_figures.stale(name)] == []
