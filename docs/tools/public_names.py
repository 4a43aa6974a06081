"""The public names of the package: what its public modules list in `__all__`, each at one place."""

from __future__ import annotations

import inspect
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import herdfilter
from herdfilter.study.data import SCENARIOS

PACKAGE = Path(herdfilter.__file__).parent

INNER = {"herdfilter.pictures"}
"""Modules that have a name of their own for what another one, of as short a name, offers to users."""


def public_modules() -> list[str]:
    """Names of the modules that list what is public in them, from the package down; nothing is imported for it."""
    found = []
    places = {path: path.relative_to(PACKAGE.parent) for path in PACKAGE.rglob("*.py")}
    places |= {
        path: Path("herdfilter/study/data", path.name)
        for path in SCENARIOS.glob("*.py")
        if path.stem != "__init__"
    }
    for path, place in places.items():
        parts = place.with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        listed = re.search(r"^__all__\b", path.read_text(encoding="utf-8"), re.M)
        if listed and not any(part.startswith("_") for part in parts):
            found.append(".".join(parts))
    return sorted(found, key=lambda name: (name.count("."), name in INNER, name))


def is_shared(found: Any) -> bool:
    """Whether an object knows where it was defined, so that two names of it can be told to be one."""
    return inspect.isclass(found) or inspect.isroutine(found) or callable(found)


@cache
def public_names() -> dict[str, Any]:
    """Full name -> object, the shortest name of each object; modules are places, not names."""
    names: dict[str, Any] = {}
    known: set[int] = set()
    for module in public_modules():
        holder = import_module(module)
        for name in holder.__all__:
            found = getattr(holder, name)
            if isinstance(found, ModuleType) or (is_shared(found) and id(found) in known):
                continue
            known.add(id(found))
            names[f"{module}.{name}"] = found
    return names


def defined_in(full: str, found: Any) -> str:
    """Return the module that defines a public object; of a constant the one that lists it."""
    return found.__module__ if is_shared(found) else full.rpartition(".")[0]
