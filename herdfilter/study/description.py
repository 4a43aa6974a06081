"""Objects in terms of JSON, and digests of code and data: by them a store tells whether a study is still the same."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from types import FunctionType, ModuleType
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Return a value in terms of JSON: objects by their public attributes, functions by name and digest of their text.

    Equal descriptions mean equal objects as far as these tell; what a function reads from elsewhere goes unnoticed.
    """
    match value:
        case None | bool() | int() | float() | str():
            return value
        case np.generic() | np.ndarray():
            return value.tolist()
        case Mapping():
            return {str(k): plain(v) for k, v in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(v) for v in value]
        case functools.partial():
            return {
                "partial": plain(value.func),
                "args": plain(value.args),
                "keywords": plain(value.keywords),
            }
        case FunctionType() if value.__closure__:
            cells = [plain(cell.cell_contents) for cell in value.__closure__]
            return {"function": digest(value), "captured": cells}
        case FunctionType() | type():
            return digest(value)
    if is_dataclass(value):
        attributes = {f.name: getattr(value, f.name) for f in fields(value)}
    elif hasattr(value, "__dict__"):
        attributes = vars(value)
    else:
        return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
    public = {k: plain(v) for k, v in attributes.items() if not k.startswith("_")}
    return public if type(value).__module__ in _PARTS_OF_A_SCENARIO else {"type": _name(value)} | public


_PARTS_OF_A_SCENARIO = tuple(f"herdfilter.study.{name}" for name in ("scenario", "targets"))


def _name(value: Any) -> str:
    cls = type(value)
    return f"{cls.__module__}.{cls.__qualname__}"


def digest(value: Any) -> str:
    """Return a short text that tells values apart: name and text of a function, class or module, contents of anything else.

    What comes with the package has its name only: its version is recorded.
    """
    if isinstance(value, ModuleType):
        name = value.__name__
    elif isinstance(value, (type, FunctionType)):
        name = f"{value.__module__}.{value.__qualname__}"
    else:
        return _hash(json.dumps(plain(value)))
    if name.startswith("herdfilter."):
        return name
    try:
        return f"{name} {_hash(inspect.getsource(value))}"
    except (OSError, TypeError):  # typed in at a prompt
        return name


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Name what differs between two descriptions, ``steps: 100 there, 50 now``.

    A key that one of them lacks and that is empty in the other is no difference: it is newer than the one.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            if (old | new)[key] in (None, [], {}) and not (key in old and key in new):
                continue
            yield from differences(old.get(key), new.get(key), f"{path}.{key}" if path else key)
    elif json.dumps(old) != json.dumps(new):
        yield f"{path}: {_short(old)} there, {_short(new)} now"


def _short(value: Any) -> str:
    text = "nothing" if value is None else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
