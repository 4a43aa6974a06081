"""What importing the package costs and offers."""

import re
import subprocess
import sys
import tomllib
from importlib import resources
from pathlib import Path

import pytest

import herdfilter


def loaded(program):
    """Top-level modules that a program has loaded in a fresh interpreter."""
    program += "; import sys; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_import_loads_numpy_scipy_and_numba_only():
    base = loaded("import numpy, scipy.linalg, scipy.special, scipy.spatial.distance, numba")
    more = loaded("import herdfilter") - base - set(sys.stdlib_module_names)
    assert {name for name in more if not name.startswith("_")} == {"herdfilter"}


def test_import_leaves_alone_what_filtering_does_not_need():
    program = "import sys, herdfilter; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    heavy = {"scipy.stats", "scipy.optimize", "herdfilter.evaluation", "herdfilter.plotting", "sqlite3"}
    assert heavy.isdisjoint(done.stdout.split())


def test_what_is_loaded_on_demand_is_there():
    program = "import herdfilter as hf; names = dir(hf); print(hf.compare.__name__, hf.evaluation.summarise.__name__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "compare summarise\n"
    assert {"compare", "evaluation", "plotting"} <= set(dir(herdfilter))
    with pytest.raises(AttributeError, match="has no attribute 'comprae'"):
        _ = herdfilter.comprae


def test_the_star_brings_every_public_name():
    names = {}
    exec("from herdfilter import *", names)
    assert set(herdfilter.__all__) <= set(names)


def test_few_dependencies_are_required():
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    required = {re.split("[<>=]", name)[0] for name in tomllib.loads(text)["project"]["dependencies"]}
    assert len(required) <= 10
    assert {"numpy", "scipy", "filterpy", "matplotlib", "numba"} <= required


def test_import_draws_no_random_numbers_and_prints_nothing():
    program = (
        "import numpy as np; np.random.seed(3); before = np.random.get_state()[1].copy(); import herdfilter;"
        "assert (np.random.get_state()[1] == before).all()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("name", herdfilter.__all__)
def test_public_names_exist_and_are_documented(name):
    assert getattr(herdfilter, name).__doc__


def test_public_names_are_unique_and_there():
    assert len(herdfilter.__all__) == len(set(herdfilter.__all__))
    assert [name for name in herdfilter.__all__ if not hasattr(herdfilter, name)] == []


def test_types_are_published():
    assert resources.files("herdfilter").joinpath("py.typed").is_file()
