"""Commands run in this process, and what a refused one must look like."""

import warnings

import click
import pytest
from helpers import command


@pytest.fixture
def planned(monkeypatch, tmp_path):
    """A comparison ends with exit code 0 where its work would begin; no data are downloaded."""

    def stop(*args, **kwargs):
        raise click.exceptions.Exit(0)

    monkeypatch.setattr("herdfilter.study.engine.run_study", stop)
    monkeypatch.setenv("HERDFILTER_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def fault_of(planned, tmp_path):
    """A function that runs a command, and says what is wrong with the way it was refused: '' if nothing is."""

    def fault_of(*arguments, naming=""):
        before = sorted(tmp_path.rglob("*"))
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            warnings.simplefilter(
                "ignore", ResourceWarning
            )  # of what another test's thread lets go meanwhile; users see none
            result = command(*arguments)
        left = sorted(set(tmp_path.rglob("*")) - set(before))
        if not isinstance(result.exception, SystemExit | None):
            return f"raises {result.exception!r}"[:300]
        if result.exit_code == 0:
            return "is accepted"
        if result.exit_code != 2:
            return f"exits with {result.exit_code}"
        lines = result.stderr.splitlines()
        if len(lines) != 1 or not lines[0].startswith("Error: ") or result.stdout:
            return f"says {result.output!r}"[:300]
        if naming not in result.stderr:
            return f"does not name {naming}: {result.stderr}"[:300]
        if len(lines[0]) > 1000:
            return "says more than a line can hold"
        if warned:
            return f"warns {warned[0].message!r}"[:300]
        return f"leaves {[path.name for path in left]}" if left else ""

    return fault_of
