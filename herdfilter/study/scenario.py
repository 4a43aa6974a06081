"""Scenarios: one experiment a TOML file, with its source.

A file runs code where it names any: a Python file in ``type``, and the modules under ``imports``. Beside those, only the
public classes of herdfilter can be named in it.

```toml
title = "..."                 # required, as is [model]
source = "author, year"
steps = 100                   # left out with real data
dt = 1.0
runs = 20                     # of a family, runs of each model
models = 100                  # a family: so many models, each of a seed that [model] takes under the name `seed`
first_model = 0               # seed of the first
particles = [20, 50, 100]
filters = ["bootstrap", "herded-kh", "my-filter"]
error_dims = [0, 1]           # dimensions whose error counts; all unless given
unit = "m"                    # of the error
labels = ["x (m)", "y (m)"]   # of the state's dimensions, for figures
time_label = "time (s)"
view = "plane"                # path in the first two of error_dims, or "time": the first dimension against time
imports = ["mymodule"]        # modules whose classes the file names: installed ones, or mymodule.py beside it

[model]
type = "UNGM"                 # in herdfilter.models, or "mymodule:Class", or "file.py:Class" in the file's folder
process_variance = 10.0       # further keys are keyword arguments of the class; of `model`, a text is a constructor
                              # expression, such as "models.LinearGaussian(...)" within a WithClutter

[truth]                       # of a simulation
initial = [0.1]               # state at step 0; drawn from the model's initial distribution unless given

[targets]                     # many of them, each of which [model], a WithClutter, observes in scans; see targets.Targets
cutoff = 100.0                # of GOSPA and OSPA: from this distance on an estimate is none of the target
survival_probability = 0.99
noise = true                  # whether the true targets have the model's noise
gospa_order = 2.0
ospa_order = 1.0

[[targets.births]]            # where one may be born at every step: told to the trackers
probability = 0.03
mean = [0.0, 0.0]
sd = [10.0, 10.0]             # or one table [targets.births] with mean, sd, expected: where detections are of no track

[[targets.tracks]]            # a target of the truth; without any, they are drawn from the births in each run
initial = [0.0, 1.0]          # state at step `at`
sd = [1.0, 0.1]               # by which it differs from run to run; 0 unless given
first = 1                     # step of its first detection
last = 70                     # to the end unless given
at = 0                        # the step before `first` unless given; from a later one it is simulated back, too

[data]                        # real data instead of a simulation; type is a function that returns a recording.DataSet
type = "mymodule:load"        # of a module under imports; as herdfilter.study.data.plaza:load_plaza
name = "walk.csv"             # further keys are its keyword arguments

[reference]                   # compared with beside the truth; see reference.REFERENCES
type = "grid"

[divergence]                  # a run diverged if its RMSE over the last part exceeds the bound
final_part = 0.25
rmse_above = 15.0

[[published]]                 # a figure from elsewhere, to compare ours with (benchmarks/bench_known.py)
filter = "bootstrap"          # or "reference": the posterior mean itself
n_particles = 50
value = 5.5
tolerance = 0.3               # how far ours may be from it
source = "author, year, table"
measure = "rmse"              # see PUBLISHED_MEASURES
statistic = "mean"            # over runs: "mean", "median" or "rms"
runs = 100                    # as there; so are steps and skip (steps left out at the start)
model = {}                    # keys of [model] that differ there

[filter.my-filter]            # a filter of one's own, in the form of catalogue/filters.toml
proposal = "HerdedProposal(KernelHerding(bandwidth=0.5))"   # or "HerdedProposal(mymodule.MySampler())"
```
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from herdfilter._checks import as_array, as_number, as_positive, check_count, check_label, one_of, short_repr, shortened
from herdfilter.catalogue.expressions import Imports, check_imports, check_keywords, evaluate, is_file
from herdfilter.study.data import SCENARIOS
from herdfilter.study.targets import Anywhere, Targets

__all__ = ["Scenario", "load_scenario"]


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

    rmse_above: float
    final_part: float = 0.25

    def __post_init__(self) -> None:
        as_positive("divergence rmse_above", self.rmse_above)
        as_number("divergence final_part", self.final_part, "above 0 and up to 1", lambda part: 0 < part <= 1)


PUBLISHED_MEASURES = ("rmse", "mean_component_rmse")
"""The column ``rmse``; or the root mean square over the error dimensions at every step, averaged over the steps."""

STATISTICS = ("mean", "median", "rms")
"""What is taken over the runs."""


@dataclass(frozen=True)
class Published:
    """A figure from the literature that a filter should reproduce.

    Parameters
    ----------
    filter : str
        Name of the filter, or ``"reference"`` for the scenario's reference.
    n_particles : int
        Particle count; of no meaning for the reference.
    value, tolerance : float
        The figure, and how far from it ours may be.
    source : str
        Where it stands.
    measure : str
        One of `PUBLISHED_MEASURES`.
    statistic : str
        One of `STATISTICS`.
    runs : int
        Number of runs.
    steps : int, optional
        Number of steps; the scenario's unless given.
    skip : int
        Steps at the start that do not count.
    model : mapping
        Keys of ``[model]`` that differ from the scenario's.
    """

    filter: str
    n_particles: int
    value: float
    tolerance: float
    source: str
    measure: str = "rmse"
    statistic: str = "mean"
    runs: int = 20
    steps: int | None = None
    skip: int = 0
    model: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.filter, str):
            raise ValueError(f"published filter: expected a name, got {self.filter!r}")
        check_count("published n_particles", self.n_particles)
        as_positive("published value", self.value)
        as_positive("published tolerance", self.tolerance)
        if not isinstance(self.source, str) or not self.source:
            raise ValueError(f"published source: expected where the figure stands, got {self.source!r}")
        one_of("published measure", self.measure, PUBLISHED_MEASURES)
        one_of("published statistic", self.statistic, STATISTICS)
        check_count("published runs", self.runs)
        if self.steps is not None:
            check_count("published steps", self.steps)
        check_count("published skip", self.skip, minimum=0)
        if not isinstance(self.model, Mapping):
            raise ValueError(f"published model: expected a table of keys of [model], got {self.model!r}")


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


@dataclass(frozen=True)
class Scenario:
    """One experiment; the fields are the keys of the TOML file (see the module's documentation).

    Attributes
    ----------
    name : str
        The file's name without ``.toml``.
    folder : Path
        Where the file lies; paths in it are relative to this folder.
    filter : mapping
        The scenario's own filters, name -> table of keywords.

    Examples
    --------
    >>> scenario = hf.study.Scenario(
    ...     name="volatility",
    ...     title="Ten days of a volatile price",
    ...     model={"type": "StochasticVolatility"},
    ...     steps=10,
    ... )
    >>> scenario.build_model().dim
    1
    >>> table = hf.compare(scenario, ["bootstrap"], particles=[20], runs=2)
    >>> table["rmse"].notna().tolist()
    [True, True]
    """

    name: str
    title: str
    model: Mapping[str, Any]
    source: str = ""
    steps: int = 100
    dt: float = 1.0
    runs: int = 20
    models: int | None = None
    first_model: int = 0
    particles: tuple[int, ...] = (100,)
    filters: tuple[str, ...] = ("bootstrap", "herded-kh", "mixture-kh")
    error_dims: tuple[int, ...] | None = None
    unit: str = ""
    labels: tuple[str, ...] = ()
    time_label: str = "time"
    view: str = "plane"
    truth: Mapping[str, Any] | None = None
    targets: Targets | None = None
    data: Mapping[str, Any] | None = None
    reference: Mapping[str, Any] | None = None
    divergence: Divergence | None = None
    published: tuple[Published, ...] = ()
    filter: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    imports: tuple[str, ...] = ()
    folder: Path = Path()

    def __post_init__(self) -> None:
        check_fields(self)
        if self.truth is not None:
            check_keywords("[truth]", _truth, self.truth)

    @property
    def modules(self) -> Imports:
        """The modules whose names the scenario may use."""
        return Imports(self.imports, self.folder)

    @property
    def initial_truth(self) -> Sequence[float] | None:
        """State at step 0 of a simulated truth, shape (d,); None if it is drawn."""
        return None if self.truth is None else _truth(**self.truth)

    @property
    def data_loader(self) -> Callable[..., Any]:
        """The function that ``[data] type`` names."""
        name = str((self.data or {})["type"])
        with _blamed_on("[data] type"):
            if ":" not in name:
                raise ValueError(f"expected 'module:function', of a module under imports, got {short_repr(name)}")
            return self.modules.resolve(name)

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Import in a worker, too, what defines the recorded data that a study holds beside its scenario."""
        vars(self).update(state)
        if self.data is not None:
            with suppress(Exception):
                _ = self.data_loader

    def dims(self, dim: int) -> tuple[int, ...]:
        """Dimensions whose error counts, of a state of `dim` dimensions."""
        return tuple(range(dim)) if self.error_dims is None else self.error_dims

    def steps_of(self, model: Any) -> int:
        """Count the steps of a simulated run; the models of a family say in `steps` how many they should have."""
        return self.steps if self.models is None else check_count("steps", getattr(model, "steps", self.steps))

    @property
    def plane(self) -> tuple[int, int]:
        """Dimensions in which a path is drawn: the first two whose error counts, where there are two."""
        i, j = self.error_dims[:2] if self.error_dims and len(self.error_dims) > 1 else (0, 1)
        return i, j

    def build_model(self, **arguments: Any) -> Any:
        """Build the model from its table; `arguments` are what real data brings along (such as beacons), or a seed.

        Of a family, the first model unless `arguments` have another seed.

        Raises
        ------
        ValueError
            If the class is unknown or does not take a key (with the nearest known name).
        FileNotFoundError
            If the class is to come from a file that does not exist.
        """
        drawn = {} if self.models is None else {"seed": self.first_model}
        keywords = {k: v for k, v in self.model.items() if k != "type"} | drawn | arguments
        name = str(self.model["type"])
        with _blamed_on(f"{self.name}.toml: model type"):
            cls = self.modules.resolve(name)
        with _blamed_on(f"{self.name}.toml: model {short_repr(name)}"):
            if isinstance(keywords.get("model"), str):  # of one target, without the clutter
                keywords["model"] = evaluate(keywords["model"], self.modules)
            check_keywords("arguments", cls, keywords)
            model = cls(**keywords)
            check_count("dim", getattr(model, "dim", None))
        return model


@contextmanager
def _blamed_on(part: str) -> Iterator[None]:
    """Put the name of a part before whatever is raised for it."""
    try:
        yield
    except (FileNotFoundError, TypeError, ValueError) as error:
        kind = next(kind for kind in (FileNotFoundError, TypeError, ValueError) if isinstance(error, kind))
        raise kind(f"{part}: {error}") from error
    except (Exception, SystemExit) as error:  # what a class does with arguments that do not fit
        raise ValueError(f"{part}: {type(error).__name__}: {error}") from error


def _truth(initial: Sequence[float]) -> Sequence[float]:
    """Return the only key of ``[truth]``."""
    return initial


def scenario_files() -> dict[str, Path]:
    """Find the scenarios that come with the package, name -> TOML file, in alphabetical order."""
    return {path.stem: path for path in sorted(SCENARIOS.glob("*.toml"))}


def load_scenario(scenario: str | os.PathLike[str] | Scenario) -> Scenario:
    """Load a scenario by name, or from a path to a TOML file.

    Raises
    ------
    ValueError
        If the name or a key is unknown (with the nearest known one), or a value does not fit.
    FileNotFoundError
        If a path was given and there is no such file.

    Examples
    --------
    >>> from herdfilter.study.scenario import load_scenario
    >>> scenario = load_scenario("ungm")
    >>> scenario.steps, scenario.build_model()
    (100, UNGM(process_variance=10.0, observation_variance=1.0, initial_variance=5.0))
    """
    if isinstance(scenario, Scenario):
        return scenario
    if not isinstance(scenario, (str, os.PathLike)):
        raise TypeError(f"scenario: expected a name, a path to a TOML file or a Scenario, got {short_repr(scenario)}")
    text = os.fspath(scenario)
    if text.endswith(".toml") or os.sep in text:
        path = Path(text).expanduser()
        if not is_file(path):
            raise FileNotFoundError(f"scenario: no file {shortened(str(path), 200)}")
    else:
        known = scenario_files()
        path = known[one_of("scenario", text, known)]
    name = shortened(path.name, 80)
    try:
        text = path.read_text(encoding="utf-8-sig")
        check_keys(text)
        return scenario_from_table(path, tomllib.loads(text))
    except UnicodeDecodeError as error:
        raise ValueError(f"{name}: expected text in UTF-8, got byte {error.object[error.start]:#x}") from None
    except RecursionError:
        raise ValueError(f"{name}: expected a table, got one nested too deeply") from None
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from None


def scenario_from_table(path: Path, table: dict[str, Any]) -> Scenario:
    """Check a table as it stands in a scenario's file, and make the scenario of it."""
    check_depth(table)
    for name in ("model", "truth", "targets", "data", "reference", "divergence", "filter"):
        if not isinstance(table.get(name, {}), dict):
            raise ValueError(f"{name}: expected a table [{name}], got {short_repr(table[name])}")
    if "divergence" in table:
        check_keywords("[divergence]", Divergence, table["divergence"])
        table["divergence"] = Divergence(**table["divergence"])
    if "targets" in table:
        table["targets"] = Targets.from_table(table["targets"])
    table["published"] = _published(table.get("published", []))
    for name, expected in _LISTS.items():
        if name in table:
            table[name] = _tuple(name, table[name], expected)
    check_keywords("scenario", Scenario, table, taken=("name", "folder"))
    return Scenario(name=path.stem, folder=path.resolve().parent, **table)


def _published(entries: Any) -> tuple[Published, ...]:
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError(f"published: expected tables [[published]], got {short_repr(entries)}")
    for entry in entries:
        check_keywords("[[published]]", Published, entry)
    return tuple(Published(**entry) for entry in entries)


_LISTS: dict[str, type] = {"particles": int, "filters": str, "error_dims": int, "labels": str, "imports": str}


def _tuple(name: str, value: Any, expected: type) -> tuple[Any, ...]:
    if not isinstance(value, list) or not all(type(item) is expected for item in value):
        raise ValueError(f"{name}: expected a list of {expected.__name__}, got {short_repr(value)}")
    return tuple(value)
