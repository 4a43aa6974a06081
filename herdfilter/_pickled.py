"""Functions travel in pickles of what holds them: lambda functions too, which pickle alone refuses."""

from __future__ import annotations

import pickle
from typing import Any


class PicklesFunctions:
    """A frozen object that may hold functions: those without a name of their own are pickled with their code."""

    def __reduce__(self) -> tuple[Any, ...]:
        try:
            return _restored, (type(self), cloudpickle().dumps(vars(self)))
        except Exception as error:
            raise pickle.PicklingError(
                f"{self!r}: expected functions that can be pickled, got {error}; define them at the top of a module"
            ) from error

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self


def _restored(kind: Any, data: bytes) -> Any:
    made = kind.__new__(kind)
    vars(made).update(pickle.loads(data))
    return made


def cloudpickle() -> Any:
    """Return the module, by itself or as joblib brings it."""
    try:
        import cloudpickle
    except ImportError:
        from joblib.externals import cloudpickle
    return cloudpickle
