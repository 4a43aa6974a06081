"""What does not fit is told in one line."""

import subprocess
import sys

import pytest
from helpers import cases, refused


@cases(
    "arguments message",
    (["compare", "nowhere.toml"], "no file nowhere.toml"),
    (["compare", "ungm", "--filters", "boostrap"], "did you mean 'bootstrap'"),
    (["compare", "ungm", "--runs", "few"], "'few' is not a valid integer"),
    (
        ["compare", "ungm", "--runs", "1000000000000"],
        "runs: expected an integer up to 10000000, as memory is limited, got 1000000000000",
    ),
    (["compare", "ungm", "--data", "/"], "takes no data folder"),
    (["compare", "ungm", "--resume"], "resume: needs --out"),
    (["compare", "ungm", "--scheduler", "dsak"], "did you mean 'dask'"),
    (
        ["compare", "ungm", "--scheduler", "tcp://host"],
        "expected an address such as tcp://host:8786",
    ),
    (
        ["compare", "ungm", "--models", "3"],
        "models: expected none, since scenario 'ungm' has one model, got 3",
    ),
    (["show", "/nowhere/study.sqlite"], "no file /nowhere/study.sqlite"),
    (["export", "/nowhere"], "export: needs --csv PATH or --parquet PATH"),
    (["comprae"], "No such command"),
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, message):
    assert message in refused(*arguments)


def test_a_cluster_and_workers_contradict_each_other():
    pytest.importorskip("distributed")
    told = refused("compare", "ungm", "--scheduler", "tcp://127.0.0.1:9", "--workers", "2")
    assert "workers: the cluster at tcp://127.0.0.1:9 has its own" in told


def test_the_process_exits_2_without_a_traceback():
    done = subprocess.run(
        [sys.executable, "-m", "herdfilter", "compare", "ungn"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == "Error: scenario: unknown 'ungn'; did you mean 'ungm'?\n"
    assert done.stdout == ""


WALK = """
title = "A walk"
steps = 4
runs = 2
particles = [5]
filters = ["bootstrap"]
[model]
type = "walk.py:Walk"
"""
MODEL = """
from herdfilter.models import LinearGaussian


class Walk(LinearGaussian):
    def __init__(self):
        super().__init__([[1.0]], [[1.0]], [[1.0]], [[1.0]], [0.0], [[1.0]])

    def transition_mean(self, x, dt, control, step):
        return x if step < BAD_STEP else x[:, 5]
"""


@cases("bad_step workers", (1, "1"), pytest.param(3, "2", marks=pytest.mark.slow))
def test_a_fault_of_ones_own_model_names_the_line_and_leaves_nothing(tmp_path, bad_step, workers):
    """Found before the work if it is in the first step, else in the first run."""
    (tmp_path / "walk.py").write_text(MODEL.replace("BAD_STEP", str(bad_step)))
    (tmp_path / "walk.toml").write_text(WALK)
    before = {path for path in tmp_path.rglob("*") if "__pycache__" not in path.parts}
    out = tmp_path / "new" / "out"
    told = refused("compare", tmp_path / "walk.toml", "--workers", workers, "-q", "--out", out)
    assert "(walk.py, line 10, in " in told
    assert {path for path in tmp_path.rglob("*") if "__pycache__" not in path.parts} == before


def test_importing_the_package_and_the_command_line_stays_light():
    heavy = "{'pandas', 'matplotlib', 'rich', 'joblib', 'scipy.stats', 'scipy.optimize', 'pooch', 'filterpy'}"
    heavier = "{'sqlite3', 'distributed'}"
    code = f"import herdfilter, herdfilter.cli, sys; sys.exit(', '.join(({heavy} | {heavier}) & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"imported at once: {done.stderr}"
