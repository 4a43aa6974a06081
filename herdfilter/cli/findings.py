"""What a comparison has found: told on the terminal, and written into a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from herdfilter.cli.errors import InputError
from herdfilter.cli.tables import WIDTH, definitions, echo, in_blocks, write_csv

if TYPE_CHECKING:
    import pandas as pd

    from herdfilter.study.results import StudyResult

TABLE = "table.txt"
"""The file in the output folder that holds what the terminal shows."""


def how_much(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how much is told."""
    command = click.option("-v", "--verbose", is_flag=True, help="Also how it was made, and all failures.")(command)
    command = click.option("-q", "--quiet", is_flag=True, help="Only the verdict, and errors.")(command)
    return click.option(
        "--wide",
        is_flag=True,
        help="All columns side by side, in place of the most important in 80 characters.",
    )(command)


@dataclass(frozen=True, eq=False)
class Findings:
    """The outcome of a comparison, ready to be told.

    Attributes
    ----------
    result : StudyResult
    planned : int
        Runs that were to be made.
    wide, quiet, verbose : bool
        How much is told (`how_much`).
    """

    result: StudyResult
    planned: int
    wide: bool = False
    quiet: bool = False
    verbose: bool = False

    def tell(self) -> None:
        """Print table, failures, definitions and verdict."""
        from herdfilter.study.progress import told

        if self.quiet:
            echo(self.result.verdict)
            return
        with told(lambda seconds: f"summary ({seconds:.0f} s)"):
            text = self.text(self.wide)
        echo("\n" + text, nl=False)
        if self.verbose:
            echo("\n" + "\n".join(self.how()))

    def text(self, wide: bool = False) -> str:
        """Return what is told without being asked for more."""
        from herdfilter.report.wording import definition, extent, floor, of_models

        study, models = self.result.study, self.result.models
        head = [f"{study.scenario.title}: {extent(study, self.planned)}"]
        if models is None:
            head += ["95 % intervals over runs in brackets, from six runs on"]
            about = floor(self.result.summary)
        else:
            head += ["95 % intervals over models in brackets, from six models on"]
            about = of_models(models)
        words = [*failures(self.result.runs), *definition(study.scenario), *about, self.result.verdict]
        lines = [*head, "", *self._table(wide), "", *(line for text in words for line in wrap(text, WIDTH))]
        return "\n".join(lines) + "\n"

    def how(self) -> list[str]:
        """Return how filters were built, what was computed where, and the failures one by one."""
        from herdfilter.report.wording import built, configuration

        described = self.result.description.get("filters", {})
        entries = configuration(self.result)
        entries += [(name, built(described.get(name))) for name in self.result.study.filters]
        failed = self.result.runs[self.result.runs["error"] != ""]
        entries += [
            (f"{row['filter']}, run {row['run']}, n = {row['n_particles']}", row["error"]) for _, row in failed.iterrows()
        ]
        return definitions(entries)

    def _table(self, wide: bool) -> list[str]:
        from herdfilter.study.columns import headings, headings_of_models

        summary, models = self.result.summary, self.result.models
        if models is None:
            shown = headings(summary, self.result.study.scenario)
        else:
            summary, shown = models, headings_of_models(models)
        shown = [one for one in shown if wide or one.brief]
        rows = []
        for _, row in summary.iterrows():
            cells = []
            for heading in shown:
                ends = heading.interval(row)
                cells.append(heading.value(row) + (f" ({ends[0]}, {ends[1]})" if ends else ""))
            rows.append([row["filter"], str(row["n_particles"]), *cells])
        heads = ["filter", "n", *(heading.label for heading in shown)]
        return in_blocks(heads, rows, keys=2, width=None if wide else WIDTH)

    def write(self, out: Path, there: Sequence[str] = ()) -> None:
        """Write tables, figures and report into a folder; files `there` are named with them."""
        from herdfilter.plotting import drawings, save_figures
        from herdfilter.report import write_report
        from herdfilter.study.progress import told

        result = self.result
        try:
            with told(lambda seconds: f"figures and report ({seconds:.0f} s)", not self.quiet):
                (out / TABLE).write_text(self.text(), encoding="utf-8")
                write_csv(result.runs, out / "runs.csv")
                write_csv(result.summary, out / "summary.csv")
                tables = ["runs.csv", "summary.csv"]
                if result.models is not None:
                    write_csv(result.models, out / "models.csv")
                    tables.append("models.csv")
                plans = drawings(result)
                figures = save_figures(result, out, plans)
                report = write_report(result, out, plans)
        except OSError as error:
            kept = f"; the runs are kept in {out / there[0]}, `herdfilter show` reads them" if there else ""
            raise InputError(f"out: cannot write into {out} ({error.strerror or error}){kept}") from None
        if not self.quiet:
            names = [*there, TABLE, *tables]
            names += dict.fromkeys(f"{path.stem}.png/.svg" for path in figures)
            echo(f"Wrote {', '.join(names)} into {out}\nThe report: {report}")


def failures(runs: pd.DataFrame) -> list[str]:
    """Say which filters failed how often, and the first error of each."""
    lines = []
    for name, rows in runs.groupby("filter", sort=False):
        errors = rows["error"][rows["error"] != ""]
        if len(errors):
            lines.append(f"{name} failed in {len(errors)} of {len(rows)} runs; the first: {errors.iloc[0]}")
    return lines
