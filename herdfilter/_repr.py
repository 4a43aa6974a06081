"""Reprs of objects, lines of tables and listings of packages. A repr writes numbers out and arrays by their shape."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum
from importlib import import_module
from textwrap import wrap
from typing import Any

import numpy as np

from herdfilter._checks import shortened

LONGEST_VECTOR = 4  # entries of a vector that is still written out
PART_WIDTH = 60  # characters of a value in a repr; longer ones lose their middle

LINE_WIDTH = 80  # characters of a line, whatever the terminal
COLUMN_GAP = "  "
NARROWEST_HEADING = 8  # headings of up to this many characters stay on one line


def summary_repr(thing: Any, /, **facts: Any) -> str:
    """Return ``Class(name=value, ...)`` with the class of an object and some facts; those that are None are left out."""
    inside = ", ".join(
        f"{name}={brief(value)}" for name, value in facts.items() if value is not None
    )
    return f"{type(thing).__name__}({inside})"


def fields_in_line(self: Any) -> str:
    """Return the repr of an instance of a dataclass; to be used as its ``__repr__``."""
    return summary_repr(
        self, **{field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
    )


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
        inside = ", ".join(map(brief, value))
        if isinstance(value, list):
            return f"[{inside}]"
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    # functions and classes have a name themselves
    return str(getattr(value, "__name__", type(value).__name__))


def html_repr(self: Any) -> str:
    """Return an object in HTML, as its ``_repr_html_`` for notebooks: its repr, and a small picture if one can be drawn."""
    text = f"<code>{html.escape(repr(self))}</code>"
    with suppress(Exception):  # no matplotlib, or nothing to draw yet
        # The pictures import the objects they show: imported here at the top, they would make a circle.
        text += f"<br>{import_module('herdfilter.pictures.notebook').picture(self)}"
    return text


def listing_of(scope: dict[str, Any]) -> Callable[[], list[str]]:
    """Return a ``__dir__`` for the package with this namespace: its public names, and those with double underscores."""
    return lambda: sorted({*scope["__all__"], *(name for name in scope if name.startswith("__"))})


def in_blocks(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    keys: int = 1,
    width: int | None = LINE_WIDTH,
) -> list[str]:
    """Return the lines of a table, in which long headings take several lines.

    If consecutive rows share a name, in the first column, an empty line separates these groups. Columns that do not fit into
    the `width` go into a further block below, in which the first columns, the `keys`, are repeated.
    """
    columns = []
    for i, (head, *cells) in enumerate(zip(heads, *rows, strict=True)):
        size = max([*map(len, cells), *map(len, head.split()), min(len(head), NARROWEST_HEADING)])
        pad = str.rjust if i else str.ljust
        columns.append([pad(line, size) for line in [*wrap(head, size), *cells]])
    height = max(map(len, columns))
    columns = [[" " * len(column[-1])] * (height - len(column)) + column for column in columns]
    blocks = [columns[:keys]]
    for column in columns[keys:]:
        line = COLUMN_GAP.join(cells[-1] for cells in [*blocks[-1], column])
        # at least one column a block, however wide it is
        if width is not None and len(line) > width and len(blocks[-1]) > keys:
            blocks.append(columns[:keys])
        blocks[-1].append(column)
    names = [row[0] for row in rows]
    grouped = len(set(names)) < len(names)
    lines: list[str] = []
    for block in blocks:
        block_lines = [COLUMN_GAP.join(line).rstrip() for line in zip(*block, strict=True)]
        top = height - len(rows)
        lines += ["", *block_lines[:top], "-" * max(map(len, block_lines))]
        for i, line in enumerate(block_lines[top:]):
            new_group = grouped and i and names[i] != names[i - 1]
            lines += ["", line] if new_group else [line]
    return lines[1:]
