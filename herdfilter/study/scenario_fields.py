"""What the fields of a scenario must be, whether they come from a file or from a caller."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from herdfilter._checks import as_array, as_positive, check_count, check_label, one_of, short_repr
from herdfilter.catalogue.names import check_imports
from herdfilter.study.criteria import Divergence, Published
from herdfilter.study.targets import Anywhere, Targets

VIEWS = ("plane", "time")
"""How a trajectory is drawn; a state of one dimension always against time."""

DEPTH = 50
"""How deep the tables and lists of a scenario may be nested."""


def check_fields(scenario: Any) -> None:
    """Raise ValueError, naming the field, if one is not what it must be whatever the model is."""
    for name in ("name", "source"):
        _check_text(name, getattr(scenario, name))
    for name in ("title", "unit", "time_label"):
        check_label(name, getattr(scenario, name))
    for name in ("filters", "labels", "imports", "particles", "published"):
        if not isinstance(getattr(scenario, name), (tuple, list)):
            raise ValueError(f"{name}: expected a list, got {short_repr(getattr(scenario, name))}")
    for name in ("filters", "labels"):
        for text in getattr(scenario, name):
            check_label(name, text)
    check_count("steps", scenario.steps, most=None)
    as_positive("dt", scenario.dt)
    check_count("runs", scenario.runs, most=None)
    check_count("first_model", scenario.first_model, minimum=0, most=None)
    if scenario.models is not None:
        _check_family(scenario)
    for n in scenario.particles:
        check_count("particles", n, most=None)
    one_of("view", scenario.view, VIEWS)
    if scenario.error_dims is not None:
        _check_dims(scenario.error_dims)
    _check_tables(scenario)
    check_imports(scenario.imports)


def _check_family(scenario: Any) -> None:
    check_count("models", scenario.models)
    if scenario.data is not None:
        raise ValueError("models: expected none beside [data], which are of one model")
    if isinstance(scenario.model, Mapping) and "seed" in scenario.model:
        raise ValueError(
            f"[model]: seed: expected none beside models, which have seeds of their own, "
            f"got {short_repr(scenario.model['seed'])}"
        )


def _check_text(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise ValueError(f"{name}: expected a text, got {short_repr(value)}")


def _check_dims(dims: Any) -> None:
    if not isinstance(dims, (tuple, list)) or not dims:
        raise ValueError(f"error_dims: expected at least one dimension, got {short_repr(dims)}; leave it out for all")
    for dim in dims:
        check_count("error_dims", dim, minimum=0)
    if len(set(dims)) < len(dims):
        raise ValueError(f"error_dims: expected each dimension once, got {short_repr(list(dims))}")


def _check_tables(scenario: Any) -> None:
    for name in ("model", "truth", "data", "reference", "filter"):
        table = getattr(scenario, name)
        if not isinstance(table, Mapping) and (table is not None or name in ("model", "filter")):
            raise ValueError(f"{name}: expected a table [{name}], got {short_repr(table)}")
    for name in ("model", "data", "reference"):
        table = getattr(scenario, name)
        if table is not None and not isinstance(table.get("type"), str):
            raise ValueError(f"[{name}]: expected a key 'type' with a name, got {short_repr(table.get('type'))}")
    for name, table in scenario.filter.items():
        check_label("filter", name)
        if not isinstance(table, Mapping):
            raise ValueError(f"filter: expected a table [filter.{name}], got {short_repr(table)}")
    if not isinstance(scenario.divergence, Divergence | None):
        raise ValueError(f"divergence: expected a Divergence, got {short_repr(scenario.divergence)}")
    if not all(isinstance(entry, Published) for entry in scenario.published):
        raise ValueError(f"published: expected instances of Published, got {short_repr(scenario.published)}")
    if scenario.truth is not None and scenario.data is not None:
        raise ValueError("[truth]: expected none beside [data], which brings its own")
    if scenario.targets is not None:
        _check_targets(scenario)


def _check_targets(scenario: Any) -> None:
    if not isinstance(scenario.targets, Targets):
        raise ValueError(f"targets: expected a Targets, got {short_repr(scenario.targets)}")
    for name in ("truth", "reference", "divergence", "models"):
        if getattr(scenario, name) is not None:
            raise ValueError(f"{name}: expected none beside [targets], got {short_repr(getattr(scenario, name))}")
    many = scenario.targets
    if scenario.data is not None and many.tracks:
        raise ValueError("[targets] tracks: expected none beside [data], which brings the truth")
    if scenario.data is None and not many.tracks and isinstance(many.births, Anywhere):
        raise ValueError("[targets] tracks: expected some, or [[targets.births]] to draw them from, got neither")


def check_beside_model(scenario: Any, dim: int) -> None:
    """Raise ValueError if labels, dimensions of the error or the true state are none of a model of `dim` dimensions."""
    for i in scenario.error_dims or ():
        if i >= dim:
            raise ValueError(f"error_dims: expected indices from 0 to {dim - 1}, got {i}")
    if scenario.labels and len(scenario.labels) != dim:
        raise ValueError(f"labels: expected one for each of {dim} dimensions, got {len(scenario.labels)}")
    if scenario.initial_truth is not None:
        as_array("[truth]: initial", scenario.initial_truth, (dim,))
    if scenario.targets is not None:
        scenario.targets.check_beside_model(dim, scenario.steps)


def check_depth(table: Any) -> None:
    """Raise ValueError if a table is nested so deeply that nothing could be done with it."""
    level = [table]
    for _ in range(DEPTH):
        below = [item for one in level for item in (one.values() if isinstance(one, dict) else one)]
        level = [item for item in below if isinstance(item, (dict, list))]
        if not level:
            return
    raise ValueError(_TOO_DEEP)


def check_keys(text: str) -> None:
    """Raise ValueError if a dotted key of a file is so long that reading the file would take seconds."""
    if _DOTTED.search(text):
        raise ValueError(_TOO_DEEP)


_DOTTED = re.compile(rf"""(?<![\w.-])(?:(?:"[^"\n]*+"|'[^'\n]*+'|[\w-]++)[ \t]*+\.[ \t]*+){{{DEPTH}}}""")
_TOO_DEEP = f"expected tables and lists nested at most {DEPTH} deep, got deeper ones"
