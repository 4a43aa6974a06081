"""``herdfilter paper``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from herdfilter.cli.folders import Place, check_writable
from herdfilter.cli.tables import in_blocks

if TYPE_CHECKING:
    import pandas as pd


@click.command(short_help="Draw the five figures of the paper.")
@click.argument("figures", nargs=-1, metavar="[fig1 .. fig5 | all]")
@click.option(
    "--out",
    type=Place(),
    metavar="DIR",
    default=Path("results/paper"),
    show_default=True,
    help="Folder for figures and numbers.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Root of all random numbers.")
@click.option("--quick", is_flag=True, help="Fewer points, mixtures and dimensions.")
@click.option("-q", "--quiet", is_flag=True, help="Only errors.")
def paper(figures: tuple[str, ...], out: Path, seed: int, quick: bool, quiet: bool) -> None:
    """Draw the figures of Wolf and Baum, "Continuous Herded Gibbs Sampling", from fresh computation.

    All five unless some are named. Each is written as PNG, SVG and CSV, and a table says what was measured beside what the
    paper states.
    """
    from herdfilter._checks import check_count
    from herdfilter.paper import figure_names, reproduce
    from herdfilter.study.progress import stage

    names = figure_names(figures)
    check_count("seed", seed, 0, None)
    check_writable(out)
    for name in names:
        with stage(name, not quiet):
            result = reproduce(name, seed, quick)
        paths = result.save(out)
        if not quiet:
            click.echo("\n".join(["", result.title, "", *_table(result.table), ""]))
            click.echo(f"Wrote {', '.join(path.name for path in paths)} into {out}")


def _table(frame: pd.DataFrame) -> list[str]:
    """Lay a data frame out: numbers with three digits."""
    from herdfilter.study.columns import digits

    rows = [
        [digits(cell) if isinstance(cell, float) else str(cell) for cell in row] for row in frame.itertuples(index=False)
    ]
    return in_blocks([str(name) for name in frame], rows, width=None)
