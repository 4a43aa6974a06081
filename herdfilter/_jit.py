"""Functions that numba compiles, kept on the disk if that is possible: a full disk or a damaged file costs time alone."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import numba
from numba.core.caching import FunctionCache

_failures: list[Exception] = []
"""The first error of the disk in this process, about which the user was warned."""


def njit(function: Callable[..., Any] | None = None, *, cache: bool = False, **options: Any) -> Callable[..., Any]:
    """Do as `numba.njit`, but warn, once per process, and go on if the disk neither gives nor takes compiled code."""
    if function is None:
        return partial(njit, cache=cache, **options)
    compiled: Any = numba.njit(function, **options)
    if cache:
        try:
            compiled._cache = CompiledCode(function)  # type: ignore[no-untyped-call]
        except RuntimeError as error:  # no folder can be written
            if os.path.exists(function.__code__.co_filename):  # else it was typed at a prompt, and is not kept
                _warn(error)
    return compiled  # type: ignore[no-any-return]


class CompiledCode(FunctionCache):
    """The compiled code of a function on the disk: what cannot be loaded is compiled, what cannot be saved is not kept."""

    @contextmanager
    def _guard_against_spurious_io_errors(self) -> Iterator[None]:  # around each load and each save
        try:
            yield
        except Exception as error:  # a damaged file may raise any
            with suppress(Exception):
                self.flush()  # type: ignore[no-untyped-call]  # the next save replaces it
            _warn(error)


def _warn(error: Exception) -> None:
    if not _failures:
        _failures.append(error)
        warnings.warn(
            f"compiled code cannot be kept on the disk, or read from it ({type(error).__name__}: {error}), and is compiled "
            "anew; the variable NUMBA_CACHE_DIR may name another folder",
            stacklevel=2,
        )
