"""Filters by name: from the catalogue, from a scenario's own tables, or from a caller."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import numpy as np

from herdfilter._checks import check_label, one_of, short_repr
from herdfilter.catalogue import expressions

FilterFactory = Callable[..., Any]
"""``(model, n_particles, rng)`` -> an object with ``run(observations, dt=..., controls=...)``.

For many targets ``(model, n_particles, rng, birth, survival_probability)`` -> an object whose ``run`` returns ``labels`` and
``means`` for each step; a function without the last two arguments is called without them.
"""

# Arguments of a tracker that come from the scenario.
TRACKER_ARGUMENTS = ("birth", "survival_probability")

WORDS = ("about", "group")  # keys of a table that are only for the list of filters

SYNONYMS = {
    "'rb-bootstrap'": "rbpf rao blackwell blackwellised blackwellized marginalised marginalized",
    "'auxiliary'": "apf auxiliary",
    "'herded-kh'": "herding kernel",
    "'herded-chg'": "gibbs",
    "'enkf'": "ensemble etkf",
    "'ukf'": "unscented sigma spkf",
    "'ckf'": "cubature",
    "'lmb-ukf'": "lmb phd jpda mht tracker",
    "'ekf', or 'ukf'": "kalman kf extended",
    "'bootstrap', or 'auto'": "particle pf sir smc montecarlo condensation",
    "GridFilter(model, lower, upper, points)": "grid histogram",
}
"""Filter -> words for it in papers and other libraries, the special ones first."""

Filters = str | Iterable[str] | Mapping[str, "str | Mapping[str, Any] | FilterFactory"]
"""Names of the catalogue, or a mapping from a name to a catalogue name, a table of keywords or a factory."""


@dataclass(frozen=True)
class FilterSpec:
    """A filter class with its keyword arguments, ready to be built for any model and particle count.

    Strings among the options are constructor expressions (see `expressions`), evaluated when the filter is built, so that a
    specification is sent to a worker as text. A tracker of many targets also needs births and a survival probability; its
    filter and its association method may be names.
    """

    filter: str = "ParticleFilter"
    options: Mapping[str, Any] = field(default_factory=dict)
    imports: expressions.Imports | None = None
    tracker: bool = False

    @classmethod
    def from_table(
        cls,
        name: str,
        table: Mapping[str, Any],
        imports: expressions.Imports | None = None,
    ) -> FilterSpec:
        """Check a table of keywords, from TOML or from a caller, and evaluate its expressions once."""
        options = {key: value for key, value in table.items() if key not in WORDS}
        # In a tracker's table, `filter` is that of its tracks.
        key = "tracker" if "tracker" in options else "filter"
        cls_name = options.pop(key, "ParticleFilter")
        with expressions.prefix_errors(f"filter {name}: "):
            if not isinstance(cls_name, str):
                raise ValueError(f"{key}: expected the name of a class, got {short_repr(cls_name)}")
            imports = imports if imports and imports.names else None
            spec = cls(cls_name, options, imports, tracker=key == "tracker")
            added = ("model", "n_particles", "rng", *TRACKER_ARGUMENTS)
            expressions.check_keywords("options", spec.built(), options, added)
            spec._values()  # raises the errors of wrong expressions now
        return spec

    def __call__(
        self,
        model: Any,
        n_particles: int,
        rng: np.random.Generator,
        **options: Any,
    ) -> Any:
        """Build the filter; `options` replace those of the specification, or are arguments of a tracker.

        `n_particles` and `rng` are not passed to a class without such parameters.
        """
        built = self.built()
        if not self.tracker and not {*TRACKER_ARGUMENTS}.isdisjoint(options):
            raise ValueError(
                f"{self.filter} tracks one target, and there are many: take a tracker, such as LMBTracker"
            )
        if self.tracker and "birth" not in options:
            raise ValueError(
                f"birth: expected where targets may appear, such as [hf.tracking.Birth(0.1, initial)], got none; "
                f"{self.filter} has them from a scenario with [targets]"
            )
        # Options of the caller come last, and win.
        arguments = {"n_particles": n_particles, "rng": rng, **self._values(), **options}
        # Every study passes these; they are dropped where the class has no such argument.
        optional = {"n_particles", "rng", *TRACKER_ARGUMENTS}.difference(parameter_names(built))
        return built(model, **{key: arguments[key] for key in arguments if key not in optional})

    def built(self) -> Callable[..., Any]:
        """Return the class of the filter."""
        return expressions.find_part(
            self.filter, {} if self.imports is None else self.imports.load()
        )

    def _values(self) -> dict[str, Any]:
        """Return the options with expressions evaluated; filter and association of a tracker may be names."""
        values = dict(self.options)
        for key, value in values.items():
            # A name such as "ukf" is looked up by the tracker itself.
            is_name = self.tracker and key in ("filter", "association") and "(" not in str(value)
            if isinstance(value, str) and not is_name:
                with expressions.prefix_errors(f"{key}: "):
                    values[key] = expressions.evaluate(value, self.imports)
        return values


@lru_cache(maxsize=64)
def parameter_names(built: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the arguments of a class or function."""
    return tuple(inspect.signature(built).parameters)


def takes_keyword(function: Callable[..., Any], name: str) -> bool:
    """Return True if a function accepts a keyword argument with this name."""
    parameters = inspect.signature(function).parameters
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def as_entries(values: Any) -> list[Any]:
    """Return the entries of an iterable; a list of one for a single name, number or table."""
    # Texts and tables are iterable, too, but stand for themselves.
    is_single = isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable)
    return [values] if is_single else list(values)


@cache
def catalogue() -> dict[str, dict[str, Any]]:
    """Read the catalogue, name of a filter -> table of keywords.

    Examples
    --------
    >>> entry = hf.catalogue.catalogue()["bootstrap"]
    >>> print(entry["proposal"], entry["resampling"])
    BootstrapProposal() SystematicResampling()
    >>> "auto" in hf.catalogue.catalogue()
    True
    """
    return tomllib.loads(
        (files("herdfilter.catalogue") / "filters.toml").read_text(encoding="utf-8")
    )


@cache
def catalogue_spec(name: str) -> FilterSpec:
    """Return the specification of a filter of the catalogue."""
    return FilterSpec.from_table(name, catalogue()[name])


def filter_name(argument: str, name: str, entries: Iterable[str] = ()) -> str:
    """Return a name of the catalogue, or of other `entries`; else raise a ValueError that suggests one."""
    return one_of(argument, name, [*catalogue(), *entries], SYNONYMS)


def resolve_filters(
    filters: Filters,
    own: Mapping[str, Mapping[str, Any]] | None = None,
    imports: expressions.Imports | None = None,
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
    entries = {**catalogue(), **(own or {})}
    if not isinstance(filters, Mapping):
        names = as_entries(filters)
        if not all(isinstance(name, str) for name in names):
            raise ValueError(
                f"filters: expected names, or a mapping from names to filters, got {short_repr(filters)}"
            )
        # a text may hold several names, as on the command line
        texts = (name if name in entries else re.sub(r"[,\s]+", "\n", name) for name in names)
        filters = {name: name for text in texts for name in text.split("\n") if name}
    if not filters:
        raise ValueError("filters: expected at least one, got none")
    factories: dict[str, FilterFactory] = {}
    for name, entry in filters.items():
        check_label("filters: name", name)
        if isinstance(entry, str):
            entry = entries[filter_name("filter", entry, entries)]
        if isinstance(entry, Mapping):
            entry = FilterSpec.from_table(name, entry, imports)
        if not callable(entry):
            expected = "a catalogue name, a mapping of keywords or a function"
            raise ValueError(f"filter {name}: expected {expected}, got {short_repr(entry)}")
        factories[name] = entry
    return factories
