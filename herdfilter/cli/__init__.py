"""The command line. Heavy modules are imported inside the commands that need them."""

from __future__ import annotations

import logging
from pathlib import Path

import click
from click import argument, command, option

from herdfilter._checks import check_count
from herdfilter._repr import in_blocks
from herdfilter._version import __version__
from herdfilter.cli.catalogue import data, filters, scenarios
from herdfilter.cli.compare import compare_command
from herdfilter.cli.findings import export, show
from herdfilter.cli.terminal import PATH, Group, check_writable
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


for subcommand in (compare_command, show, export, scenarios, filters, paper, data):
    main.add_command(subcommand)
