"""``herdfilter show`` and ``herdfilter export``: what a store holds."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from herdfilter.cli.errors import InputError
from herdfilter.cli.findings import Findings, how_much
from herdfilter.cli.folders import Place, output_folder
from herdfilter.cli.tables import write_csv


@click.command(short_help="Show again what a comparison has found.")
@click.argument("file", type=Place())
@click.option("--out", type=Place(), metavar="DIR", help="Folder for report, tables and figures.")
@how_much
def show(file: Path, out: Path | None, wide: bool, quiet: bool, verbose: bool) -> None:
    """Show again what `compare --out` has found, without running anything: the table, and with --out all files.

    FILE is a study.sqlite, or the folder that holds one. Of a comparison that was cut off, those runs count that all
    filters have finished.
    """
    from herdfilter.study.store import open_for_reading
    from herdfilter.study.study import Study

    with open_for_reading(file) as store, output_folder(out):
        result = store.result()
        planned = Study.described(store.description()).runs
    findings = Findings(result, planned, wide, quiet, verbose)
    findings.tell()
    if out is not None:
        findings.write(out)


@click.command(short_help="Write the runs of a comparison as CSV or Parquet.")
@click.argument("file", type=Place())
@click.option("--csv", type=Place(), metavar="PATH", help="CSV file to write.")
@click.option("--parquet", type=Place(), metavar="PATH", help="Parquet file to write.")
def export(file: Path, csv: Path | None, parquet: Path | None) -> None:
    """Write the runs of a study.sqlite as CSV or Parquet: one row per filter, particle count and run.

    FILE is a study.sqlite, or the folder that holds one.
    """
    from herdfilter.study.store import open_for_reading

    if csv is None and parquet is None:
        raise InputError("export: needs --csv PATH or --parquet PATH")
    if parquet is not None:
        _check_parquet()
    with open_for_reading(file) as store:
        table = store.table()
    writers = (csv, partial(write_csv, table)), (parquet, partial(table.to_parquet, index=False))
    for path, write in writers:
        if path is not None:
            try:
                write(path)
            except OSError as error:
                raise InputError(f"cannot write {path} ({error.strerror or error})") from None
            click.echo(f"Wrote {len(table)} rows into {path}")


def _check_parquet() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise InputError(f"parquet: needs the package pyarrow ({error}); install herdfilter[parquet]") from None
