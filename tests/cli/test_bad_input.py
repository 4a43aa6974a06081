"""What does not fit is told in one line."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from herdfilter.cli import main


def run(*arguments):
    return CliRunner().invoke(main, arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "ungn"], "did you mean 'ungm'"),
        (["compare", "nowhere.toml"], "no file nowhere.toml"),
        (["compare", "ungm", "--filters", "boostrap"], "did you mean 'bootstrap'"),
        (["compare", "ungm", "--filters", ","], "filters: expected at least one"),
        (["compare", "ungm", "--particles", "50,many"], "particles: expected integers"),
        (["compare", "ungm", "--particles", "0"], "particles: expected an integer of at least 1, got 0"),
        (["compare", "ungm", "--runs", "0"], "runs: expected an integer of at least 1, got 0"),
        (["compare", "ungm", "--runs", "few"], "'few' is not a valid integer"),
        (["compare", "ungm", "--workers", "-1"], "workers: expected an integer of at least 1, got -1"),
        (["compare", "ungm", "--seed", "-1"], "seed: expected an integer of at least 0, got -1"),
        (["compare", "ungm", "--data", "/"], "takes no data folder"),
        (["compare", "plaza", "--data", "/nowhere"], "/nowhere"),
        (["compare", "ungm", "--fliters", "x"], "No such option"),
        (["compare"], "Missing argument"),
        (
            ["compare", "ungm", "--run-timeout", "0"],
            "run_timeout: expected a positive finite number, got 0.0",
        ),
        (["compare", "ungm", "--resume"], "resume: needs --out"),
        (["compare", "ungm", "--scheduler", "dsak"], "did you mean 'dask'"),
        (["compare", "ungm", "--scheduler", "tcp://host"], "expected an address such as tcp://host:8786"),
        (["show", "/nowhere/study.sqlite"], "no file /nowhere/study.sqlite"),
        (["show", "/"], "no file /study.sqlite"),
        (["export", "/nowhere"], "export: needs --csv PATH or --parquet PATH"),
        (["scenarios", "ungn"], "did you mean 'ungm'"),
        (["filters", "boostrap"], "did you mean 'bootstrap'"),
        (["comprae"], "No such command"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_a_cluster_and_workers_contradict_each_other():
    pytest.importorskip("distributed")
    result = run("compare", "ungm", "--scheduler", "tcp://127.0.0.1:9", "--workers", "2")
    assert result.exit_code == 2
    assert "workers: the cluster at tcp://127.0.0.1:9 has its own" in result.stderr


def test_the_process_exits_2_without_a_traceback():
    done = subprocess.run(
        [sys.executable, "-m", "herdfilter", "compare", "ungn"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == "Error: scenario: unknown 'ungn'; did you mean 'ungm'?\n"
    assert done.stdout == ""


def test_importing_the_package_and_the_command_line_stays_light():
    heavy = "{'pandas', 'matplotlib', 'rich', 'joblib', 'scipy.stats', 'scipy.optimize', 'pooch', 'filterpy'}"
    heavier = "{'sqlite3', 'distributed'}"
    code = f"import herdfilter, herdfilter.cli, sys; sys.exit(', '.join(({heavy} | {heavier}) & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"imported at once: {done.stderr}"
