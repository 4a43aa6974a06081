"""Functions travel in pickles of what holds them: lambda functions too, which pickle alone refuses."""

from __future__ import annotations

import copyreg
import pickle
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

from herdfilter._checks import short_repr

_within = ContextVar("within", default=False)
"""Whether the pickle of such an object is being made: then what it holds goes into that one, itself included."""


class PicklesFunctions:
    """A frozen object that may hold functions: with those that pickle does not find by name it is pickled by their code."""

    def __reduce__(self) -> tuple[Any, ...]:
        plain = copyreg.__newobj__, (type(self),), vars(self)  # type: ignore[attr-defined]
        if _within.get():
            return plain
        token = _within.set(True)
        try:
            with suppress(Exception):
                pickle.dumps(self)
                return plain
            return pickle.loads, (cloudpickle().dumps(self),)
        except Exception as error:
            raise pickle.PicklingError(
                f"{short_repr(self)}: expected functions that can be pickled, got {short_repr(error, 200)}; "
                "define them at the top of a module"
            ) from error
        finally:
            _within.reset(token)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self


def cloudpickle() -> Any:
    """Return the module, by itself or as joblib brings it."""
    try:
        import cloudpickle
    except ImportError:
        from joblib.externals import cloudpickle
    return cloudpickle
