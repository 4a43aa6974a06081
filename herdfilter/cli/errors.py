"""Errors that blame the input, each in one line."""

from __future__ import annotations

import traceback
from typing import Any

import click

from herdfilter._checks import printable, shortened

LONGEST = 800
"""Characters of a message: a name in it may be of any length."""


class InputError(click.ClickException):
    """What the user gave does not fit: one line, exit code 2."""

    exit_code = 2

    def format_message(self) -> str:
        """Return the message on one line, the middle left out where it is long."""
        return printable(shortened(" ".join(self.message.split()), LONGEST))


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
            place = _place(error)
            if isinstance(error, (ValueError, TypeError, OSError, ImportError)):
                text = str(error) or type(error).__name__
            elif place or isinstance(error, MemoryError):
                text = f"{type(error).__name__}: {error}"
            else:
                raise
            raise InputError(f"{text} {place}" if place else text) from None


def _place(error: BaseException) -> str:
    """Return where in the user's own code an error arose, such as ``(pendulum.py, line 12, in f)``; empty if elsewhere."""
    from herdfilter.study.tasks import own_code

    while error.__cause__ is not None:
        error = error.__cause__
    return own_code("".join(traceback.format_exception(error)))  # of another process the text alone comes back
