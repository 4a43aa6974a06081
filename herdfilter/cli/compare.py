"""``herdfilter compare``, ``show`` and ``export``: run a comparison, show its findings again, and export its runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click import argument, command, option

from herdfilter import _checks
from herdfilter.cli import terminal
from herdfilter.filters.progress import live_line

if TYPE_CHECKING:
    from herdfilter.study.results import StudyResult

# File in the output folder with the text that the terminal shows.
TABLE_FILE = "table.txt"


def output_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that control how much is printed."""
    for *names, text in (
        ("-v", "--verbose", "Add the settings of the study, and all failures."),
        ("-q", "--quiet", "Only the verdict, and errors."),
        ("--wide", "All columns side by side; otherwise the most important ones in 80 characters."),
    ):
        function = option(*names, is_flag=True, help=text)(function)
    return function


def print_findings(result: StudyResult, wide: bool, quiet: bool, verbose: bool) -> None:
    """Print table, failures, definitions and verdict; only the verdict if `quiet`, and settings if `verbose`."""
    from herdfilter.report import wording

    if quiet:
        terminal.echo(result.verdict)
        return
    with live_line("summary"):
        # Intervals by bootstrap take a moment.
        text = wording.findings_text(result, wide)
    terminal.echo("\n" + text, nl=False)
    if verbose:
        # Settings of the study and its filters, the machines used, and the failures one by one.
        described = result.description.get("filters", {})
        entries = wording.configuration(result)
        for name in result.study.filters:
            entries.append((name, wording.built(described.get(name))))
        for row in result.runs.query("error != ''").to_dict("records"):
            label = f"{row['filter']}, run {row['run']}, n = {row['n_particles']}"
            entries.append((label, row["error"]))
        terminal.echo("\n" + "\n".join(terminal.with_text(None, entries)))


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
        raise terminal.InputError(
            f"out: cannot write into {out} ({error.strerror or error}){hint}"
        ) from None
    if not quiet:
        names = [*existing, TABLE_FILE, *tables]
        names += dict.fromkeys(f"{path.stem}.png/.svg" for path in paths)
        terminal.echo(f"Wrote {', '.join(names)} into {out}\nThe report: {report}")


# What is left out is None: then the scenario decides, or `run_study`.
@command("compare", short_help="Compare filters on a scenario.")
@argument("scenario", shell_complete=terminal.complete_scenario)
@option(
    "--filters",
    shell_complete=terminal.complete_filters,
    metavar="NAMES",
    help="Names, separated by commas. [default: the scenario's]",
)
@option(
    "--particles",
    metavar="COUNTS",
    help="Particle counts, such as 50,100. [default: the scenario's]",
)
@option(
    "--runs",
    type=int,
    metavar="N",
    help="Runs; for a family, of each model. [default: the scenario's]",
)
@option(
    "--models",
    type=int,
    metavar="M",
    help="Models of a family, such as `random`. [default: the scenario's]",
)
@option(
    "--first-model",
    type=int,
    metavar="S",
    help="Seed of the first model: to 9,999 to tune, from 1,000,000 to claim. [default: the scenario's]",
)
@option("--seed", default=0, show_default=True, help="Root of all random numbers.")
@option("--workers", type=int, metavar="W", help="Processes. [default: one per processor core]")
@option("--data", metavar="DIR", help="Folder of the real data, for scenarios that need them.")
@option(
    "--out",
    type=terminal.PATH,
    metavar="DIR",
    help="Folder for report, tables, figures; study.sqlite stores every run.",
)
@option(
    "--resume",
    is_flag=True,
    help="Continue the comparison in --out, with more --runs or --models if you like.",
)
@option(
    "--run-timeout",
    type=float,
    metavar="SECONDS",
    help="A run whose filter takes longer has failed. [default: no limit]",
)
@option(
    "--scheduler",
    metavar="WHERE",
    help="local, dask (here) or a cluster, tcp://host:8786. [default: local]",
)
@output_options
def compare_command(
    scenario: str,
    filters: str | None,
    particles: str | None,
    runs: int | None,
    seed: int,
    workers: int | None,
    data: str | None,
    out: Path | None,
    resume: bool,
    run_timeout: float | None,
    scheduler: str | None,
    wide: bool,
    quiet: bool,
    verbose: bool,
    **family: int | None,
) -> None:
    """Compare filters on a SCENARIO: a name that `herdfilter scenarios` lists, a TOML file, or a model.

    A model is given as FILE:FUNCTION, a function in a Python file that makes it.

    A TOML file runs the code that it names: Python files beside it in `type`, modules under `imports`. Read both keys
    of a file from elsewhere first; without them it uses herdfilter's own classes alone.
    """
    # loaded here, as `herdfilter --help` needs none of it
    import joblib

    from herdfilter.study.engine import run_study
    from herdfilter.study.plan import plan_study
    from herdfilter.study.store import FILE_NAME
    from herdfilter.study.workers import check_scheduler

    if resume and out is None:
        raise terminal.InputError("resume: needs --out, the folder of the comparison to continue")
    # What is wrong with an option is said before the scenario is prepared, which may take seconds.
    if run_timeout is not None:
        _checks.as_positive("run_timeout", run_timeout)
    if "://" in check_scheduler(scheduler) and workers is not None:
        raise terminal.InputError(
            f"workers: the cluster at {scheduler} has its own; leave out --workers"
        )
    workers = joblib.cpu_count() if workers is None else _checks.check_count("workers", workers)
    try:
        counts = None if particles is None else [int(count) for count in particles.split(",")]
    except ValueError:
        raise terminal.InputError(
            f"particles: expected integers separated by commas, got {particles!r}"
        ) from None
    with live_line(f"preparing {scenario}", visible=not quiet):
        study = plan_study(scenario, filters, counts, runs, seed, data, **family)
    # Every finished run is written at once, and so nothing is lost if the machine stops.
    store = None if out is None else out / FILE_NAME
    # Interrupted from here on, the command says how to continue.
    with terminal.finishing(out, FILE_NAME):
        result = run_study(study, workers, not quiet, store, resume, scheduler, run_timeout)
    print_findings(result, wide, quiet, verbose)
    if out is not None:
        write_findings(result, out, quiet, [FILE_NAME])


@command(short_help="Show the findings of a comparison again.")
@argument("file", type=terminal.PATH)
@option("--out", type=terminal.PATH, metavar="DIR", help="Folder for report, tables and figures.")
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
        terminal.output_folder(out),
    ):
        result = store.result()
    print_findings(result, wide, quiet, verbose)
    if out is not None:
        write_findings(result, out, quiet)


@command(short_help="Write the runs of a comparison as CSV or Parquet.")
@argument("file", type=terminal.PATH)
@option("--csv", type=terminal.PATH, help="CSV file to write.")
@option("--parquet", type=terminal.PATH, help="Parquet file to write.")
def export(file: Path, csv: Path | None, parquet: Path | None) -> None:
    """Write the runs of a study.sqlite as CSV or Parquet: one row per filter, particle count and run.

    FILE is a study.sqlite, or the folder that holds one.
    """
    from herdfilter.study.store import open_for_reading

    if csv is None and parquet is None:
        raise terminal.InputError("export: needs --csv PATH or --parquet PATH")
    if parquet is not None:
        try:
            # Pandas would report this only after the table is read.
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise terminal.InputError(
                f"parquet: needs the package pyarrow ({error}); install herdfilter[parquet]"
            ) from None
    with open_for_reading(file) as store:
        table = store.table()
    for path, write in ((csv, table.to_csv), (parquet, table.to_parquet)):
        if path is not None:
            try:
                write(path, index=False)
            except OSError as error:
                raise terminal.InputError(
                    f"cannot write {path} ({error.strerror or error})"
                ) from None
            click.echo(f"Wrote {len(table)} rows into {path}")
