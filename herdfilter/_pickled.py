"""Functions travel in pickles of what holds them: lambda functions too, which pickle alone refuses."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from types import FunctionType
from typing import Any

from herdfilter._checks import shown


class PicklesFunctions:
    """An object whose attributes may be functions; those without a name of their own are pickled with their code."""

    def __getstate__(self) -> dict[str, Any]:
        state = vars(self).items()
        return {name: _Held(name, v) if isinstance(v, FunctionType) else v for name, v in state}

    def __setstate__(self, state: dict[str, Any]) -> None:
        held = {name: v.function if isinstance(v, _Held) else v for name, v in state.items()}
        vars(self).update(held)


class _Held:
    """A function while what holds it is pickled or copied; it comes back as the function itself."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name, self.function = name, function

    def __deepcopy__(self, memo: Any) -> Any:
        return self.function

    def __reduce__(self) -> tuple[Any, ...]:
        try:
            return pickle.loads, (cloudpickle().dumps(self.function),)
        except Exception as error:
            raise pickle.PicklingError(
                f"{self.name}: expected a function that can be pickled, got {shown(self.function)} ({error}); define it at "
                "the top of a module, and give it no open file or lock"
            ) from error


def cloudpickle() -> Any:
    """Return the module, by itself or as joblib brings it."""
    try:
        import cloudpickle
    except ImportError:
        from joblib.externals import cloudpickle
    return cloudpickle
