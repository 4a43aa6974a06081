"""The command line. What is heavy to import is imported where it is used."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from herdfilter import __version__
from herdfilter.data_cli import data

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

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
        except (ValueError, TypeError, OSError) as error:
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
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Folder for tables and figures.")
def compare(
    scenario: str,
    filters: str | None,
    particles: str | None,
    runs: int | None,
    seed: int,
    workers: int | None,
    data: str | None,
    out: Path | None,
) -> None:
    """Compare filters on a SCENARIO: a name that `herdfilter scenarios` lists, or a TOML file."""
    import joblib
    from rich.console import Console

    from herdfilter._checks import as_count
    from herdfilter.evaluation.engine import run_study
    from herdfilter.evaluation.study import plan_study
    from herdfilter.evaluation.summary import summarise, verdict

    workers = joblib.cpu_count() if workers is None else as_count("workers", workers)
    study = plan_study(scenario, _names(filters), _counts(particles), runs, seed, data)
    if out is not None:
        _check_writable(out)
    result = run_study(study, workers, progress=True)
    summary = summarise(result.runs)

    console = Console()
    if not console.is_terminal:
        console.width = 140
    intervals = console.width >= 125
    brackets = "; 95 % intervals over runs in brackets" if intervals else ""
    click.echo(f"\n{study.scenario.title}: {study.runs} runs{brackets}")
    console.print(_summary_table(summary, study.scenario, intervals))
    for line in (*_failures(result.runs), *_definition(study.scenario), *_floor(summary), verdict(summary)):
        click.echo(line)
    if out is not None:
        from herdfilter.plotting import save_figures

        result.runs.to_csv(out / "runs.csv", index=False)
        summary.to_csv(out / "summary.csv", index=False)
        names = ["runs.csv", "summary.csv", *(path.name for path in save_figures(result, out))]
        click.echo(f"Wrote {', '.join(names)} into {out}")


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

    unit = f" ({scenario.unit})" if scenario.unit else ""
    columns = {"rmse": f"RMSE\nto truth{unit}", "ratio": f"ratio to\n{summary['baseline'].iloc[0]}"}
    ranking = error_measure(summary)
    if ranking == "reference_error":
        columns = {ranking: f"RMS error\nto reference{unit}"} | columns
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=not intervals)
    table.add_column("filter", no_wrap=True)
    rates = (_outcome(scenario), *(["failed"] * intervals), "ms a\nstep")
    for header in ("n", "median\nerror", *columns.values(), *rates):
        table.add_column(header, justify="right", no_wrap=True)
    counts = list(dict.fromkeys(summary["n_particles"]))
    for _, row in summary.iterrows():
        share = row["diverged"] if _outcome(scenario) == "diverged" else 1 - row["diverged"]
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


def _outcome(scenario: Scenario) -> str:
    """With real data the good end of a run is what counts: it localised."""
    return "diverged" if scenario.data is None or scenario.divergence is None else "localised"


def _definition(scenario: Scenario) -> list[str]:
    bound = scenario.divergence
    if bound is None:
        return []
    unit = f" {scenario.unit}" if scenario.unit else ""
    side = "above" if _outcome(scenario) == "diverged" else "of at most"
    last = f"the last {100 * bound.final_part:.0f} % of the steps"
    return [f"{_outcome(scenario)}: RMSE to the truth {side} {bound.rmse_above:g}{unit} in {last}"]


def _floor(summary: pd.DataFrame) -> list[str]:
    """Say how exact the reference is, where it is not."""
    sd = summary["reference_sd"].max()
    return (
        [f"standard error of the reference itself: {sd:.2g} (root mean square over runs)"] if sd > 0 else []
    )


def _failures(runs: pd.DataFrame) -> list[str]:
    lines = []
    for name, rows in runs.groupby("filter", sort=False):
        errors = rows["error"][rows["error"] != ""]
        if len(errors):
            lines.append(f"{name} failed in {len(errors)} of {len(rows)} runs; the first: {errors.iloc[0]}")
    return lines
