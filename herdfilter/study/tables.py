"""Tables of a TOML file as frozen dataclasses, and the smaller tables of a scenario.

A table becomes the dataclass whose fields are its keys (`structured`). The dataclass checks its fields as their annotations
say when it is made (`check_fields`), by a file or a caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from herdfilter._checks import as_number, as_positive, check_count, one_of, short_repr
from herdfilter.catalogue.expressions import check_keywords

T = TypeVar("T")


def structured(where: str, cls: type[T], table: Mapping[str, Any], **given: Any) -> T:
    """Return the dataclass of a table, called `where` in errors, as ``[targets]``; tables in it become dataclasses, too.

    The fields `given` do not come from the table, and may not stand in it.
    """
    check_keywords(where, cls, table, added=given)
    hints = get_type_hints(cls)
    path = f"{where.strip('[]')}." if where.startswith("[") else ""
    return cls(**{key: _converted(f"{path}{key}", hints[key], value) for key, value in table.items()}, **given)


def _converted(path: str, kind: Any, value: Any) -> Any:
    """Return a value with dataclasses in place of tables, and tuples in place of lists, as its annotation says."""
    for one in _alternatives(kind):
        if isinstance(value, dict) and isinstance(one, type) and is_dataclass(one):
            return structured(f"[{path}]", one, value)
        if isinstance(value, list) and get_origin(one) is tuple:
            return tuple(_converted(f"[{path}]", get_args(one)[0], entry) for entry in value)
    return value


def check_fields(where: str, instance: Any) -> None:
    """Raise ValueError unless each field of a dataclass is as its annotation says."""
    hints = get_type_hints(type(instance), include_extras=True)
    for one in fields(instance):
        _check(f"{where}{one.name}", hints[one.name], getattr(instance, one.name))


def _check(name: str, kind: Any, value: Any) -> None:
    """Check a value by its type, and by the functions that ``Annotated[type, function]`` names."""
    if value is None and NoneType in _alternatives(kind):
        return
    kinds = [one for one in _alternatives(kind) if one is not NoneType]
    fitting = [one for one in kinds if isinstance(value, _accepted(one))]
    if not fitting:
        kind, inner = kinds[0], (*get_args(kinds[0]), None)[0]
        tables = f"tables ({inner.__name__})" if isinstance(inner, type) and is_dataclass(inner) else None
        expected = tables or _WORDS.get(get_origin(kind) or kind) or f"a table ({kind.__name__})"
        raise ValueError(f"{name}: expected {expected}, got {short_repr(value)}")
    kind = fitting[0]
    if get_origin(kind) is Annotated:
        _check(name, kind.__origin__, value)
        for check in kind.__metadata__:
            check(name, value)
    elif get_origin(kind) is Literal:
        one_of(name, value, get_args(kind))
    elif get_origin(kind) is tuple:
        for entry in value:
            _check(name, get_args(kind)[0], entry)


_WORDS = {str: "a text", bool: "true or false", tuple: "a list", Mapping: "a table"}


def _accepted(kind: Any) -> Any:
    """Return the classes whose instances a field may hold; numbers are left to the functions of the annotation."""
    base = get_origin(kind) or kind
    return (tuple, list) if base is tuple else base if base in _WORDS or is_dataclass(base) else object


def _alternatives(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


as_share = partial(as_number, expected="a number above 0 and up to 1", fits=lambda share: 0 < share <= 1)


@dataclass(frozen=True)
class Divergence:
    """Bound on the RMSE to the truth over the final part of the steps, a fraction in (0, 1].

    It is in the unit of the error; with `in_spreads` in the model's ``spread``, and a mean over the dimensions, too.
    """

    rmse_above: Annotated[float, as_positive]
    final_part: Annotated[float, as_share] = 0.25
    in_spreads: bool = False

    def __post_init__(self) -> None:
        check_fields("[divergence] ", self)


@dataclass(frozen=True)
class Published:
    """A figure from the literature that a filter should reproduce; `scenario` explains the keys.

    The measure ``mean_component_rmse`` is the root mean square over the error dimensions at every step, averaged over the
    steps; a reference has no particle count.
    """

    filter: str
    n_particles: Annotated[int, check_count]
    value: Annotated[float, as_positive]
    tolerance: Annotated[float, as_positive]
    source: str
    measure: Literal["rmse", "mean_component_rmse"] = "rmse"
    statistic: Literal["mean", "median", "rms"] = "mean"
    runs: Annotated[int, check_count] = 20
    steps: Annotated[int, check_count] | None = None
    skip: Annotated[int, partial(check_count, minimum=0)] = 0
    model: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields("[[published]] ", self)
        if not self.source:
            raise ValueError("[[published]] source: expected the place of the figure, got ''")
