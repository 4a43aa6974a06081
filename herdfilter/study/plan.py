"""A study: which filters see which recordings with which seeds.

Seeds hang on what they are for, not on the order of the work: the recording of a run, its reference, and
every filter and particle count in it have each their own `numpy.random.SeedSequence`. So a table is the same
for any number of workers, and a filter's rows are the same whichever other filters stand beside it; and in a family of
models a model's rows are the same whichever other models there are.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import re
import uuid
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NoReturn, cast

import numpy as np

from herdfilter._checks import check_count, one_of
from herdfilter._version import __version__
from herdfilter.catalogue.specifications import (
    FilterFactory,
    Filters,
    FilterSpec,
    known_filters,
    prefix_errors,
    resolve_filters,
    takes_keyword,
)
from herdfilter.study import machine
from herdfilter.study.families import Family, planned_family
from herdfilter.study.machine import check_study_fits
from herdfilter.study.recording import DataSet, load_data, record
from herdfilter.study.reference import check_reference, try_reference
from herdfilter.study.scenario import Scenario, check_beside_model, load_scenario, scenario_from_table
from herdfilter.study.tasks import Key, Task

__all__ = ["Study", "plan_study"]

# What a seed is for.
_RECORDING, _REFERENCE, _FILTER = range(3)


@dataclass(frozen=True, eq=False)
class Study:
    """Everything that decides the outcome of a comparison; made by `plan_study`.

    Examples
    --------
    >>> from herdfilter.study.plan import plan_study
    >>> study = plan_study("linear_gaussian", ["bootstrap", "ukf"], particles=[20, 40], runs=3)
    >>> len(study.tasks), study.tasks[0]
    (12, Task(filter='bootstrap', n_particles=20, run=0))
    >>> study.describe()["seed"]
    0
    """

    scenario: Scenario
    filters: Mapping[str, FilterFactory]
    particles: tuple[int, ...]
    runs: int
    seed: int = 0
    data: DataSet | None = None
    family: Family | None = None
    token: str = field(default_factory=lambda: uuid.uuid4().hex, init=False)

    @property
    def keys(self) -> list[Key]:
        """Every filter with every particle count."""
        return [(name, n) for name in self.filters for n in self.particles]

    @property
    def tasks(self) -> list[Task]:
        """All of the work, run after run."""
        return [Task(*key, run) for run in range(self.runs) for key in self.keys]

    @property
    def shown_particles(self) -> int:
        """Particle count of the `Trajectory`: the middle one."""
        return self.particles[len(self.particles) // 2]

    def build_model(self, run: int = 0) -> Any:
        """Build the model of a run: the scenario's, with what the data bring along, or that of its family."""
        drawn = {} if self.family is None else {"seed": self.family.seed(run)}
        return self.scenario.build_model(**drawn, **({} if self.data is None else self.data.model_arguments))

    def build_filter(self, task: Task, model: Any) -> Any:
        """Build the filter of a task."""
        return self._built(self.filters[task.filter], task, model)

    def _built(self, factory: FilterFactory, task: Task, model: Any) -> Any:
        targets = self.scenario.targets
        told = {} if targets is None else targets.for_tracker()
        if not isinstance(factory, FilterSpec):  # a caller's own takes what it needs
            told = {name: value for name, value in told.items() if takes_keyword(factory, name)}
        return factory(model, task.n_particles, self.filter_rng(task.run, task.key), **told)

    def recording_rng(self, run: int) -> np.random.Generator:
        """Return the generator that simulates one run."""
        return self._rng(run, _RECORDING)

    def reference_rng(self, run: int) -> np.random.Generator:
        """Return the generator of the reference of one run."""
        return self._rng(run, _REFERENCE)

    def filter_rng(self, run: int, key: Key) -> np.random.Generator:
        """Return the generator of one filter in one run; it hangs on the filter's name, not on its place."""
        return self._rng(run, _FILTER, zlib.crc32(key[0].encode()), key[1])

    def _rng(self, run: int, *purpose: int) -> np.random.Generator:
        place = (run,) if self.family is None else self.family.place(run)
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(*place, *purpose)))

    def dims(self, model: Any) -> tuple[int, ...]:
        """Dimensions whose error counts."""
        return self.scenario.dims(model.dim)

    def describe(self) -> dict[str, Any]:
        """Return everything that decides the outcome, and what figures need to know, in terms of JSON."""
        return {
            "herdfilter": __version__,
            "scenario": {k: v for k, v in plain(self.scenario).items() if k != "folder" and v is not None},
            "filters": plain(self.filters),
            "particles": list(self.particles),
            "runs": self.runs,
            "family": None if self.family is None else asdict(self.family),
            "seed": self.seed,
            "model": _source(self.build_model()),
            "imports": {name: digest(module) for name, module in self.scenario.modules.modules().items()},
            "data": None if self.data is None else digest(self.data),
        }

    @classmethod
    def described(cls, description: Mapping[str, Any]) -> Study:
        """Make a study from its description: it can be looked at, but not run."""
        table = dict(description["scenario"])
        name = table.pop("name")
        return cls(
            replace(scenario_from_table(Path("described.toml"), table), name=name),
            dict.fromkeys(description["filters"], _only_described),
            _counts(description["particles"]),
            check_count("runs", description["runs"]),
            check_count("seed", description["seed"], minimum=0, most=None),
            family=Family(**description["family"]) if description.get("family") else None,
        )


def _source(model: Any) -> str:
    """Digest of the files in which a user's model stands."""
    try:
        return digest(type(model) if type(model).__module__.startswith("herdfilter.") else machine.sources(model))
    except (OSError, TypeError):  # typed in at a prompt, or compiled
        return digest(type(model))


def _only_described(model: Any, n_particles: int, rng: np.random.Generator) -> NoReturn:
    raise ValueError("filters: this study was read from a store and cannot be run")


def plan_study(
    scenario: str | Path | Scenario,
    filters: Filters | None = None,
    particles: int | Iterable[int] | None = None,
    runs: int | None = None,
    seed: int = 0,
    data: str | Path | None = None,
    models: int | None = None,
    first_model: int | None = None,
) -> Study:
    """Check the arguments of a comparison, fill in the scenario's defaults, load its data, try its parts.

    Of a family, `Study.runs` counts the runs of all models together.

    Raises
    ------
    ValueError
        If a name or a value does not fit.
    TypeError
        If the model lacks a function that a filter needs.
    FileNotFoundError
        If the scenario's file or its data are not there.

    Examples
    --------
    >>> from herdfilter.study.plan import plan_study
    >>> study = plan_study("linear_gaussian", ["bootstrap", "ukf"], particles=[20, 40], runs=3)
    >>> study.particles, study.runs, list(study.filters)
    ((20, 40), 3, ['bootstrap', 'ukf'])
    """
    scenario = load_scenario(scenario)
    check_reference(scenario)
    each = check_count("runs", scenario.runs if runs is None else runs, most=None)
    family, total = planned_family(scenario, models, first_model, each)
    study = Study(
        scenario,
        resolve_filters(scenario.filters if filters is None else filters, scenario.filter, scenario.modules),
        _counts(scenario.particles if particles is None else particles),
        total,
        check_count("seed", seed, minimum=0, most=None),
        load_data(scenario, data),
        family,
    )
    _try_parts(study)
    return study


def _try_parts(study: Study) -> None:
    """Build model, filters and reference, and make the first step, so that what goes wrong in every run does so now."""
    scenario, model = study.scenario, study.build_model()
    check_beside_model(scenario, model.dim)
    steps = scenario.steps_of(model) if study.data is None else len(study.data.recording)
    check_study_fits(study.particles, model.dim, steps, study.runs, len(study.filters))
    own = resolve_filters([*scenario.filter], scenario.filter, scenario.modules) if scenario.filter else {}
    every = own | dict(study.filters) if study.family is None else {}  # there, one may serve most models but not this
    for name, factory in every.items():
        with prefix_errors(f"filter {name}: "):
            study._built(factory, Task(name, study.particles[0], 0), model)
    for entry in scenario.published:
        one_of("published filter", entry.filter, ["reference", *known_filters(scenario.filter)])
        if entry.model:
            replace(study, scenario=replace(scenario, model={**scenario.model, **entry.model})).build_model()
    if study.family is not None:
        return  # what goes wrong with one of its models may go well with the others
    try:
        try_reference(scenario, model, record(scenario, model, study.data, study.recording_rng(0), steps=1))
    except SystemExit as error:  # of a user's model
        raise ValueError(f"the first run cannot be made ready: SystemExit: {error}") from error


def _counts(particles: int | Iterable[int]) -> tuple[int, ...]:
    """Particle counts, each once; a number stands for itself."""
    single = isinstance(particles, (str, bytes)) or not isinstance(particles, Iterable)
    given: list[Any] = [particles] if single else list(cast(Iterable[int], particles))
    counts = tuple(dict.fromkeys([check_count("particles", n, most=None) for n in given]))
    if not counts:
        raise ValueError("particles: expected at least one count, got none")
    return counts


def plain(value: Any) -> Any:
    """Return a value in terms of JSON: objects by their public attributes, functions by name and digest of their text.

    Equal descriptions mean equal objects as far as these tell; what a function reads from elsewhere goes unnoticed.
    """
    match value:
        case None | bool() | int() | float() | str():
            return value
        case np.generic() | np.ndarray():
            return value.tolist()
        case Mapping():
            return {str(k): plain(v) for k, v in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(v) for v in value]
        case functools.partial():
            return {"partial": plain(value.func), "args": plain(value.args), "keywords": plain(value.keywords)}
        case FunctionType() if value.__closure__:
            cells = [plain(cell.cell_contents) for cell in value.__closure__]
            return {"function": digest(value), "captured": cells}
        case FunctionType() | type():
            return digest(value)
    if is_dataclass(value):
        attributes = {f.name: getattr(value, f.name) for f in fields(value)}
    elif hasattr(value, "__dict__"):
        attributes = vars(value)
    else:
        return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
    public = {k: plain(v) for k, v in attributes.items() if not k.startswith("_")}
    return public if type(value).__module__ in _PARTS_OF_A_SCENARIO else {"type": _name(value)} | public


_PARTS_OF_A_SCENARIO = tuple(f"herdfilter.study.{name}" for name in ("scenario", "tables", "targets"))


def _name(value: Any) -> str:
    cls = type(value)
    return f"{cls.__module__}.{cls.__qualname__}"


def digest(value: Any) -> str:
    """Return a short text that tells values apart: name and text of a function, class or module, contents of anything else.

    What comes with the package has its name only: its version is recorded.
    """
    if isinstance(value, ModuleType):
        name = value.__name__
    elif isinstance(value, (type, FunctionType)):
        name = f"{value.__module__}.{value.__qualname__}"
    else:
        return _hash(json.dumps(plain(value)))
    if name.startswith("herdfilter."):
        return name
    try:
        return f"{name} {_hash(inspect.getsource(value))}"
    except (OSError, TypeError):  # typed in at a prompt
        return name


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Name what differs between two descriptions, ``steps: 100 there, 50 now``.

    A key that one of them lacks and that is empty in the other is no difference: it is newer than the one.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            if (old | new)[key] in (None, [], {}) and not (key in old and key in new):
                continue
            yield from differences(old.get(key), new.get(key), f"{path}.{key}" if path else key)
    elif json.dumps(old) != json.dumps(new):
        yield f"{path}: {_short(old)} there, {_short(new)} now"


def _short(value: Any) -> str:
    text = "nothing" if value is None else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
