"""Tables as plain text: never wider than asked for, and no digit cut off."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from herdfilter._checks import printable

if TYPE_CHECKING:
    import pandas as pd

WIDTH = 80
"""Characters of a line, wherever the table goes."""

_GAP = "  "
_HEAD = 8
"""Characters of a heading that are not broken."""


def echo(text: str, **options: Any) -> None:
    """Print on the terminal, which no sign of the text steers."""
    click.echo(printable(text), **options)


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write a table; texts that a spreadsheet would take for a formula have an apostrophe before them (OWASP)."""

    def safe(value: Any) -> Any:
        return f"'{value}" if isinstance(value, str) and value.startswith(tuple("=+-@\t\r")) else value

    table.map(safe).to_csv(path, index=False)


def in_blocks(heads: Sequence[str], rows: Sequence[Sequence[str]], keys: int = 1, width: int | None = WIDTH) -> list[str]:
    """Lay a table out in lines.

    Parameters
    ----------
    heads : sequence of str
        Headings of the columns; long ones take several lines.
    rows : sequence of sequences of str
        Cells; an empty line stands between rows whose first cell differs where some have it in common.
    keys : int
        Number of columns at the left that name a row.
    width : int, optional
        Columns that do not fit beside the others stand in a further block below, with the keys repeated; all stand in one
        block without a width.
    """
    cells = [[row[i] for row in rows] for i in range(len(heads))]
    columns = [_column(head, found, left=i == 0) for i, (head, found) in enumerate(zip(heads, cells, strict=True))]
    lines: list[str] = []
    for block in _blocks([len(column[-1]) for column in columns], keys, width):
        chosen = [columns[i] for i in block]
        tallest = max(len(column) for column in chosen)
        padded = [[" " * len(column[-1])] * (tallest - len(column)) + column for column in chosen]
        laid = [_GAP.join(line).rstrip() for line in zip(*padded, strict=True)]
        rule = "-" * max(map(len, laid))
        top, body = laid[: tallest - len(rows)], laid[tallest - len(rows) :]
        lines += ["", *top, rule, *_with_gaps(body, [row[0] for row in rows])]
    return lines[1:]


def _column(head: str, cells: Sequence[str], left: bool) -> list[str]:
    """Lines of one column, all of one width: the heading, as narrow as the cells allow, and the cells."""
    widest = max([*map(len, cells), *map(len, head.split()), min(len(head), _HEAD)])
    lines = [*wrap(head, widest), *cells]
    return [line.ljust(widest) if left else line.rjust(widest) for line in lines]


def _blocks(widths: Sequence[int], keys: int, width: int | None) -> list[list[int]]:
    """Columns of each block: the keys, and as many others as fit, at least one."""
    first = list(range(keys))
    blocks = [list(first)]
    for i in range(keys, len(widths)):
        block = [*blocks[-1], i]
        needed = sum(widths[j] + len(_GAP) for j in block) - len(_GAP)
        if width is not None and needed > width and len(blocks[-1]) > keys:
            blocks.append([*first, i])
        else:
            blocks[-1] = block
    return blocks


def _with_gaps(lines: Sequence[str], names: Sequence[str]) -> list[str]:
    """Put an empty line between groups of rows of one name, where there is a group of more than one."""
    groups = [[line for line, _ in group] for _, group in groupby(zip(lines, names, strict=True), lambda p: p[1])]
    if all(len(group) == 1 for group in groups):
        return list(lines)
    return [line for i, group in enumerate(groups) for line in (["", *group] if i else group)]


def with_text(heads: Sequence[str], rows: Sequence[Sequence[str]], width: int = WIDTH) -> list[str]:
    """Lay a table out whose last column is running text: it takes what the others leave, in as many lines as it needs."""
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads) - 1)]
    start = sum(widths) + len(_GAP) * len(widths)
    lines = []
    for row in [heads, *rows]:
        named = _GAP.join(cell.ljust(size) for cell, size in zip(row[:-1], widths, strict=True))
        text = wrap(row[-1], width - start) or [""]
        lines.append(f"{named}{_GAP}{text[0]}".rstrip())
        lines += [" " * start + more for more in text[1:]]
    return [lines[0], "-" * width, *lines[1:]]


def definitions(entries: Sequence[tuple[str, str]], width: int = WIDTH) -> list[str]:
    """Lay names and their texts out in lines, the texts indented beside the names."""
    indent = max(len(name) for name, _ in entries) + len(_GAP)
    lines = []
    for name, text in entries:
        parts = wrap(text, width - indent, break_long_words=False) or [""]
        lines.append(f"{name:<{indent}}{parts[0]}".rstrip())
        lines += [" " * indent + part for part in parts[1:]]
    return lines
