"""The command line, and the commands beside comparisons. Heavy modules are imported inside the commands that need them."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import click
from click import argument, command, option

from herdfilter._checks import check_count
from herdfilter._repr import in_blocks
from herdfilter._version import __version__
from herdfilter.catalogue.specifications import catalogue, filter_name
from herdfilter.cli.choose import choose_command
from herdfilter.cli.compare import compare_command, export, show
from herdfilter.cli.terminal import (
    PATH,
    Group,
    check_writable,
    complete_filters,
    complete_scenario,
    echo,
    with_text,
)
from herdfilter.filters.progress import live_line

# The \b keeps click from rewrapping the lines.
_COMPLETION = """\b
The shell completes commands, scenarios and filters after this line:
  bash  eval "$(_HERDFILTER_COMPLETE=bash_source herdfilter)"
  zsh   eval "$(_HERDFILTER_COMPLETE=zsh_source herdfilter)"
  fish  _HERDFILTER_COMPLETE=fish_source herdfilter | source
"""


@click.group(
    cls=Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=_COMPLETION,
)
@click.version_option(__version__, package_name="herdfilter")
@option(
    "--log",
    type=click.Choice(["debug", "info", "warning"]),
    help="Log what happens, on the error output.",
)
def main(log: str | None) -> None:
    """Particle filters with herded (deterministic) particles, compared with random ones."""
    if log is not None:
        logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
        # Only our own messages: those of other libraries stay at their level.
        logging.getLogger("herdfilter").setLevel(log.upper())


@command(short_help="List the scenarios, or show one.")
@argument("name", required=False, shell_complete=complete_scenario)
def scenarios(name: str | None) -> None:
    """List the scenarios of the package, or show a scenario's file, which names its source.

    NAME is a scenario of the list, or a TOML file.
    """
    from herdfilter.study.reference import check_reference
    from herdfilter.study.scenario import load_scenario, scenario_files

    files = scenario_files()
    if name is not None:
        # Mistakes in the user's file are reported before it is shown.
        check_reference(load_scenario(name))
        # With a byte order mark, as some editors write it, TOML is still read.
        path = files[name] if name in files else Path(name).expanduser()
        echo(path.read_text(encoding="utf-8-sig").rstrip())
        return
    rows = []
    for key in files:
        scenario = load_scenario(key)
        # The models of a family differ; a model that needs data is not built here, and has as many dimensions as labels.
        dim = steps = "vary"
        if scenario.data is not None:
            dim = str(len(scenario.labels) or "?")
            steps = "data"
        elif not scenario.models:
            dim = str(scenario.build_model().dim)
            steps = str(scenario.steps)
        reference = "none" if scenario.reference is None else str(scenario.reference["type"])
        rows.append([key, dim, steps, reference, scenario.title])
    echo("\n".join(with_text(["name", "dim", "steps", "reference", "what it is"], rows)))
    echo("\nherdfilter scenarios NAME shows its file, with the source of its numbers.")


@command(short_help="List the filters, or tell how one is built.")
@argument("name", required=False, shell_complete=complete_filters)
def filters(name: str | None) -> None:
    """List the filters of the catalogue, or tell how the filter NAME is built."""
    entries = catalogue()
    rows: list[list[str]] = []
    if name is None:
        for key, table in entries.items():
            # The first filter of a group brings the group's heading.
            rows += [["", ""], [table["group"], ""]] if "group" in table else []
            rows.append([f"  {key}", table.get("about", "")])
        echo("\n".join(with_text(["name", "what it is"], rows)))
        echo("\nherdfilter filters NAME tells how it is composed.")
        return
    # Tables leave out the class of most filters.
    parts = {"filter": "ParticleFilter", **entries[filter_name("filter", name)]}
    rows = [["name", name], *([key, str(value)] for key, value in parts.items())]
    echo("\n".join(with_text(None, rows)))


@click.group(short_help="Fetch the real data sets.")
def data() -> None:
    """Fetch the real data sets, which are not part of the package."""


@data.command("list")
def list_files() -> None:
    """List the data sets, their files, and the address of each file."""
    from herdfilter.study.data import DATA_FILES

    for name, file in DATA_FILES.items():
        click.echo(f"{file.data_set:9} {name:26} {file.base_url} ({file.licence})")


@data.command("fetch")
@argument("data_set", metavar="NAME")
@option(
    "--to",
    type=PATH,
    metavar="DIR",
    help="Folder to put them into. [default: HERDFILTER_DATA, or the cache]",
)
@option(
    "--data",
    "source",
    type=PATH,
    metavar="DIR",
    help="Folder to copy them from, without a network.",
)
def fetch_data(data_set: str, to: Path | None, source: Path | None) -> None:
    """Download the files of the data set NAME and check them; intact files that are there already are kept."""
    from herdfilter.study.data import fetch, files_of

    for name in files_of(data_set):
        with live_line(f"fetching {name}"):
            # An empty variable is not a folder.
            path = fetch(name, to or os.environ.get("HERDFILTER_DATA") or None, source)
        click.echo(f"{path} ({path.stat().st_size / 1e6:.1f} MB)")


@command(short_help="Draw the five figures of the paper.")
@argument("figures", nargs=-1, metavar="[fig1 .. fig5 | all]")
@option(
    "--out",
    type=PATH,
    metavar="DIR",
    default=Path("results/paper"),
    show_default=True,
    help="Folder for all files.",
)
@option("--seed", default=0, show_default=True, help="Root of all random numbers.")
@option("--quick", is_flag=True, help="Fewer points, mixtures and dimensions.")
@option("-q", "--quiet", is_flag=True, help="Only errors.")
def paper(figures: tuple[str, ...], out: Path, seed: int, quick: bool, quiet: bool) -> None:
    """Draw the figures of Wolf and Baum, "Continuous Herded Gibbs Sampling", from fresh computation.

    Name some figures, or get all five. Each is written as PNG, SVG and CSV, and a table compares the measurements with the
    paper's numbers.
    """
    from herdfilter.paper import figure_names, reproduce
    from herdfilter.study.columns import digits

    # Mistakes in the arguments are reported before anything is computed.
    names = figure_names(figures)
    check_count("seed", seed, 0, None)
    check_writable(out)
    for name in names:
        # Each figure is written as soon as it is done.
        with live_line(name, visible=not quiet):
            result = reproduce(name, seed, quick)
        paths = result.save(out)
        if not quiet:
            # Figures as in the report; the other cells are words or counts.
            cells = result.table.map(lambda x: digits(x) if isinstance(x, float) else str(x))
            table = in_blocks(list(map(str, cells)), cells.to_numpy().tolist(), width=None)
            click.echo("\n".join(["", result.title, "", *table, ""]))
            click.echo(f"Wrote {', '.join(path.name for path in paths)} into {out}")


for subcommand in (compare_command, choose_command, show, export, scenarios, filters, paper, data):
    main.add_command(subcommand)
