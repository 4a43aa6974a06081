"""A library that is not installed is named, with the extra that has it."""

import importlib
import sys

from helpers import cases, refusal


@cases("library adapter", ("particles", "particles"), ("stonesoup", "stone_soup"))
def test_missing_library_names_the_extra(monkeypatch, library, adapter):
    adapter = f"herdfilter.adapters.{adapter}"
    for name in [library, *sys.modules]:
        if name.startswith(adapter):
            monkeypatch.delitem(sys.modules, name)
        elif name.partition(".")[0] == library:
            monkeypatch.setitem(sys.modules, name, None)
    with refusal(rf"pip install 'herdfilter\[{library}\]'", ImportError):
        importlib.import_module(adapter)
