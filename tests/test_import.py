"""What importing the package costs and offers."""

import subprocess
import sys
from importlib import resources

import pytest

import herdfilter

HEAVY = ("pandas", "matplotlib", "scipy.stats", "filterpy", "joblib", "pooch", "rich", "click")


def test_import_leaves_heavy_libraries_alone():
    program = f"import sys, herdfilter; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


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


def test_public_names_are_sorted_and_unique():
    assert herdfilter.__all__ == sorted(set(herdfilter.__all__))


def test_types_are_published():
    assert resources.files("herdfilter").joinpath("py.typed").is_file()
