"""A study: its scenario, its filters, and the seeds of its runs.

The recording of a run, its reference, and every filter and particle count in it each have their own
`numpy.random.SeedSequence`, whatever the order of the work. So a table is the same for any number of workers, and the rows
of a filter, or of a model of a family, do not depend on the others that it is compared with.
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
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, cast

import numpy as np

from herdfilter import _checks
from herdfilter._version import __version__
from herdfilter.catalogue import specifications
from herdfilter.catalogue.expressions import prefix_errors
from herdfilter.study import machine, own_model, recording, reference
from herdfilter.study.families import Family
from herdfilter.study.scenario import Scenario, check_beside_model, scenario_from_table
from herdfilter.study.tasks import Key, Task

__all__ = ["plan_study"]

# These numbers enter every seed: a new purpose gets a new number.
_RECORDING, _REFERENCE, _FILTER = range(3)  # purposes of seeds


@dataclass(frozen=True, eq=False)
class Study:
    """All that decides the outcome of a comparison; made by `plan_study`."""

    scenario: Scenario
    filters: Mapping[str, specifications.FilterFactory]
    particles: tuple[int, ...]
    runs: int
    seed: int = 0
    data: recording.DataSet | None = None
    family: Family | None = None
    # Filter -> its particle counts beside `particles`.
    more: Mapping[str, Iterable[int]] = field(default_factory=dict)
    # In place of the scenario's model; and recorded series, one for each run, in place of simulated ones.
    model: Any = None
    recordings: tuple[recording.Recording, ...] = ()
    # Whether predicted observations and particles are compared, too, which takes time.
    watched: bool = True
    token: str = field(default_factory=lambda: uuid.uuid4().hex, init=False)

    @property
    def keys(self) -> list[Key]:
        """Every filter with each of its particle counts."""
        return [
            (name, n) for name in self.filters for n in (*self.particles, *self.more.get(name, ()))
        ]

    @property
    def tasks(self) -> list[Task]:
        """All tasks, run after run."""
        return [Task(*key, run) for run in range(self.runs) for key in self.keys]

    @property
    def shown_particles(self) -> int:
        """Particle count of the `Trajectory`: the middle one; 0, so that there is none, if every filter has its own."""
        return self.particles[len(self.particles) // 2] if self.particles else 0

    def build_model(self, run: int = 0) -> Any:
        """Build the model of a run: the scenario's, with the arguments from its data, or that of its family."""
        if self.model is not None:
            return self.model
        seed = {} if self.family is None else {"seed": self.family.seed(run)}
        arguments = {} if self.data is None else self.data.model_arguments
        return self.scenario.build_model(**seed, **arguments)

    def record(self, model: Any, run: int = 0) -> recording.Recording:
        """Return the recording of a run of the model, simulated or real."""
        if self.recordings:
            return self.recordings[run % len(self.recordings)]
        return recording.record(self.scenario, model, self.data, self.recording_rng(run))

    def build_filter(self, task: Task, model: Any) -> Any:
        """Build the filter of a task."""
        build = self.filters[task.filter]
        # Trackers know where targets are born and how they survive.
        options = {} if self.scenario.targets is None else self.scenario.targets.for_tracker()
        if not isinstance(build, specifications.FilterSpec):
            # A caller's function need not take all of a tracker's options.
            options = {
                name: value
                for name, value in options.items()
                if specifications.takes_keyword(build, name)
            }
        return build(model, task.n_particles, self.filter_rng(task.run, task.key), **options)

    def recording_rng(self, run: int) -> np.random.Generator:
        """Return the generator that simulates one run."""
        return self._rng(run, _RECORDING)

    def reference_rng(self, run: int) -> np.random.Generator:
        """Return the generator of the reference of one run."""
        return self._rng(run, _REFERENCE)

    def filter_rng(self, run: int, key: Key) -> np.random.Generator:
        """Return the generator of one filter in one run; it depends on the filter's name, not its position in the list."""
        # A CRC, because Python's hash of a text differs from process to process.
        return self._rng(run, _FILTER, zlib.crc32(key[0].encode()), key[1])

    def _rng(self, run: int, *purpose: int) -> np.random.Generator:
        key: tuple[int, ...] = (run,)
        if self.family is not None:
            # The model's seed and the repeat, so that a model has the same runs whichever the first model is.
            key = self.family.seed(run), run % self.family.runs
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(*key, *purpose)))

    def describe(self) -> dict[str, Any]:
        """Return everything that decides the outcome, or that figures need, as JSON data."""
        model = self.build_model()
        try:
            is_packaged = type(model).__module__.startswith("herdfilter.")
            model_digest = digest(type(model) if is_packaged else machine.sources(model))
        except (OSError, TypeError):  # typed in at a prompt, or compiled
            model_digest = digest(type(model))
        if self.model is not None:
            model_digest += f" {contents(machine.bare(model))}"
        description = {
            "herdfilter": __version__,
            "scenario": {
                k: v for k, v in vars(self.scenario).items() if k != "folder" and v is not None
            },
            "filters": self.filters,
            "particles": self.particles,
            "more": {name: [*counts] for name, counts in self.more.items()},
            "runs": self.runs,
            "family": None if self.family is None else asdict(self.family),
            "seed": self.seed,
            "model": model_digest,
            "imports": {
                name: digest(module) for name, module in self.scenario.modules.load().items()
            },
            "data": None if self.data is None else digest(self.data),
            "recordings": contents(self.recordings) if self.recordings else None,
        }
        return dict(json.loads(json.dumps(description, default=encoded)))

    @classmethod
    def described(cls, description: Mapping[str, Any]) -> Study:
        """Rebuild the study of a description; it can be looked at, but not run."""
        table = dict(description["scenario"])
        name = table.pop("name")
        return cls(
            replace(scenario_from_table(Path("described.toml"), table), name=name),
            cast(dict[str, Any], dict.fromkeys(description["filters"])),
            _counts(description["particles"]) if description["particles"] else (),
            _checks.check_count("runs", description["runs"]),
            _checks.check_count("seed", description["seed"], minimum=0, most=None),
            family=Family(**description["family"]) if description.get("family") else None,
            more={
                name: _counts(counts)
                for name, counts in description.get("more", {}).items()
                if counts
            },
        )


def plan_study(
    scenario: Any,
    filters: specifications.Filters | None = None,
    particles: int | Iterable[int] | None = None,
    runs: int | None = None,
    seed: int = 0,
    data: str | Path | None = None,
    models: int | None = None,
    first_model: int | None = None,
    observations: Any = None,
    steps: int | None = None,
    **course: Any,
) -> Study:
    """Check the arguments of `compare`, fill in the scenario's defaults, load its data, and try its parts.

    `course` holds ``truth``, ``dt``, ``times``, ``start`` and ``controls``. For a family `Study.runs` counts the runs of all
    models together. Errors are as from `compare`.

    Examples
    --------
    >>> from herdfilter.study.plan import plan_study
    >>> study = plan_study("linear_gaussian", ["bootstrap", "ukf"], particles=[20, 40], runs=3)
    >>> study.particles, study.runs, list(study.filters)
    ((20, 40), 3, ['bootstrap', 'ukf'])
    """
    model = scenario if own_model.is_model(scenario) else None
    course = {k: v for k, v in course.items() if v is not None}
    changes: dict[str, Any] = {} if steps is None else {"steps": steps}
    if observations is None:
        if "dt" in course:
            changes["dt"] = course.pop("dt")
        for name, value in course.items():
            raise ValueError(
                f"{name}: expected observations beside it, got {_checks.short_repr(value)} alone"
            )
    scenario = own_model.scenario_of(scenario, **changes)
    recordings: tuple[recording.Recording, ...] = ()
    if observations is not None:
        built = scenario.build_model() if model is None else model
        recordings = own_model.recordings_of(built, observations, **course)
        if runs is None and len(recordings) > 1:
            runs = len(recordings)
    reference.check_reference(scenario)
    family = {"models": models, "first_model": first_model}
    changes = {k: v for k, v in family.items() if v is not None}
    for name in changes if scenario.models is None else ():
        raise ValueError(
            f"{name}: expected none, since scenario {_checks.short_repr(scenario.name)} has one model, got "
            f"{_checks.short_repr(changes[name])}; use --runs for more runs of it"
        )
    scenario = replace(scenario, **changes)
    total = _checks.check_count(
        "runs", scenario.runs if runs is None else runs, most=_checks.MAX_STEPS
    )
    members = None
    if scenario.models is not None:
        # `runs` are of each model.
        members = Family(scenario.first_model, total)
        total *= scenario.models
    study = Study(
        scenario,
        specifications.resolve_filters(
            scenario.filters if filters is None else filters, scenario.filter, scenario.modules
        ),
        _counts(scenario.particles if particles is None else particles),
        total,
        _checks.check_count("seed", seed, minimum=0, most=None),
        recording.load_data(scenario, data),
        members,
        model=model,
        recordings=recordings,
    )
    _try_parts(study)
    return study


def _try_parts(study: Study) -> None:
    """Build model, filters and reference, and make the first step, so that what would fail in every run fails now."""
    scenario = study.scenario
    model = study.build_model()
    check_beside_model(scenario, model.dim)
    # The scenario's own filters, too, even if this comparison leaves them out: a mistake in its file is found at once.
    every = dict(study.filters)
    if scenario.filter:
        resolved = specifications.resolve_filters(
            [*scenario.filter], scenario.filter, scenario.modules
        )
        every = resolved | every
    # A filter may support only some models of a family.
    for name in every if study.family is None else ():
        with prefix_errors(f"filter {name}: "):
            replace(study, filters=every).build_filter(Task(name, study.particles[0], 0), model)
    for entry in scenario.published:
        known = ["reference", *specifications.catalogue(), *scenario.filter]
        _checks.one_of("published filter", entry.filter, known)
        if entry.model:
            other = replace(scenario, model={**scenario.model, **entry.model})
            replace(study, scenario=other).build_model()
    if study.family is not None:
        return  # another model of the family may work
    try:
        reference.try_reference(scenario, model, study.record(model).first(1))
    except SystemExit as error:  # of a user's model
        raise ValueError(f"the first run cannot be prepared: SystemExit: {error}") from error


def _counts(particles: int | Iterable[int]) -> tuple[int, ...]:
    """Return the particle counts, each once; `particles` may be a single number."""
    counts = tuple(
        dict.fromkeys(
            _checks.check_count("particles", n) for n in specifications.as_entries(particles)
        )
    )
    if not counts:
        raise ValueError("particles: expected at least one count, got none")
    return counts


def encoded(value: Any) -> Any:
    """Encode what JSON lacks: objects by their public attributes, functions by name and digest of their text.

    The globals that a function reads are not part of its digest.
    """
    match value:
        case np.generic() | np.ndarray():
            return value.tolist()
        case Mapping():
            return dict(value)
        case set() | frozenset():
            return list(value)
        case functools.partial():
            return {"partial": value.func, "args": value.args, "keywords": value.keywords}
        # Functions made by one `def` differ in the variables that they captured.
        case FunctionType() if value.__closure__:
            return {
                "function": digest(value),
                "captured": [cell.cell_contents for cell in value.__closure__],
            }
        case FunctionType() | type():
            return digest(value)
    if is_dataclass(value):
        attributes = {f.name: getattr(value, f.name) for f in fields(value)}
    elif hasattr(value, "__dict__"):
        attributes = vars(value)
    else:
        # The address in it differs in every process.
        return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
    public = {k: v for k, v in attributes.items() if not k.startswith("_")}
    cls = type(value)
    # The tables of a scenario are dataclasses of these modules.
    if cls.__module__ in ("herdfilter.study.tables", "herdfilter.study.targets"):
        return public
    return {"type": f"{cls.__module__}.{cls.__qualname__}"} | public


def digest(value: Any) -> str:
    """Return a short text that tells values apart: name and text of a function, class or module, contents of anything else.

    Of a part of this package it is the name alone, because the package's version is recorded.
    """
    if isinstance(value, ModuleType):
        name = value.__name__
    elif isinstance(value, (type, FunctionType)):
        name = f"{value.__module__}.{value.__qualname__}"
    else:
        return _hash(json.dumps(value, default=encoded))
    if name.startswith("herdfilter."):
        return name
    try:
        return f"{name} {_hash(inspect.getsource(value))}"
    except (OSError, TypeError):  # typed in at a prompt
        return name


def contents(value: Any) -> str:
    """Return a short text that tells objects apart by all that they hold; empty if they cannot be pickled."""
    import joblib

    # Functions typed in at a prompt are pickled by their code; other objects may raise anything.
    with suppress(Exception):
        return str(joblib.hash(value))[:12]
    return ""


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Name the differences between two descriptions, as in ``steps: 100 there, 50 now``."""
    import pandas as pd

    # Nested tables become flat, so that a difference is named by its full key.
    before, after = (
        pd.json_normalize(dict(description)).to_dict("records")[0] for description in (old, new)
    )
    for key in dict.fromkeys([*before, *after]):
        stored, now = (
            json.dumps(values[key]) if key in values else "nothing" for values in (before, after)
        )
        if stored != now:
            yield f"{key}: {_checks.shortened(stored, 60)} there, {_checks.shortened(now, 60)} now"
