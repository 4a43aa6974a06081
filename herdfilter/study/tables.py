"""Tables of a TOML file as frozen dataclasses, and the smaller tables of a scenario.

A table becomes the dataclass whose fields are its keys (`structured`). Each field says in its annotation how it is checked,
``Annotated[int, check_count]``; the dataclass checks them all when it is made (`check_fields`), by a file or by a caller. An
error names table and key: ``[divergence] rmse_above: expected a positive finite number, got -1``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from types import UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from herdfilter._checks import as_number, as_positive, check_count, one_of, short_repr
from herdfilter.catalogue.expressions import check_keywords


def structured(where: str, cls: Any, table: Mapping[str, Any], **given: Any) -> Any:
    """Make a dataclass from a table, called `where` in errors; tables and lists of tables in it become dataclasses, too.

    Parameters
    ----------
    where : str
        Name of the table as it stands in the file, such as ``[targets]``.
    cls : type
        The dataclass.
    table : mapping
        The keys and values of the file.
    **given
        Fields that do not come from the table, and may not stand in it.
    """
    check_keywords(where, cls, table, taken=given)
    place = f"{where.strip('[]')}." if where.startswith("[") else ""
    hints = get_type_hints(cls)
    return cls(**{key: _field(place + key, value, hints[key]) for key, value in table.items()}, **given)


def _field(path: str, value: Any, hint: Any) -> Any:
    """Return the value of a field: a dataclass for a table, a tuple for a list, if the annotation allows for them."""
    for kind in get_args(hint) if isinstance(hint, UnionType) else (hint,):
        if isinstance(value, dict) and is_dataclass(kind):
            return structured(f"[{path}]", kind, value)
        if isinstance(value, list) and get_origin(kind) is tuple:
            inner = get_args(kind)[0]
            tables = is_dataclass(inner)
            return tuple(structured(f"[[{path}]]", inner, v) if tables and isinstance(v, dict) else v for v in value)
    return value


def check_fields(where: str, instance: Any) -> None:
    """Check each field of a dataclass as its annotation says; None is allowed where it is the default."""
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
    """Return a check of a list, whose entries pass `check`."""

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
    """Return a check that a value is an instance of a class, which a file writes as a table; or that it lists several."""

    def check(name: str, value: Any) -> None:
        values = value if several and isinstance(value, (tuple, list)) else (value,)
        if (several and values is not value) or not all(isinstance(one, cls) for one in values):
            expected = "tables" if several else "a table"
            raise ValueError(f"{name}: expected {expected} ({cls.__name__}), got {short_repr(value)}")

    return check


as_share = partial(as_number, expected="a number above 0 and up to 1", fits=lambda share: 0 < share <= 1)


@dataclass(frozen=True)
class Divergence:
    """When a run counts as diverged: RMSE against the truth over the final part of the steps above a bound.

    Parameters
    ----------
    rmse_above : float
        Bound, in the unit of the error.
    final_part : float
        Fraction of the steps looked at, in (0, 1].
    """

    rmse_above: Annotated[float, as_positive]
    final_part: Annotated[float, as_share] = 0.25

    def __post_init__(self) -> None:
        check_fields("[divergence] ", self)


@dataclass(frozen=True)
class Published:
    """A figure from the literature that a filter should reproduce.

    Parameters
    ----------
    filter : str
        Name of the filter, or ``"reference"`` for the scenario's reference.
    n_particles : int
        Particle count; without meaning for the reference.
    value, tolerance : float
        The figure, and how far from it ours may be.
    source : str
        Where it stands.
    measure : {"rmse", "mean_component_rmse"}
        The column ``rmse``; or the root mean square over the error dimensions at every step, averaged over the steps.
    statistic : {"mean", "median", "rms"}
        Statistic over the runs.
    runs : int
        Number of runs.
    steps : int, optional
        Number of steps; the scenario's unless given.
    skip : int
        Steps at the start that do not count.
    model : mapping
        Keys of ``[model]`` that differ from the scenario's.
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
            raise ValueError("[[published]] source: expected where the figure stands, got ''")
