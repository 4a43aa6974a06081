"""Figures of papers beside ours: what a row of `as_published.csv` is, and when a figure agrees.

A paper is in one of the modules ``published_*.py``. The function ``rows(args)`` of a module returns the rows of all of its
papers, made by `row`; other functions of it, named after a first author, return those of one paper.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

MODULES = sorted(
    path.stem.removeprefix("published_") for path in Path(__file__).parent.glob("published_*.py")
)
"""Modules that hold papers, without the beginning of their names."""
SUFFIXES = {"dapper": "_dapper"}
"""Ends of the results files of modules that were added later: the rows of the others stay as they were measured."""


def suffix(name: str) -> str:
    """Return the end of the name of the results file that a module, or one of its papers, is written to."""
    return SUFFIXES.get(name.partition(".")[0], "")


def rows(name: str, args) -> Iterable[dict]:
    """Return the rows of a module ("classic") or of one of its papers ("classic.gordon")."""
    module, _, paper = name.partition(".")
    return getattr(import_module(f"published_{module}"), paper or "rows")(args)


def row(
    paper: str,
    place: str,
    quantity: str,
    theirs: str | None,
    ours: tuple[float, float, float],
    runs: int,
    note: str = "",
    their_runs: int | None = None,
    their_error: float = 0.0,
) -> dict[str, object]:
    """Return one row.

    Parameters
    ----------
    paper : str
        Authors and year, as "Gordon, Salmond and Smith (1993)".
    place : str
        Table, figure or section, and the row of a table.
    quantity : str
        The measure, with its unit.
    theirs : str, optional
        Their figure as it is printed, so that its rounding is known; None if it could not be read.
    ours : tuple of three floats
        Our figure, and the low and high end of its 95 % interval; the three are equal where nothing is random.
    runs : int
        Our number of runs.
    note : str
        One sentence. For a figure that was not read, it names what is compared.
    their_runs : int, optional
        Their number of runs, where theirs is a mean of as many: its error follows from the spread of our runs.
    their_error : float
        Standard error of theirs, where it is printed.
    """
    value, low, high = map(float, ours)
    if their_runs is not None:
        their_error = (high - low) / (2 * 1.96) * math.sqrt(runs / their_runs)
    return {
        "paper": paper,
        "place": place,
        "quantity": quantity,
        "theirs": math.nan if theirs is None else float(theirs.replace(",", "")),
        "ours": value,
        "low": low,
        "high": high,
        "runs": runs,
        "verdict": verdict(theirs, (value, low, high), their_error),
        "note": note,
    }


def verdict(theirs: str | None, ours: tuple[float, float, float], their_error: float = 0.0) -> str:
    """Decide whether a figure of a paper agrees with ours.

    "not read": their figure could not be read, `theirs` is None. "agrees": it lies in our 95 % interval after this is made
    wider, on either side, by their Monte Carlo error (the half-widths of both intervals are added as root of the sum of
    squares, as for a difference) and then by half a unit of the last digit that they print. "differs": it lies outside.
    """
    if theirs is None:
        return "not read"
    value, low, high = ours
    digits = theirs.lower().partition("e")
    decimals = len(digits[0].partition(".")[2]) - int(digits[2] or 0)
    rounding = 0.5 * 10.0**-decimals
    printed = float(theirs.replace(",", ""))
    side = value - low if printed < value else high - value
    return (
        "agrees"
        if abs(printed - value) <= math.hypot(side, 1.96 * their_error) + rounding * (1 + 1e-9)
        else "differs"
    )
