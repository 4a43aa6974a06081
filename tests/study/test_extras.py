"""What is not installed is told in one line that names the extra."""

import sys

import pytest
from click.testing import CliRunner

from herdfilter.cli import main
from herdfilter.report.parts import equations
from herdfilter.study.data import fetch
from herdfilter.study.scenario import load_scenario


def test_a_download_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"install herdfilter\[data\]"):
        fetch("Plaza1_.mat", to=tmp_path)
    told = CliRunner().invoke(main, ["data", "fetch", "plaza", "--to", str(tmp_path)])
    assert told.exit_code == 2
    assert told.stderr.count("\n") == 1


def test_a_parquet_file_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    told = CliRunner().invoke(main, ["export", str(tmp_path), "--parquet", str(tmp_path / "x")])
    assert told.exit_code == 2
    assert "install herdfilter[parquet]" in told.stderr


def test_the_report_is_written_without_equations(monkeypatch):
    monkeypatch.setitem(sys.modules, "docutils", None)
    monkeypatch.setitem(sys.modules, "docutils.core", None)
    assert "herdfilter[equations]" in equations(load_scenario("ungm"))
