"""The examples of the docstrings run, and every public class and function has one.

An example is what a user types after ``import numpy as np`` and ``import herdfilter as hf``, in a folder of its own. What it
prints is the same under numpy 1.26 and 2: numbers are rounded, and printed or turned into plain ones.
"""

import doctest
import importlib
import inspect
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import cases

import herdfilter as hf
from herdfilter.study.data import SCENARIOS

ROOT = Path(hf.__file__).parent
FILES = [
    path
    for path in sorted({*ROOT.rglob("*.py"), *SCENARIOS.glob("*.py")})
    if ">>> " in path.read_text(encoding="utf-8")
]
SLOW = {
    "adapters/particles.py",
    "adapters/pykalman.py",
    "adapters/statsmodels.py",
    "likelihood.py",
    "models/compiled.py",
    "plotting/__init__.py",
    "report/comparison.py",
}
SLOW |= {"report/page.py"}
LIBRARIES = {  # of the adapters
    "stone_soup": "stonesoup",
    "particles": "particles",
    "pykalman": "pykalman",
    "statsmodels": "statsmodels",
}


class Checker(doctest.OutputChecker):
    """Takes -0.0 for 0.0: which of them rounding leaves differs between processors."""

    def check_output(self, want, got, optionflags):
        want, got = (re.sub(r"-(0\.0*)(?!\d)", r"\1", text) for text in (want, got))
        return super().check_output(want, got, optionflags)


@pytest.fixture
def public_names(scripts):
    for library in ("particles", "stonesoup"):
        pytest.importorskip(library, reason=f"{library}, which some names need, is not installed")
    return scripts("docs/tools/public_names")


def marked(path):
    slow = ROOT in path.parents and path.relative_to(ROOT).as_posix() in SLOW
    return pytest.param(
        path, marks=pytest.mark.slow if slow else (), id=path.relative_to(ROOT.parent).as_posix()
    )


@cases("path", *[marked(path) for path in FILES])
def test_examples_run(path, tmp_path, monkeypatch):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    if path.parent == SCENARIOS:
        parts = ("herdfilter", "study", "data", path.stem)
    for part in parts[2:] if "adapters" in parts else ():
        if part in LIBRARIES:
            pytest.importorskip(
                LIBRARIES[part], reason=f"the optional library {LIBRARIES[part]} is not installed"
            )
    module = importlib.import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    tests = doctest.DocTestFinder().find(module, globs={"np": np, "hf": hf})
    found = [example for test in tests for example in test.examples]
    assert len(found) == path.read_text(encoding="utf-8").count(">>> "), (
        "an example that is not run"
    )
    assert [example.source for example in found if "np." in example.want] == [], (
        "not what numpy 1.26 prints"
    )

    report = []
    runner = doctest.DocTestRunner(
        Checker(), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    )
    for i, test in enumerate(tests):
        folder = tmp_path / str(i)
        folder.mkdir()
        monkeypatch.chdir(folder)
        runner.run(test, out=report.append)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
    assert runner.failures == 0, "".join(report)


def test_every_public_class_and_function_has_an_example(public_names):
    without = []
    for full, found in public_names.public_names().items():
        if public_names.is_shared(found) and ">>> " not in (found.__doc__ or ""):
            without.append(full)
    assert without == []


def test_every_public_method_is_documented_in_its_class_or_in_the_contract_that_it_follows(
    public_names,
):
    """Ruff's D102 does not see that a docstring is inherited."""
    without = []
    for full, found in public_names.public_names().items():
        for name, value in vars(found).items() if inspect.isclass(found) else ():
            method = inspect.isfunction(value) or isinstance(
                value, property | classmethod | staticmethod
            )
            if method and not name.startswith("_") and not inspect.getdoc(getattr(found, name)):
                without.append(f"{full}.{name}")
    assert without == []
