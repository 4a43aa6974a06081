"""The command line. What is heavy to import is imported where it is used."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from herdfilter import __version__
from herdfilter.cli.data import data

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from herdfilter.evaluation.results import StudyResult
    from herdfilter.evaluation.scenario import Scenario


class InputError(click.ClickException):
    """What the user gave does not fit: one line, exit code 2."""

    exit_code = 2


class _Group(click.Group):
    """Turn errors that blame the input into one line."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except click.UsageError as error:
            raise InputError(error.format_message()) from None
        except (ValueError, TypeError, OSError, ImportError) as error:
            raise InputError(" ".join(str(error).split())) from None


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, package_name="herdfilter")
def main() -> None:
    """Particle filters with herded (deterministic) particles, compared with random ones."""


main.add_command(data)


@main.command()
@click.argument("scenario")
@click.option("--filters", metavar="NAMES", help="Filters, separated by commas. [default: the scenario's]")
@click.option(
    "--particles", metavar="COUNTS", help="Particle counts, such as 50,100. [default: the scenario's]"
)
@click.option("--runs", type=int, metavar="N", help="Monte Carlo runs. [default: the scenario's]")
@click.option("--seed", type=int, default=0, show_default=True, help="Root of all random numbers.")
@click.option("--workers", type=int, metavar="W", help="Processes. [default: one a processor core]")
@click.option("--data", metavar="DIR", help="Folder of the real data, for scenarios that need them.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder for report, tables and figures, and for study.sqlite, which takes every finished run at once.",
)
@click.option("--resume", is_flag=True, help="Continue the same comparison in --out where it was cut off.")
@click.option(
    "--scheduler",
    metavar="WHERE",
    help="local, dask (a Dask cluster of W processes on this machine), or the address of a cluster: tcp://host:8786. "
    "[default: local]",
)
def compare(
    scenario: str,
    filters: str | None,
    particles: str | None,
    runs: int | None,
    seed: int,
    workers: int | None,
    data: str | None,
    out: Path | None,
    resume: bool,
    scheduler: str | None,
) -> None:
    """Compare filters on a SCENARIO: a name that `herdfilter scenarios` lists, or a TOML file."""
    import joblib

    from herdfilter._checks import as_count
    from herdfilter.evaluation.engine import run_study
    from herdfilter.evaluation.executors import check_scheduler
    from herdfilter.evaluation.store import FILE_NAME
    from herdfilter.evaluation.study import plan_study

    if resume and out is None:
        raise InputError("resume: needs --out, the folder of the comparison to continue")
    if "://" in check_scheduler(scheduler) and workers is not None:
        raise InputError(f"workers: the cluster at {scheduler} has its own; leave out --workers")
    workers = joblib.cpu_count() if workers is None else as_count("workers", workers)
    study = plan_study(scenario, _names(filters), _counts(particles), runs, seed, data)
    if out is not None:
        _check_writable(out)
    store = None if out is None else out / FILE_NAME
    try:
        result = run_study(study, workers, True, store, resume, scheduler)
    except KeyboardInterrupt:
        if store is not None:
            click.echo(
                f"Cut off; what was finished is in {store}. The same command with --resume goes on.", err=True
            )
        raise
    except ConnectionError as error:
        kept = (
            ""
            if store is None
            else f"; what was finished is in {store}, the same command with --resume goes on"
        )
        raise InputError(f"{error}{kept}") from None
    _tell(result, study.runs)
    if out is not None:
        _write(result, out, [FILE_NAME])


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Folder for report, tables and figures."
)
def show(file: Path, out: Path | None) -> None:
    """Show again what `compare --out` has found, without running anything: the table, and with --out all files.

    FILE is a study.sqlite, or the folder that holds one. Of a comparison that was cut off, those runs count that all
    filters have finished.
    """
    from herdfilter.evaluation.store import open_for_reading
    from herdfilter.evaluation.study import Study

    if out is not None:
        _check_writable(out)
    with open_for_reading(file) as store:
        result = store.result()
        planned = Study.described(store.description()).runs
    _tell(result, planned)
    if out is not None:
        _write(result, out)


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--csv", type=click.Path(path_type=Path), metavar="PATH", help="CSV file to write.")
@click.option("--parquet", type=click.Path(path_type=Path), metavar="PATH", help="Parquet file to write.")
def export(file: Path, csv: Path | None, parquet: Path | None) -> None:
    """Write the table of runs of a study.sqlite, one row a filter, particle count and run, as CSV or Parquet.

    FILE is a study.sqlite, or the folder that holds one.
    """
    from herdfilter.evaluation.store import open_for_reading

    if csv is None and parquet is None:
        raise InputError("export: needs --csv PATH or --parquet PATH")
    if parquet is not None:
        _check_parquet()
    with open_for_reading(file) as store:
        table = store.table()
    for path, write in ((csv, table.to_csv), (parquet, table.to_parquet)):
        if path is not None:
            try:
                write(path, index=False)
            except OSError as error:
                raise InputError(f"cannot write {path} ({error.strerror or error})") from None
            click.echo(f"Wrote {len(table)} rows into {path}")


def _check_parquet() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise InputError(
            f"parquet: needs the package pyarrow ({error}); install herdfilter[parquet]"
        ) from None


def _tell(result: StudyResult, planned: int) -> None:
    """Print table, failures, definitions and verdict; `planned` runs were to be made."""
    from rich.console import Console

    from herdfilter.evaluation.summary import summarise, verdict
    from herdfilter.report.wording import definition, floor

    study, summary = result.study, summarise(result.runs)
    console = Console()
    if not console.is_terminal:
        console.width = 140
    intervals = console.width >= 125
    brackets = "; 95 % intervals over runs in brackets" if intervals else ""
    runs = f"{study.runs} runs" if study.runs == planned else f"{study.runs} of {planned} runs"
    click.echo(f"\n{study.scenario.title}: {runs}{brackets}")
    console.print(_summary_table(summary, study.scenario, intervals))
    for line in (*_failures(result.runs), *definition(study.scenario), *floor(summary), verdict(summary)):
        click.echo(line)


def _write(result: StudyResult, out: Path, there: Sequence[str] = ()) -> None:
    """Write tables, figures and report into a folder; files `there` are named with them."""
    from herdfilter.evaluation.summary import summarise
    from herdfilter.plotting import drawings, save_figures
    from herdfilter.report import write_report

    try:
        summary = summarise(result.runs)
        result.runs.to_csv(out / "runs.csv", index=False)
        summary.to_csv(out / "summary.csv", index=False)
        plans = drawings(result, summary)
        figures = save_figures(result, out, plans)
        report = write_report(result, out, plans)
    except OSError as error:
        kept = f"; the runs are kept in {out / there[0]}, `herdfilter show` reads them" if there else ""
        raise InputError(f"out: cannot write into {out} ({error.strerror or error}){kept}") from None
    names = [*there, "runs.csv", "summary.csv", *dict.fromkeys(f"{path.stem}.png/.svg" for path in figures)]
    click.echo(f"Wrote {', '.join(names)} into {out}\nThe report: {report}")


@main.command()
def scenarios() -> None:
    """List the scenarios that come with the package, and their sources."""
    from rich.console import Console
    from rich.padding import Padding

    from herdfilter.evaluation.scenario import load_scenario, scenario_files

    console = Console(highlight=False)
    for name in scenario_files():
        scenario = load_scenario(name)
        console.print(f"[bold]{name}[/]: {scenario.title}")
        console.print(Padding(scenario.source, (0, 0, 1, 4)))


@main.command()
@click.argument("figures", nargs=-1, metavar="[fig1 .. fig5 | all]")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    default=Path("results/paper"),
    show_default=True,
    help="Folder for figures and numbers.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Root of all random numbers.")
@click.option("--quick", is_flag=True, help="Fewer points, mixtures and dimensions.")
def paper(figures: tuple[str, ...], out: Path, seed: int, quick: bool) -> None:
    """Draw the figures of Wolf and Baum, "Continuous Herded Gibbs Sampling", from fresh computation.

    All five unless some are named. Each is written as PNG, SVG and CSV, and a table says what was measured beside what the
    paper states.
    """
    from rich.console import Console

    from herdfilter._checks import as_count
    from herdfilter.paper import figure_names, reproduce

    names = figure_names(figures)
    as_count("seed", seed, 0)
    _check_writable(out)
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 140
    for name in names:
        with console.status(f"{name} ..."):
            result = reproduce(name, seed, quick)
        click.echo(f"\n{result.title}")
        console.print(_plain_table(result.table))
        paths = result.save(out)
        click.echo(f"Wrote {', '.join(path.name for path in paths)} into {out}")


def _plain_table(frame: pd.DataFrame) -> Table:
    """Lay a data frame out for the terminal: text to the left, numbers to the right with three digits."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name, column in frame.items():
        table.add_column(str(name), justify="right" if column.dtype.kind in "if" else "left")
    for row in frame.itertuples(index=False):
        table.add_row(*(_digits(cell) if isinstance(cell, float) else str(cell) for cell in row))
    return table


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _counts(text: str | None) -> list[int] | None:
    try:
        return None if text is None else [int(count) for count in text.split(",")]
    except ValueError:
        raise ValueError(f"particles: expected integers separated by commas, got {text!r}") from None


def _check_writable(folder: Path) -> None:
    """Make the output folder, and find out before the work whether it takes files."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"out: cannot write into {folder} ({error.strerror})") from None


def _summary_table(summary: pd.DataFrame, scenario: Scenario, intervals: bool) -> Table:
    """Lay the summary out for the terminal; with `intervals` in some 120 columns, else in 80."""
    from rich import box
    from rich.table import Table

    from herdfilter.evaluation.summary import error_measure
    from herdfilter.report.wording import outcome

    unit = f" ({scenario.unit})" if scenario.unit else ""
    columns = {"rmse": f"RMSE\nto truth{unit}", "ratio": f"ratio to\n{summary['baseline'].iloc[0]}"}
    ranking = error_measure(summary)
    if ranking == "reference_error":
        columns = {ranking: f"RMS error\nto reference{unit}"} | columns
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=not intervals)
    table.add_column("filter", no_wrap=True)
    rates = (outcome(scenario), *(["failed"] * intervals), "ms a\nstep")
    for header in ("n", "median\nerror", *columns.values(), *rates):
        table.add_column(header, justify="right", no_wrap=True)
    counts = list(dict.fromkeys(summary["n_particles"]))
    for _, row in summary.iterrows():
        share = row["diverged"] if outcome(scenario) == "diverged" else 1 - row["diverged"]
        table.add_row(
            row["filter"],
            str(row["n_particles"]),
            _digits(row[f"{ranking}_median"]),
            *(_with_interval(row, name) if intervals else _digits(row[name]) for name in columns),
            f"{100 * share:.0f} %",
            *([str(row["failures"])] * intervals),
            _digits(row["ms_per_step"]),
            end_section=row["n_particles"] == counts[-1] and len(counts) > 1,
        )
    return table


def _with_interval(row: pd.Series[Any], name: str) -> str:
    """Value and interval; too few runs have none, and neither has a filter's ratio to itself."""
    if not row[f"{name}_high"] > row[f"{name}_low"]:
        return _digits(row[name])
    return f"{_digits(row[name])} [dim]({_digits(row[f'{name}_low'])}, {_digits(row[f'{name}_high'])})[/]"


def _digits(number: float) -> str:
    return "-" if math.isnan(number) else f"{number:#.3g}".rstrip(".")


def _failures(runs: pd.DataFrame) -> list[str]:
    lines = []
    for name, rows in runs.groupby("filter", sort=False):
        errors = rows["error"][rows["error"] != ""]
        if len(errors):
            lines.append(f"{name} failed in {len(errors)} of {len(rows)} runs; the first: {errors.iloc[0]}")
    return lines
