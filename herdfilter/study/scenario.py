"""Scenarios: each TOML file is one experiment, with its source; the page "A scenario of your own" lists all keys.

Loading a file runs the code that it names: a Python file in ``type``, and the modules under ``imports``. Apart from those,
only the public classes of herdfilter can be named in it.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from herdfilter._checks import (
    as_array,
    check_count,
    check_label,
    one_of,
    short_repr,
    shortened,
)
from herdfilter.catalogue.expressions import Imports, check_keywords, evaluate, prefix_errors
from herdfilter.study import tables
from herdfilter.study.data import SCENARIOS
from herdfilter.study.targets import Targets

__all__ = ["Scenario", "load_scenario"]

NonNegative = Annotated[int, partial(check_count, minimum=0, most=None)]
FigureText = Annotated[str, check_label]


def _check_typed(key: str, table: Mapping[str, Any]) -> None:
    if not isinstance(table.get("type"), str):
        raise ValueError(
            f"{key}: expected a key 'type' with a name, got {short_repr(table.get('type'))}"
        )


def _check_different(key: str, dims: Sequence[int]) -> None:
    if not dims or len(set(dims)) < len(dims):
        raise ValueError(
            f"{key}: expected dimensions, each once, got {short_repr(list(dims))}; leave it out for all"
        )


TypedTable = Annotated[Mapping[str, Any], _check_typed]

EXCLUDED = {"data": ("models", "truth"), "targets": ("models", "truth", "reference", "divergence")}
"""Table -> the keys that cannot be combined with it."""


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
    title: FigureText
    model: TypedTable
    source: str = ""
    steps: tables.Count = 100
    dt: tables.Positive = 1.0
    runs: tables.Count = 20
    models: tables.Count | None = None
    first_model: NonNegative = 0
    particles: tuple[tables.Count, ...] = (100,)
    filters: tuple[FigureText, ...] = ("bootstrap", "herded-kh", "mixture-kh")
    error_dims: Annotated[tuple[NonNegative, ...], _check_different] | None = None
    unit: FigureText = ""
    labels: tuple[FigureText, ...] = ()
    time_label: FigureText = "time"
    view: Literal["plane", "time"] = "plane"
    truth: tables.Truth | None = None
    targets: Targets | None = None
    data: TypedTable | None = None
    reference: TypedTable | None = None
    divergence: tables.Divergence | None = None
    published: tuple[tables.Published, ...] = ()
    filter: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    imports: tuple[str, ...] = ()
    folder: Path = Path()

    def __post_init__(self) -> None:
        tables.convert_fields(self)
        if self.models is not None and "seed" in self.model:
            seed = short_repr(self.model["seed"])
            raise ValueError(
                f"model.seed: cannot be combined with `models`, which seed themselves (got {seed})"
            )
        # Recorded data and targets bring a truth of their own, and sets of targets have no posterior mean.
        for table, excluded in EXCLUDED.items():
            for key in excluded:
                if getattr(self, table) is not None and getattr(self, key) is not None:
                    raise ValueError(
                        f"{key}: cannot be combined with [{table}] (got {short_repr(getattr(self, key))})"
                    )
        if self.targets is not None:
            self.targets.check_truth(recorded=self.data is not None)

    @property
    def modules(self) -> Imports:
        """The modules whose names the scenario may use."""
        return Imports(self.imports, self.folder)

    @property
    def initial_truth(self) -> Sequence[float] | None:
        """State at step 0 of a simulated truth, shape (d,); None if it is drawn."""
        return None if self.truth is None else self.truth.initial

    @property
    def simulated(self) -> Scenario:
        """The scenario whose model simulates the truth: with the keys of ``[truth] model``; itself if there are none."""
        # `self` without changes, so that a caller can tell by identity.
        changes = {} if self.truth is None else self.truth.model
        return replace(self, model={**self.model, **changes}) if changes else self

    @property
    def data_loader(self) -> Callable[..., Any]:
        """The function that ``[data] type`` names."""
        name = str((self.data or {})["type"])
        with prefix_errors("data.type: ", Exception, SystemExit):
            if ":" not in name:
                raise ValueError(
                    f"expected 'module:function' from a module under imports, got {short_repr(name)}"
                )
            return self.modules.resolve(name)

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Import the data loader's module in a worker, too: a study is sent with data of that module's classes."""
        vars(self).update(state)
        if self.data is not None:
            # Errors are those of the parent process, which has loaded the data before.
            with suppress(Exception):
                _ = self.data_loader

    def dims(self, dim: int) -> tuple[int, ...]:
        """Return the dimensions whose error counts, of a state of `dim` dimensions."""
        return tuple(range(dim)) if self.error_dims is None else self.error_dims

    def steps_of(self, model: Any) -> int:
        """Return the number of steps of a simulated run; a model of a family may have its own in its attribute `steps`."""
        return (
            self.steps
            if self.models is None
            else check_count("steps", getattr(model, "steps", self.steps))
        )

    @property
    def plane(self) -> tuple[int, int]:
        """Dimensions in which a path is drawn: the first two whose error counts, if there are two."""
        # One dimension alone gives no plane; then the first two of the state are drawn.
        i, j = self.error_dims[:2] if self.error_dims and len(self.error_dims) > 1 else (0, 1)
        return i, j

    def build_model(self, **arguments: Any) -> Any:
        """Build the model from its table, with `arguments` from real data (such as beacons) or a family's seed."""
        seed = {} if self.models is None else {"seed": self.first_model}
        # Later ones win: data and seeds replace keys of the file.
        keywords = {k: v for k, v in self.model.items() if k != "type"} | seed | arguments
        name = str(self.model["type"])
        where = f"{self.name}.toml: model type {short_repr(name)}: "
        # SystemExit: a user's module may contain anything.
        with prefix_errors(where, Exception, SystemExit):
            cls = self.modules.resolve(name)
            if isinstance(keywords.get("model"), str):
                # The model inside WithClutter is an expression.
                keywords["model"] = evaluate(keywords["model"], self.modules)
            check_keywords("arguments", cls, keywords)
            model = cls(**keywords)
            check_count("dim", getattr(model, "dim", None))
        return model


def scenario_files() -> dict[str, Path]:
    """Find the scenarios that come with the package, name -> TOML file, in alphabetical order."""
    return {path.stem: path for path in sorted(SCENARIOS.glob("*.toml"))}


def load_scenario(scenario: str | os.PathLike[str] | Scenario) -> Scenario:
    """Load a scenario by name, or from a path to a TOML file.

    ValueError if the name or a key is unknown, or a value does not fit; FileNotFoundError if there is no file at a path.

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
        raise TypeError(
            f"scenario: expected a name, a path to a TOML file or a Scenario, got {short_repr(scenario)}; "
            'put your model into hf.study.Scenario("name", "title", {"type": "file.py:function"})'
        )
    text = os.fspath(scenario)
    if Path(text).suffix not in ("", ".toml"):
        raise ValueError(
            "scenario: expected a name, a TOML file, or FILE.py:FUNCTION with the function that builds a model, got "
            f"{short_repr(text)}"
        )
    # A name of the registry has neither ending nor folder.
    if text.endswith(".toml") or os.sep in text:
        path = Path(text).expanduser()
        if not os.path.isfile(path):
            raise FileNotFoundError(f"scenario: no file {shortened(str(path), 200)}")
    else:
        files = scenario_files()
        path = files[one_of("scenario", text, files)]
    # Deeply nested tables exhaust the recursion of tomllib; editors on Windows may write a byte order mark (utf-8-sig).
    with prefix_errors(f"{shortened(path.name, 80)}: ", RecursionError):
        return scenario_from_table(path, tomllib.loads(path.read_text(encoding="utf-8-sig")))


def scenario_from_table(path: Path, table: dict[str, Any]) -> Scenario:
    """Return the scenario of a TOML file, read into `table`."""
    check_keywords("scenario", Scenario, table, added=("name", "folder"))
    return Scenario(**table, name=path.stem, folder=path.resolve().parent)


def check_beside_model(scenario: Any, dim: int) -> None:
    """Raise ValueError unless labels, dimensions of the error and true states fit a model of `dim` dimensions."""
    for i in scenario.error_dims or ():
        if i >= dim:
            raise ValueError(f"error_dims: expected indices from 0 to {dim - 1}, got {i}")
    if scenario.labels and len(scenario.labels) != dim:
        raise ValueError(
            f"labels: expected one for each of {dim} dimensions, got {len(scenario.labels)}"
        )
    if scenario.initial_truth is not None:
        as_array("truth.initial", scenario.initial_truth, (dim,))
    if scenario.targets is not None:
        scenario.targets.check_beside_model(dim, scenario.steps)
