"""Filters by name: the catalogue, a scenario's own tables, and what a caller hands over."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import numpy as np

from herdfilter._checks import check_label, one_of, short_repr
from herdfilter.catalogue.expressions import Imports, check_keywords, evaluate, find_part

FilterFactory = Callable[..., Any]
"""``(model, n_particles, rng)`` -> an object with ``run(observations, dt=..., controls=...)``.

Of many targets ``(model, n_particles, rng, birth, survival_probability)``, as far as it takes them, -> one whose
``run`` returns ``labels`` and ``means`` for each step.
"""

TRACKER_ARGUMENTS = ("birth", "survival_probability")  # arguments of a tracker that the scenario gives

WORDS = ("about", "group")  # keys of a table that only the list of filters shows

Filters = str | Iterable[str] | Mapping[str, "str | Mapping[str, Any] | FilterFactory"]
"""Catalogue names, or a mapping from a name to a catalogue name, a table of keywords or a factory."""


@dataclass(frozen=True)
class FilterSpec:
    """A filter class with its keyword arguments, ready to be built for any model and particle count.

    Strings among the options are constructor expressions (see `expressions`), evaluated when the filter is built, so that a
    specification travels to a worker as text. A tracker of many targets is given births and a survival probability, and the
    names of its filter and of its association method.
    """

    filter: str = "ParticleFilter"
    options: Mapping[str, Any] = field(default_factory=dict)
    imports: Imports | None = None
    tracker: bool = False

    @classmethod
    def from_table(cls, name: str, table: Mapping[str, Any], imports: Imports | None = None) -> FilterSpec:
        """Check a table of keywords, from TOML or from a caller, and evaluate its expressions once."""
        options = {key: value for key, value in table.items() if key not in WORDS}
        known = imports if imports is not None and imports.names else None
        key = "tracker" if "tracker" in options else "filter"  # that of a tracker is the filter of its tracks
        spec = cls(options.pop(key, "ParticleFilter"), options, known, key == "tracker")
        with prefix_errors(f"filter {name}: "):
            if not isinstance(spec.filter, str):
                raise ValueError(f"{key}: expected the name of a class, got {short_repr(spec.filter)}")
            spec.built()
        check_keywords(f"filter {name}", spec.built(), options, added=("model", "n_particles", "rng", *TRACKER_ARGUMENTS))
        with prefix_errors(f"filter {name}: "):
            spec._values()
        return spec

    def __call__(self, model: Any, n_particles: int, rng: np.random.Generator, **options: Any) -> Any:
        """Build the filter; `options` replace those of the specification, or are arguments of a tracker.

        `n_particles` and `rng` are left out where the class has no such parameter.
        """
        built = self.built()
        parameters = parameter_names(built)
        if not self.tracker and not {*TRACKER_ARGUMENTS}.isdisjoint(options):
            raise ValueError(f"{self.filter} tracks one target, and there are many: take a tracker, such as LMBTracker")
        if self.tracker and "birth" not in options:
            raise ValueError(
                f"{self.filter} needs births of targets, which a scenario with [targets] has; without one, give them to "
                "herdfilter.tracking.LMBTracker(model, births)"
            )
        given = {"n_particles": n_particles, "rng": rng, **self._values(), **options}
        optional = ("n_particles", "rng", *TRACKER_ARGUMENTS)
        return built(model, **{key: value for key, value in given.items() if key in parameters or key not in optional})

    def built(self) -> Callable[..., Any]:
        """Return the class of the filter."""
        module, _, name = self.filter.rpartition(".")
        return find_part(module, name, {} if self.imports is None else self.imports.modules())

    def _values(self) -> dict[str, Any]:
        values = dict(self.options)
        names = ("filter", "association") if self.tracker else ()
        for key, value in values.items():
            if isinstance(value, str) and not (key in names and "(" not in value):
                with prefix_errors(f"{key}: "):
                    values[key] = evaluate(value, self.imports)
        return values


@lru_cache(maxsize=64)
def parameter_names(built: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the arguments of a class or function."""
    return tuple(inspect.signature(built).parameters)


def takes_keyword(function: Callable[..., Any], name: str) -> bool:
    """Return True if a function takes a keyword argument of a name."""
    parameters = inspect.signature(function).parameters
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


@contextmanager
def prefix_errors(part: str, *others: type[BaseException]) -> Iterator[None]:
    """Put the name of a part, such as ``"filter mine: "``, before the text of an error; `others` become a ValueError.

    Those are of other types than TypeError, ValueError and FileNotFoundError, such as a user's class may raise.
    """
    try:
        yield
    except (FileNotFoundError, TypeError, ValueError) as error:
        kind = next(kind for kind in (FileNotFoundError, TypeError, ValueError) if isinstance(error, kind))
        raise kind(f"{part}{error}") from error
    except others as error:
        raise ValueError(f"{part}{type(error).__name__}: {error}") from error


@cache
def catalogue() -> dict[str, dict[str, Any]]:
    """Read the shared filters, name -> table of keywords.

    Examples
    --------
    >>> entry = hf.catalogue.catalogue()["bootstrap"]
    >>> print(entry["proposal"], entry["resampling"])
    BootstrapProposal() SystematicResampling()
    >>> "auto" in hf.catalogue.catalogue()
    True
    """
    return tomllib.loads((files("herdfilter.catalogue") / "filters.toml").read_text(encoding="utf-8"))


def of_one_target() -> list[str]:
    """Return the names of the filters that track one target."""
    return [name for name, table in catalogue().items() if "tracker" not in table]


@cache
def catalogue_spec(name: str) -> FilterSpec:
    """Return the specification of a filter of the catalogue."""
    return FilterSpec.from_table(name, catalogue()[name])


def resolve_filters(
    filters: Filters, own: Mapping[str, Mapping[str, Any]] | None = None, imports: Imports | None = None
) -> dict[str, FilterFactory]:
    """Turn the `filters` argument of `compare` into factories by name, in the order given.

    Parameters
    ----------
    filters : str, iterable of str, or mapping
        See `Filters`.
    own : mapping, optional
        A scenario's own tables; they come before catalogue entries of the same name.
    imports : Imports, optional
        Modules whose names tables of keywords may use.

    Examples
    --------
    >>> factories = hf.catalogue.resolve_filters(["bootstrap", "auto"])
    >>> list(factories)
    ['bootstrap', 'auto']
    >>> pf = factories["bootstrap"](hf.models.UNGM(), 50, np.random.default_rng(0))
    >>> len(pf.particles)
    50
    """
    if not isinstance(own, Mapping | None):
        raise TypeError(f"own: expected a mapping from names to tables, got {short_repr(own)}")
    if not isinstance(imports, Imports | None):
        raise TypeError(f"imports: expected Imports, got {short_repr(imports)}")
    known = known_filters(own)
    if not isinstance(filters, Mapping):
        names = list(filters) if isinstance(filters, Iterable) and not isinstance(filters, str) else [filters]
        for name in names:
            if not isinstance(name, str):
                raise ValueError(f"filters: expected names, or a mapping from names to filters, got {short_repr(name)}")
        filters = {name: name for name in names}
    if not filters:
        raise ValueError("filters: expected at least one, got none")
    factories: dict[str, FilterFactory] = {}
    for name, entry in filters.items():
        check_label("filters: name", name)
        if isinstance(entry, str):
            entry = known[one_of("filter", entry, known)]
        if isinstance(entry, Mapping):
            entry = FilterSpec.from_table(name, entry, imports)
        if not callable(entry):
            expected = "a catalogue name, a mapping of keywords or a function"
            raise ValueError(f"filter {name}: expected {expected}, got {short_repr(entry)}")
        factories[name] = entry
    return factories


def known_filters(own: Mapping[str, Mapping[str, Any]] | None = None) -> dict[str, Mapping[str, Any]]:
    """Return the tables of all filters that have a name: the catalogue, and a scenario's own."""
    return {**catalogue(), **(own or {})}
