"""The commands about real data: ``herdfilter data``."""

from __future__ import annotations

import os
from pathlib import Path

import click

from herdfilter.cli.folders import Place


@click.group(short_help="Fetch the real data sets.")
def data() -> None:
    """Fetch the real data sets, which are not part of the package."""


@data.command("list")
def list_files() -> None:
    """List the data sets, their files, and where these come from."""
    from herdfilter.study.data import DATA_FILES

    for name, known in DATA_FILES.items():
        click.echo(f"{known.data_set:9} {name:26} {known.base_url} ({known.licence})")


@data.command("fetch")
@click.argument("data_set", metavar="NAME")
@click.option(
    "--to",
    type=Place(),
    metavar="DIR",
    help="Folder to put them into. [default: HERDFILTER_DATA, or the cache]",
)
@click.option("--data", "source", type=Place(), metavar="DIR", help="Folder to copy them from, without a network.")
def fetch_files(data_set: str, to: Path | None, source: Path | None) -> None:
    """Download the files of a data set, NAME, and compare their checksums; those that are there stay."""
    from herdfilter.study.data import fetch, files_of

    for name in files_of(data_set):
        path = fetch(name, to or os.environ.get("HERDFILTER_DATA") or None, source)
        click.echo(f"{path} ({path.stat().st_size / 1e6:.1f} MB)")
