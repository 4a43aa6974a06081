"""What is not installed is told in one line that names the extra."""

import sys

from helpers import refusal, refused

from herdfilter.report.parts import equations
from herdfilter.study.data import fetch
from herdfilter.study.scenario import load_scenario


def test_a_download_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with refusal(r"install herdfilter\[data\]", ImportError):
        fetch("Plaza1_.mat", to=tmp_path)


def test_a_parquet_file_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "install herdfilter[parquet]" in refused("export", tmp_path, "--parquet", tmp_path / "x")


def test_the_report_is_written_without_equations(monkeypatch):
    monkeypatch.setitem(sys.modules, "docutils", None)
    monkeypatch.setitem(sys.modules, "docutils.core", None)
    assert "herdfilter[equations]" in equations(load_scenario("ungm"))
