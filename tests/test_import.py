"""What importing the package costs and offers."""

import importlib
import json
import re
import subprocess
import sys
import tomllib
from importlib import resources
from pathlib import Path
from types import ModuleType

import pytest
from helpers import cases, refusal

import herdfilter

PROGRAM = """
import json, sys
import numpy as np, numba, scipy.linalg, scipy.special, scipy.spatial.distance
base = list(sys.modules)
np.random.seed(3)
before = np.random.get_state()[1].copy()
import herdfilter as hf
unmoved = bool((np.random.get_state()[1] == before).all())
modules, names = list(sys.modules), dir(hf)
print(json.dumps([base, modules, unmoved, hf.compare.__name__, hf.study.summarise.__name__]))
"""


@pytest.fixture(scope="module")
def fresh():
    """A process that imports the package after what it needs, and says what has happened; it may say nothing else."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)
    return json.loads(done.stdout)


def test_import_loads_numpy_scipy_and_numba_only(fresh):
    base, modules = ({name.partition(".")[0] for name in names} for names in fresh[:2])
    more = modules - base - set(sys.stdlib_module_names)
    assert {name for name in more if not name.startswith("_")} == {"herdfilter"}


def test_import_leaves_alone_what_filtering_does_not_need(fresh):
    heavy = {"scipy.stats", "scipy.optimize", "herdfilter.study", "herdfilter.plotting", "sqlite3"}
    # numba loads sqlite3 where coverage is installed
    assert heavy.isdisjoint({*fresh[1]} - {*fresh[0]})


def test_import_draws_no_random_numbers(fresh):
    assert fresh[2] is True


def test_what_is_loaded_on_demand_is_there(fresh):
    assert fresh[3:] == ["compare", "summarise"]
    assert {"compare", "study", "plotting"} <= set(dir(herdfilter))
    with refusal("has no attribute 'comprae'", AttributeError):
        _ = herdfilter.comprae


ROOMS = [name for name in herdfilter.__all__ if isinstance(getattr(herdfilter, name), ModuleType)]


@cases("place", "herdfilter", *(f"herdfilter.{name}" for name in ROOMS))
def test_dir_lists_what_is_public_only(place):
    found = importlib.import_module(place)
    assert found.__all__
    assert {name for name in dir(found) if not name.startswith("__")} == set(found.__all__)
    assert {"__doc__", "__name__", "__file__"} <= set(dir(found))


def test_few_dependencies_are_required():
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    required = {
        re.split("[<>=]", name)[0] for name in tomllib.loads(text)["project"]["dependencies"]
    }
    assert len(required) <= 11
    assert {"numpy", "scipy", "filterpy", "matplotlib", "numba"} <= required


def test_the_lowest_versions_are_those_that_are_promised():
    root = Path(__file__).parents[1]
    printed = subprocess.run(
        [sys.executable, root / ".ci" / "lowest.py"], capture_output=True, text=True, check=True
    )
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    promised = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    pinned = {name.replace(">=", "==") for name in promised if not name.startswith("herdfilter[")}
    assert pinned < set(printed.stdout.split())  # and libraries of other extras


def test_types_are_published():
    assert resources.files("herdfilter").joinpath("py.typed").is_file()
