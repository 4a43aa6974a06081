"""How the library finds this package."""

import importlib
import importlib.metadata
import sys
import tomllib
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[3] / "pyproject.toml"


@pytest.mark.skipif(
    not PROJECT.is_file(), reason="the project's file is not part of this installation"
)
def test_library_finds_the_plugin(monkeypatch):
    pytest.importorskip("stonesoup", reason="the optional library Stone Soup is not installed")
    declared = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["entry-points"]
    group = "stonesoup.plugins"
    entries = [importlib.metadata.EntryPoint(*entry, group) for entry in declared[group].items()]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: entries)
    monkeypatch.delitem(sys.modules, group, raising=False)
    monkeypatch.delitem(sys.modules, f"{group}.herdfilter", raising=False)
    importlib.import_module(group)
    plugin = importlib.import_module(f"{group}.herdfilter")
    assert (
        plugin.HerdfilterProposal
        is importlib.import_module("herdfilter.adapters.stone_soup").HerdfilterProposal
    )
