"""What is told of an error that a model or a filter has raised."""

from __future__ import annotations

import traceback
from typing import Any

from herdfilter.study.tasks import failed


def failed_by(error: BaseException) -> dict[str, Any]:
    """Return the row of a task that failed by an error which is being handled."""
    return failed(summary_repr(error), _storable(traceback.format_exc()))


def summary_repr(error: BaseException) -> str:
    """Return type and text of an error, even of one whose text cannot be made."""
    try:
        text = str(error)
    except Exception as another:
        text = f"(its text cannot be made: {type(another).__name__})"
    return _storable(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def _storable(text: str) -> str:
    """Return a text that can be written: half of a surrogate pair, as in names of files, cannot."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
