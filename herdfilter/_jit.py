"""numba's compiler, with a cache on the disk whose failures, such as a full disk or a damaged file, only cost time."""

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
"""The first error of the cache in this process, of which the user was warned."""


def njit(
    function: Callable[..., Any] | None = None, *, cache: bool = False, **options: Any
) -> Callable[..., Any]:
    """Do as `numba.njit`, but if compiled code cannot be read from the disk or saved there, warn once and go on."""
    if function is None:
        return partial(njit, cache=cache, **options)
    compiled: Any = numba.njit(function, **options)
    if cache:
        try:
            compiled._cache = CompiledCode(function)  # type: ignore[no-untyped-call]
        except RuntimeError as error:  # no folder can be written
            # a function typed at a prompt has no file, and no cache
            if os.path.exists(function.__code__.co_filename):
                warn_once(error)
    return compiled  # type: ignore[no-any-return]


class CompiledCode(FunctionCache):
    """Compiled code of a function on the disk, for which an error in loading or saving is only a warning."""

    @contextmanager
    # numba enters it around each load and each save
    def _guard_against_spurious_io_errors(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # unpickling a damaged file may raise anything
            with suppress(Exception):
                self.flush()  # type: ignore[no-untyped-call]  # the next save replaces it
            warn_once(error)


def warn_once(error: Exception) -> None:
    if not _failures:
        _failures.append(error)
        warnings.warn(
            f"compiled code cannot be kept on the disk, or read from it ({type(error).__name__}: {error}), and is compiled "
            "anew; the variable NUMBA_CACHE_DIR may name another folder",
            stacklevel=2,
        )
