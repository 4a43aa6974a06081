"""A library that is not installed is named, with the extra that has it."""

import importlib
import sys

import pytest


def test_particles(monkeypatch):
    for name in ("particles", "particles.state_space_models"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "herdfilter.adapters.particles", raising=False)
    with pytest.raises(
        ImportError, match=r"^particles: .*; pip install 'herdfilter\[particles\]'$"
    ):
        importlib.import_module("herdfilter.adapters.particles")
