"""``herdfilter board``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from herdfilter.cli.terminal import FilterNames, PathName, echo, finishing, write_csv

LINES = {
    "error": "error / bootstrap's",
    "equal_time": "error / bootstrap's, equal time",
    "log_likelihood": "log-likelihood error / bootstrap's",
    "time": "time per step / bootstrap's",
    "variance_right": "models: right variance",
    "lost": "models: lost, not by bootstrap",
    "uncertain": "models: uncertain reference",
    "compared": "models compared",
    "failures": "runs failed",
}
"""Number of the row -> what the printed table calls it."""


@click.command("board", short_help="Measure a filter on unseen random models: a row of the board.")
@click.argument("entry", metavar="FILTER", type=FilterNames())
@click.option("--models", type=int, metavar="M", default=200, show_default=True, help="Random models; fewer are a trial.")
@click.option("--seed", metavar="DATE", help="Such as 2026-11-27, or the seed of the first model. [default: today]")
@click.option("--particles", type=click.Choice(["50", "500", "50,500"]), default="50,500", show_default=True)
@click.option("--workers", type=int, metavar="W", help="Processes. [default: one per processor core]")
@click.option("--out", type=PathName(), metavar="DIR", help="Folder for board.csv, and a store that keeps each run at once.")
@click.option("--resume", is_flag=True, help="Continue the row in --out, with more --models if you like.")
def board_command(
    entry: str, models: int, seed: str | None, particles: str, workers: int | None, out: Path | None, resume: bool
) -> None:
    """Measure FILTER on random models of the day, beside the bootstrap filter, in one row.

    FILTER is a name that `herdfilter filters` lists, or file.py:name or module:name of a function or class (model,
    n_particles, rng) that returns an object with run(observations). Its result has means (T, d), and may have covariances
    and log_likelihood. The code of the file is run.
    """
    import joblib

    from herdfilter._checks import check_count
    from herdfilter.study.board import board

    counts = list(map(int, particles.split(",")))
    workers = joblib.cpu_count() if workers is None else check_count("workers", workers)
    store = f"{Path(entry).name.replace(':', '-')}.sqlite"
    with finishing(out, store):
        row = board(entry, models, seed, counts, workers, True, None if out is None else out / store, resume)
    echo("\n" + "\n".join(lines_of(row, counts)))
    if out is not None:
        add_to(out / "board.csv", row)
        echo(f"Wrote the row into {out / 'board.csv'}, and the runs into {out / store}")


def lines_of(row: Any, counts: list[int]) -> list[str]:
    """Return a row as a table with a column for each particle count, and what to do with it."""
    from herdfilter._repr import in_blocks
    from herdfilter.study.columns import digits

    def cell(key: str) -> str:
        if isinstance(row[key], int):
            return str(row[key])
        low, high = (row.get(f"{key}_{end}", 0.0) for end in ("low", "high"))
        return digits(row[key]) + (f" ({digits(low)}, {digits(high)})" if high > low else "")

    title = f"{row['filter']} on the board, version {row['board']}: {row['models']} models from seed {row['seed']}"
    table = [[label, *(cell(f"{name}_{n}") for n in counts)] for name, label in LINES.items()]
    next_step = "To enter it, send row and code as a pull request: the page The board says how."
    end = "This is a trial; a row of the board has 200 models." if row["trial"] else next_step
    return [title, "", *in_blocks(["", *(f"n = {n}" for n in counts)], table), "", end]


def add_to(path: Path, row: Any) -> None:
    """Add a row to a file."""
    import pandas as pd

    rounded = pd.DataFrame([row]).map(lambda value: float(f"{value:.4g}") if isinstance(value, float) else value)
    write_csv(pd.concat([pd.read_csv(path), rounded] if path.exists() else [rounded]), path)
