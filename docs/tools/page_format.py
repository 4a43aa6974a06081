"""Results files as Markdown: numbers, intervals, tables, and when they were measured."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pandas as pd

Table = tuple[list[str], list[list[object]]]
"""Headings and rows."""
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
sys.path.insert(0, str(RESULTS.parent))

from make_figures import PARTS  # noqa: E402


def read(name: str) -> pd.DataFrame:
    """Return a results file, read once."""
    return _read(RESULTS / f"{name}.csv").copy()


@cache
def _read(path: Path) -> pd.DataFrame:
    return pd.read_csv(
        path,
        **(
            {"dtype": str, "keep_default_na": False} if path.stem in {"measured", "figures"} else {}
        ),
    )


def markdown(heads: Iterable[str], rows: Iterable[Iterable[object]], *sources: str) -> str:
    """Write a table, and below it what made the results files that it is taken from."""
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *rows]
    table = "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
    return f"{table}\n\n{measured(*sources)}\n" if sources else f"{table}\n"


def measured(*sources: str) -> str:
    """Link results files to the list that says when and how they were measured; a dagger marks those kept on purpose."""
    marks = dict.fromkeys(name + "†" * bool(kept(name)) for name in sources)
    return f"*Measured: [{', '.join(marks)}](data.md#provenance)*"


def kept(table: str) -> str:
    """Return why figures were kept on purpose though the code has changed since; nothing if they were not."""
    log = read("figures").set_index("part")["kept"]
    return next(
        (log[name] for name, part in PARTS.items() if table in part.made and name in log), ""
    )


def number(value: float, digits: int = 2) -> str:
    """Write a number with so many digits; nothing for NaN, 0 below 1e-6, no exponent below a million."""
    if pd.isna(value):
        return ""
    if abs(value) < 1e-6:
        return "0"
    text = f"{value:.{digits}g}"
    return f"{float(text):,.0f}" if "e+" in text and abs(value) < 1e6 else text


def interval(row: pd.Series, name: str, digits: int = 2) -> str:
    """Write a value with its interval."""
    text = number(row[name], digits)
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    if text in {"", "0"} or pd.isna(low) or low == high:
        return text
    return f"{text} ({number(low, digits)}, {number(high, digits)})"


def percent(value: float) -> str:
    """Write a share."""
    return "" if pd.isna(value) else f"{100 * value:.{1 if 0 < value < 0.01 else 0}f} %"
