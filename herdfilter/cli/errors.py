"""Errors that blame the input, each in one line."""

from __future__ import annotations

import re
import sysconfig
import traceback
from pathlib import Path
from typing import Any

import click

from herdfilter._checks import shortened

LONGEST = 800
"""Characters of a message: a name in it may be of any length."""


class InputError(click.ClickException):
    """What the user gave does not fit: one line, exit code 2."""

    exit_code = 2

    def format_message(self) -> str:
        """Return the message on one line, the middle left out where it is long."""
        return shortened(" ".join(self.message.split()), LONGEST)


class Group(click.Group):
    """Turn errors that blame the input into one line."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except (BrokenPipeError, click.exceptions.Exit, click.Abort):
            raise
        except SystemExit as error:
            raise InputError(f"the model or a filter ended the program (SystemExit: {error})") from None
        except click.UsageError as error:
            raise InputError(error.format_message()) from None
        except click.ClickException:
            raise
        except Exception as error:
            place = _own_code(error)
            if isinstance(error, (ValueError, TypeError, OSError, ImportError)):
                text = str(error) or type(error).__name__
            elif place or isinstance(error, MemoryError):
                text = f"{type(error).__name__}: {error}"
            else:
                raise
            raise InputError(f"{text} ({place})" if place else text) from None


def _own_code(error: BaseException) -> str:
    """Return file and line of the user's own code in which an error arose; empty if it arose elsewhere."""
    while error.__cause__ is not None:
        error = error.__cause__
    told = traceback.format_exception(error)  # of another process it is the text alone that comes back
    paths = sysconfig.get_paths()
    others = [Path(paths[name]) for name in ("stdlib", "purelib", "platlib")] + [Path(__file__).parents[1]]
    for name, line in reversed(re.findall(r'File "(.+?)", line (\d+)', "".join(told))):
        file = Path(name)
        if file.is_file() and not any(file.is_relative_to(other) for other in others):
            return f"{file.name}, line {line}"
    return ""
