"""Tables of a TOML file as frozen dataclasses, and the smaller tables of a scenario.

The fields of a dataclass are the keys of its table. When one is made, from a file or by a caller, its fields are converted
and checked according to their annotations (`convert_fields`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass
from functools import partial
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from herdfilter._checks import as_number, as_positive, check_count, one_of, short_repr
from herdfilter.catalogue import expressions

_EXPECTED: dict[Any, str] = {
    str: "a text",
    bool: "true or false",
    tuple: "a list",
    Mapping: "a table",
}


def convert_fields(instance: Any) -> None:
    """Convert the fields of a dataclass as annotated, tables to dataclasses and lists to tuples, and check them."""
    for name, kind in get_type_hints(type(instance), include_extras=True).items():
        # The dataclasses are frozen.
        object.__setattr__(instance, name, _converted(name, kind, getattr(instance, name)))


def _converted(key: str, kind: Any, value: Any) -> Any:
    """Convert the value of a key to an annotated `kind`; ``Annotated[type, check]`` calls ``check(key, value)``, too."""
    # tuple of tuple[int, ...], Mapping of Mapping[str, Any]
    base = get_origin(kind) or kind
    arguments = get_args(kind)
    if base in (Union, UnionType):
        if value is None and NoneType in arguments:
            return None
        # Of two alternatives, as of births, the first is the one for a list.
        kinds = [alternative for alternative in arguments if alternative is not NoneType]
        return _converted(key, kinds[0 if isinstance(value, list | tuple) else -1], value)
    if base is Annotated:
        value = _converted(key, arguments[0], value)
        for check in arguments[1:]:
            check(key, value)
        return value
    if base is Literal:
        return one_of(key, value, arguments)
    if base is tuple and isinstance(value, list | tuple):
        return tuple(
            _converted(f"{key}[{i}]", arguments[0], entry) for i, entry in enumerate(value)
        )
    if is_dataclass(base) and isinstance(value, Mapping):
        # A misspelt key gets the nearest one in its error.
        expressions.check_keywords(key, kind, value)
        with expressions.prefix_errors(f"{key}."):
            return kind(**value)
    if (is_dataclass(base) or base in _EXPECTED) and not isinstance(value, base):
        raise ValueError(
            f"{key}: expected {_EXPECTED.get(base, 'a table')}, got {short_repr(value)}"
        )
    return value  # the checks in the annotation look at numbers


Count = Annotated[int, check_count]
CountFromZero = Annotated[int, partial(check_count, minimum=0)]
Positive = Annotated[float, as_positive]
Share = Annotated[
    float,
    partial(as_number, expected="a number above 0 and up to 1", fits=lambda share: 0 < share <= 1),
]
"""Numbers with their checks, for the fields of tables."""


@dataclass(frozen=True)
class Truth:
    """Differences of the simulated truth from the filters' model.

    Attributes
    ----------
    initial : sequence of float, optional
        State at step 0; by default drawn from the model's initial distribution.
    model : mapping
        Keys of ``[model]`` that differ in the simulation.
    """

    initial: Any = None
    model: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        convert_fields(self)
        if self.initial is None and not self.model:
            raise ValueError("initial: expected a state, or a table 'model' with keys, got neither")


@dataclass(frozen=True)
class Divergence:
    """Bound on the RMSE to the truth over the final part of the steps, a fraction in (0, 1].

    It is in the unit of the error. With `in_spreads` errors are divided by the model's ``spread``, and the mean is over the
    dimensions, too.
    """

    rmse_above: Positive
    final_part: Share = 0.25
    in_spreads: bool = False
    __post_init__ = convert_fields  # type: ignore[misc]


@dataclass(frozen=True)
class Published:
    """A figure from the literature that a filter should reproduce; `scenario` explains the keys.

    The measure ``mean_component_rmse`` is the root mean square over the error dimensions at every step, averaged over the
    steps; a reference has no particle count.
    """

    filter: str
    n_particles: Count
    value: Positive
    tolerance: Positive
    source: str
    measure: Literal["rmse", "mean_component_rmse"] = "rmse"
    statistic: Literal["mean", "median", "rms"] = "mean"
    runs: Count = 20
    steps: Count | None = None
    skip: CountFromZero = 0
    model: Mapping[str, Any] = field(default_factory=dict)
    __post_init__ = convert_fields  # type: ignore[misc]
