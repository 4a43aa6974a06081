"""Folders that commands write into; one that fails leaves nothing behind."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from herdfilter.cli.errors import InputError


class Place(click.Path):
    """A file or folder; an empty name, as of a variable that is not set, is none."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        if value == "" or "\0" in str(value):
            self.fail(f"expected a path, got {value!r}", param, ctx)
        return super().convert(value, param, ctx)


def check_writable(folder: Path) -> None:
    """Make the output folder, and find out before the work whether it takes files."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"out: cannot write into {folder} ({reason})") from None


@contextmanager
def output_folder(folder: Path | None, store: str = "") -> Iterator[None]:
    """Make the output folder; where what is done in it fails before a run has succeeded, remove all that was made.

    `store` is the name of the file in it that takes finished runs.
    """
    if folder is None:
        yield
        return
    absent = [path for path in (folder, *folder.parents) if not path.exists()]
    was_there = store and (folder / store).exists()
    try:
        check_writable(folder)
        yield
    except Exception:
        with suppress(OSError):  # there is none, or something else is in it
            if store and not was_there and not _finished(folder / store):
                (folder / store).unlink(missing_ok=True)
            for path in absent:
                path.rmdir()
        raise


def _finished(store: Path) -> bool:
    """Whether a store holds runs that did not fail."""
    from herdfilter.study.store import open_for_reading

    try:
        with open_for_reading(store, empty=True) as kept:
            return kept.begun() and bool((kept.table()["error"] == "").any())
    except Exception:  # there is something that cannot be read
        return store.exists()
