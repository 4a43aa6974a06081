"""The findings of a comparison: print them, write them into a folder, show them again from a store, export the runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click import argument, command, option

from herdfilter.cli.terminal import PATH, InputError, echo, output_folder, with_text
from herdfilter.filters.progress import live_line

if TYPE_CHECKING:
    from herdfilter.study.results import StudyResult

# File in the output folder with the text that the terminal shows.
TABLE_FILE = "table.txt"


def output_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that control how much is printed."""
    for names, text in (
        (("-v", "--verbose"), "Add the settings of the study, and all failures."),
        (("-q", "--quiet"), "Only the verdict, and errors."),
        (
            ("--wide",),
            "All columns side by side; otherwise the most important ones in 80 characters.",
        ),
    ):
        function = option(*names, is_flag=True, help=text)(function)
    return function


def print_findings(result: StudyResult, wide: bool, quiet: bool, verbose: bool) -> None:
    """Print table, failures, definitions and verdict; only the verdict if `quiet`, and settings if `verbose`."""
    from herdfilter.report import wording

    if quiet:
        echo(result.verdict)
        return
    with live_line("summary"):
        # Intervals by bootstrap take a moment.
        text = wording.findings_text(result, wide)
    echo("\n" + text, nl=False)
    if verbose:
        # Settings of the study and its filters, the machines used, and the failures one by one.
        described = result.description.get("filters", {})
        entries = wording.configuration(result)
        for name in result.study.filters:
            entries.append((name, wording.built(described.get(name))))
        for row in result.runs.query("error != ''").to_dict("records"):
            label = f"{row['filter']}, run {row['run']}, n = {row['n_particles']}"
            entries.append((label, row["error"]))
        echo("\n" + "\n".join(with_text(None, entries)))


def write_findings(
    result: StudyResult, out: Path, quiet: bool, existing: Sequence[str] = ()
) -> None:
    """Write tables, figures and report into a folder, and print their names after those of `existing` files."""
    from herdfilter.plotting import drawings, save_figures
    from herdfilter.report import write_report
    from herdfilter.report.wording import findings_text
    from herdfilter.study.workers import begin

    try:
        with live_line("figures and report", visible=not quiet):
            # The report reuses the figures that are drawn for the files.
            plans = drawings(result)
            # In a child, while the report is made here.
            figures = begin(partial(save_figures, result, out, plans))
            (out / TABLE_FILE).write_text(findings_text(result), encoding="utf-8")
            # The same numbers as in the store, for spreadsheets.
            tables = {"runs.csv": result.runs, "summary.csv": result.summary}
            if result.models is not None:
                tables["models.csv"] = result.models
            for name, table in tables.items():
                table.to_csv(out / name, index=False)
            report = write_report(result, out, plans)
            paths = figures()
    except OSError as error:
        hint = (
            f"; the runs are kept in {out / existing[0]}, `herdfilter show` reads them"
            if existing
            else ""
        )
        raise InputError(
            f"out: cannot write into {out} ({error.strerror or error}){hint}"
        ) from None
    if not quiet:
        names = [*existing, TABLE_FILE, *tables]
        names += dict.fromkeys(f"{path.stem}.png/.svg" for path in paths)
        echo(f"Wrote {', '.join(names)} into {out}\nThe report: {report}")


@command(short_help="Show the findings of a comparison again.")
@argument("file", type=PATH)
@option("--out", type=PATH, metavar="DIR", help="Folder for report, tables and figures.")
@output_options
def show(file: Path, out: Path | None, wide: bool, quiet: bool, verbose: bool) -> None:
    """Show the findings of `compare --out` again, without running anything: the table, and with --out all files.

    FILE is a study.sqlite, or the folder that holds one. If the comparison was interrupted, only runs that all filters have
    finished count.
    """
    from herdfilter.study.store import open_for_reading

    with (
        live_line(f"reading {file}", visible=not quiet),
        open_for_reading(file) as store,
        output_folder(out),
    ):
        result = store.result()
    print_findings(result, wide, quiet, verbose)
    if out is not None:
        write_findings(result, out, quiet)


@command(short_help="Write the runs of a comparison as CSV or Parquet.")
@argument("file", type=PATH)
@option("--csv", type=PATH, help="CSV file to write.")
@option("--parquet", type=PATH, help="Parquet file to write.")
def export(file: Path, csv: Path | None, parquet: Path | None) -> None:
    """Write the runs of a study.sqlite as CSV or Parquet: one row per filter, particle count and run.

    FILE is a study.sqlite, or the folder that holds one.
    """
    from herdfilter.study.store import open_for_reading

    if csv is None and parquet is None:
        raise InputError("export: needs --csv PATH or --parquet PATH")
    if parquet is not None:
        try:
            # Pandas would report this only after the table is read.
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise InputError(
                f"parquet: needs the package pyarrow ({error}); install herdfilter[parquet]"
            ) from None
    with open_for_reading(file) as store:
        table = store.table()
    for path, write in ((csv, table.to_csv), (parquet, table.to_parquet)):
        if path is not None:
            try:
                write(path, index=False)
            except OSError as error:
                raise InputError(f"cannot write {path} ({error.strerror or error})") from None
            click.echo(f"Wrote {len(table)} rows into {path}")
