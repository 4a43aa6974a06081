"""What an object is, in one line: numbers are written out, arrays are named by their shape."""

from __future__ import annotations

import dataclasses
from enum import Enum
from typing import Any

import numpy as np

from herdfilter._checks import shortened

LONGEST_VECTOR = 4  # entries of a vector that is written out
PART_WIDTH = 60  # characters of a part; a longer one loses its middle


def summary_repr(thing: Any, /, **facts: Any) -> str:
    """Write the name of the class of an object, and some facts; those that are None are left out."""
    inside = ", ".join(f"{name}={brief(value)}" for name, value in facts.items() if value is not None)
    return f"{type(thing).__name__}({inside})"


def fields_in_line(self: Any) -> str:
    """Write an object of a dataclass, as its ``__repr__``."""
    return summary_repr(self, **{field.name: getattr(self, field.name) for field in dataclasses.fields(self)})


def brief(value: Any) -> str:
    """Write a number or a short vector with some digits, an array by its shape, and another object by its class."""
    if isinstance(value, np.ndarray):
        if value.ndim != 1 or len(value) > LONGEST_VECTOR or value.dtype.kind not in "biuf":
            return f"array{value.shape}".replace(",)", ")")
        return f"[{', '.join(map(brief, value))}]"
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, bool | int | str | type(None) | np.generic):
        return shortened(repr(value.item() if isinstance(value, np.generic) else value), PART_WIDTH)
    if isinstance(value, dict):
        return f"{{{len(value)}}}"
    if isinstance(value, tuple | list):
        if len(value) > LONGEST_VECTOR:
            return f"{type(value).__name__}({len(value)})"
        ends = "()" if isinstance(value, tuple) else "[]"
        comma = "," if isinstance(value, tuple) and len(value) == 1 else ""
        return f"{ends[0]}{', '.join(map(brief, value))}{comma}{ends[1]}"
    return str(getattr(value, "__name__", type(value).__name__))  # of functions and classes their own
