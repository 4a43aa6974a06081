"""The terminal: tables as plain text, errors on one line, paths and names as arguments, folders to write into."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from textwrap import wrap
from typing import Any

import click
from click.shell_completion import CompletionItem

from herdfilter import _checks, _repr
from herdfilter.catalogue import catalogue

# Largest number of characters of an error; a name in it may be of any length.
LONGEST_MESSAGE = 800


class InputError(click.ClickException):
    """A mistake in the user's input: reported on one line, exit code 2."""

    exit_code = 2

    def format_message(self) -> str:
        """Return the message on one line; the middle of a long one is left out."""
        return _checks.printable(_checks.shortened(" ".join(self.message.split()), LONGEST_MESSAGE))


class Group(click.Group):
    """A group of commands that report mistakes in the user's input on one line."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except (BrokenPipeError, InputError, click.exceptions.Exit, click.Abort):
            # click reports these itself.
            raise
        except SystemExit as error:
            raise InputError(
                f"the model or a filter ended the program (SystemExit: {error})"
            ) from None
        except click.ClickException as error:  # click would print the usage, too
            text = error.format_message()
            # the shell splits lists at spaces
            if ctx.invoked_subcommand == "compare" and "extra argument" in text:
                text += "; write lists with commas, as in --filters auto,bootstrap"
            raise InputError(text) from None
        except Exception as error:
            from herdfilter.study.tasks import own_code

            cause: BaseException = error
            # The innermost cause has the line of the user's code.
            while cause.__cause__ is not None:
                cause = cause.__cause__
            # Other processes send only text.
            location = own_code("".join(traceback.format_exception(cause)))
            if isinstance(error, (ValueError, TypeError, OSError, ImportError)):
                text = str(error) or type(error).__name__
            elif location or isinstance(error, MemoryError):
                text = f"{type(error).__name__}: {error}"
            else:  # a bug of herdfilter, whose traceback is of use
                raise
            raise InputError(f"{text} {location}" if location else text) from None


def complete_scenario(ctx: Any, param: Any, incomplete: str) -> list[CompletionItem]:
    """Return the scenarios of the package, or let the shell complete a file."""
    from herdfilter.study.scenario import scenario_files

    names = [CompletionItem(name) for name in scenario_files() if name.startswith(incomplete)]
    return names or [CompletionItem(incomplete, type="file")]


def complete_filters(ctx: Any, param: Any, incomplete: str) -> list[str]:
    """Complete the last of several filter names, separated by commas."""
    before, comma, last = incomplete.rpartition(",")
    names = [
        name for name in catalogue() if name.startswith(last) and name not in before.split(",")
    ]
    return [f"{before}{comma}{name}" for name in names]


class PathName(click.Path):
    """A path; the empty string (an unset shell variable) is not a path."""

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """Return the path."""
        if value == "" or "\0" in str(value):
            self.fail(f"expected a path, got {value!r}", param, ctx)
        return super().convert(value, param, ctx)


PATH = PathName(path_type=Path)


def check_writable(folder: Path) -> None:
    """Make the output folder, and raise InputError if no file can be written into it."""
    from herdfilter.study.machine import check_folder

    try:
        check_folder(folder)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"out: cannot write into {folder} ({reason})") from None


@contextmanager
def output_folder(folder: Path | None, store: str = "") -> Iterator[None]:
    """Make the output folder; if the block fails before a run has succeeded, remove what was made.

    `store` is the name of the file in the folder to which finished runs are written.
    """
    if folder is None:
        yield
        return
    # From the innermost folder outwards, which is the order of removal.
    absent = [path for path in (folder, *folder.parents) if not path.exists()]
    had_store = store and (folder / store).exists()
    try:
        check_writable(folder)
        yield
    except Exception:
        with suppress(OSError):  # the folder could not be made, or holds other files
            if store and not had_store and not _has_successful_runs(folder / store):
                (folder / store).unlink(missing_ok=True)
            for path in absent:
                path.rmdir()
        raise


@contextmanager
def finishing(folder: Path | None, store: str) -> Iterator[None]:
    """Make the output folder; if a signal or a lost cluster ends the block, tell where the finished runs are."""
    from herdfilter.study.tasks import Stopped, stop_on_signals

    hint = ""
    if folder is not None:
        hint = f"; finished runs are in {folder / store}. To continue, add --resume to the command."
    try:
        with stop_on_signals("SIGINT", "SIGTERM", "SIGHUP"), output_folder(folder, store):
            yield
    except KeyboardInterrupt as stop:
        with suppress(OSError):  # after SIGHUP the terminal may be gone
            click.echo(f"Interrupted{hint}", err=True)
        if isinstance(stop, Stopped):
            raise click.exceptions.Exit(128 + stop.number) from None
        raise
    except ConnectionError as error:
        raise InputError(f"{error}{hint}") from None


def _has_successful_runs(store: Path) -> bool:
    from herdfilter.study.store import open_for_reading

    try:
        with open_for_reading(store, empty=True) as opened:
            return opened.begun() and bool((opened.table()["error"] == "").any())
    except Exception:  # an unreadable file may hold runs
        return store.exists()


def echo(text: str, **options: Any) -> None:
    """Print a text without control characters, which could steer the terminal."""
    click.echo(_checks.printable(text), **options)


def with_text(heads: Sequence[str] | None, rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table whose last column is running text, wrapped into the width that the others leave."""
    rows = rows if heads is None else [heads, *rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for *cells, text in rows:
        columns = [cell.ljust(width) for cell, width in zip(cells, widths, strict=False)]
        start = _repr.COLUMN_GAP.join([*columns, ""])
        wrapped = wrap(
            text,
            _repr.LINE_WIDTH,
            initial_indent=start,
            subsequent_indent=" " * len(start),
            break_long_words=heads is not None,
        )
        lines += wrapped or [start.rstrip()]
    return lines if heads is None else [lines[0], "-" * _repr.LINE_WIDTH, *lines[1:]]
