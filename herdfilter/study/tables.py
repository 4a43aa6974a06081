"""Tables of a TOML file as frozen dataclasses, and the smaller tables of a scenario.

A table becomes the dataclass whose fields are its keys (`structured`). The annotation of a field holds its check,
``Annotated[int, check_count]``, and the dataclass runs all checks when it is made (`check_fields`), by a file or a caller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from types import UnionType
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from herdfilter._checks import as_number, as_positive, check_count, one_of, short_repr
from herdfilter.catalogue.expressions import check_keywords

T = TypeVar("T")


def structured(where: str, cls: type[T], table: Mapping[str, Any], **given: Any) -> T:
    """Return the dataclass of a table, called `where` in errors, as ``[targets]``; tables in it become dataclasses, too.

    The fields `given` do not come from the table, and may not stand in it.
    """
    check_keywords(where, cls, table, taken=given)
    hints: dict[str, Any] = get_type_hints(cls)
    found = dict(table)
    for key, value in table.items():
        path = f"{where.strip('[]')}.{key}" if where.startswith("[") else key
        for kind in get_args(hints[key]) if isinstance(hints[key], UnionType) else (hints[key],):
            if isinstance(value, dict) and isinstance(kind, type) and is_dataclass(kind):
                found[key] = structured(f"[{path}]", kind, value)
            elif isinstance(value, list) and get_origin(kind) is tuple:
                inner = get_args(kind)[0]
                if isinstance(inner, type) and is_dataclass(inner):
                    value = [structured(f"[[{path}]]", inner, one) if isinstance(one, dict) else one for one in value]
                found[key] = tuple(value)
    return cls(**found, **given)


def check_fields(where: str, instance: Any) -> None:
    """Check each field of a dataclass as its annotation says; None is allowed if it is the default."""
    hints = get_type_hints(type(instance), include_extras=True)
    for one in fields(instance):
        value = getattr(instance, one.name)
        if value is not None or one.default is not None:
            for check in getattr(hints[one.name], "__metadata__", ()):
                check(f"{where}{one.name}", value)


def check_text(name: str, value: Any) -> None:
    """Raise ValueError unless a value is a text."""
    if not isinstance(value, str):
        raise ValueError(f"{name}: expected a text, got {short_repr(value)}")


def check_table(name: str, value: Any) -> None:
    """Raise ValueError unless a value is a table."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{name}: expected a table, got {short_repr(value)}")


def check_typed_table(name: str, value: Any) -> None:
    """Raise ValueError unless a value is a table with a text under ``type``."""
    check_table(name, value)
    if not isinstance(value.get("type"), str):
        raise ValueError(f"[{name}]: expected a key 'type' with a name, got {short_repr(value.get('type'))}")


def each(check: Callable[[str, Any], Any]) -> Callable[[str, Any], None]:
    """Return a check that a value is a list whose entries pass `check`."""

    def check_all(name: str, values: Any) -> None:
        if not isinstance(values, (tuple, list)):
            raise ValueError(f"{name}: expected a list, got {short_repr(values)}")
        for value in values:
            check(name, value)

    return check_all


def choice(*known: str) -> Callable[[str, Any], Any]:
    """Return a check that a value is one of these."""
    return partial(one_of, known=known)


def made(cls: type, several: bool = False) -> Callable[[str, Any], None]:
    """Return a check that a value is an instance of a class, a table in a file; or a list of `several`."""

    def check(name: str, value: Any) -> None:
        values = value if several and isinstance(value, (tuple, list)) else (value,)
        if (several and values is not value) or not all(isinstance(one, cls) for one in values):
            expected = "tables" if several else "a table"
            raise ValueError(f"{name}: expected {expected} ({cls.__name__}), got {short_repr(value)}")

    return check


as_share = partial(as_number, expected="a number above 0 and up to 1", fits=lambda share: 0 < share <= 1)


@dataclass(frozen=True)
class Divergence:
    """Bound, in the unit of the error, on the RMSE to the truth over the final part of the steps, a fraction in (0, 1]."""

    rmse_above: Annotated[float, as_positive]
    final_part: Annotated[float, as_share] = 0.25

    def __post_init__(self) -> None:
        check_fields("[divergence] ", self)


@dataclass(frozen=True)
class Published:
    """A figure from the literature that a filter should reproduce; `scenario` explains the keys.

    The measure ``mean_component_rmse`` is the root mean square over the error dimensions at every step, averaged over the
    steps; a reference has no particle count.
    """

    filter: Annotated[str, check_text]
    n_particles: Annotated[int, check_count]
    value: Annotated[float, as_positive]
    tolerance: Annotated[float, as_positive]
    source: Annotated[str, check_text]
    measure: Annotated[str, choice("rmse", "mean_component_rmse")] = "rmse"
    statistic: Annotated[str, choice("mean", "median", "rms")] = "mean"
    runs: Annotated[int, check_count] = 20
    steps: Annotated[int | None, check_count] = None
    skip: Annotated[int, partial(check_count, minimum=0)] = 0
    model: Annotated[Mapping[str, Any], check_table] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields("[[published]] ", self)
        if not self.source:
            raise ValueError("[[published]] source: expected the place of the figure, got ''")
