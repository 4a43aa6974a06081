"""Errors that blame the input, each in one line."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import click


class InputError(click.ClickException):
    """What the user gave does not fit: one line, exit code 2."""

    exit_code = 2


class Group(click.Group):
    """Turn errors that blame the input into one line."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except SystemExit as error:
            raise InputError(f"the model or a filter ended the program (SystemExit: {error})") from None
        except click.UsageError as error:
            raise InputError(error.format_message()) from None
        except (ValueError, TypeError, OSError, ImportError) as error:
            raise InputError(" ".join(str(error).split())) from None


def check_writable(folder: Path) -> None:
    """Make the output folder, and find out before the work whether it takes files."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"out: cannot write into {folder} ({error.strerror})") from None
