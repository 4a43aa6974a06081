"""The command line. What is heavy to import is imported where it is used."""

from __future__ import annotations

import logging

import click

from herdfilter._version import __version__
from herdfilter.cli.catalogue import filters, scenarios
from herdfilter.cli.compare import compare
from herdfilter.cli.data import data
from herdfilter.cli.errors import Group
from herdfilter.cli.paper import paper
from herdfilter.cli.show import export, show

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
@click.option("--log", type=click.Choice(["debug", "info", "warning"]), help="Log what happens, on the error output.")
def main(log: str | None) -> None:
    """Particle filters with herded (deterministic) particles, compared with random ones."""
    if log is not None:
        logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
        logging.getLogger("herdfilter").setLevel(log.upper())


for command in (compare, show, export, scenarios, filters, paper, data):
    main.add_command(command)
