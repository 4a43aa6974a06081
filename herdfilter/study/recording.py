"""Recordings: the truth and the input of filters in a run, simulated or real."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter._repr import fields_in_line
from herdfilter.catalogue.expressions import check_keywords
from herdfilter.filters.results import hold_warnings
from herdfilter.models import simulation
from herdfilter.models.sensors import Sensor
from herdfilter.study.scenario import Scenario
from herdfilter.tracking.simulation import simulate_scans

__all__ = ["DataSet", "Recording"]


@dataclass(frozen=True, eq=False, repr=False)
class Recording:
    """Truth and input of one run.

    Parameters
    ----------
    truth : ndarray, shape (T, d) or (T, targets, d), or None
        States at steps 1 to T; an absent one of many targets is NaN. None if it is not known, in `hf.compare` with a model.
    observations : ndarray, shape (T, k), or list of T arrays, each (m, k)
        Observations, NaN for missing entries; or scans, each with any number m of detections.
    dt : float or ndarray of shape (T,)
        Time from one step to the next.
    controls : ndarray of shape (T, c), optional
        Control inputs of the transitions.
    sensors : sequence of Sensor, length T, optional
        Sensor of each observation; by default the model observes.

    Examples
    --------
    >>> from herdfilter.study.recording import Recording
    >>> truth, z = hf.simulate(hf.models.UNGM(), 10, rng=1)
    >>> recording = Recording(truth, z, dt=0.5)
    >>> len(recording), len(recording.first(4))
    (10, 4)
    >>> print(recording.times[-1])
    5.0
    """

    truth: Any
    observations: Array | list[Array]
    dt: float | Array = 1.0
    controls: Array | None = None
    sensors: Sequence[Sensor] | None = None

    __repr__ = fields_in_line

    def __post_init__(self) -> None:
        if isinstance(self.observations, np.ndarray):
            object.__setattr__(
                self, "observations", np.asarray(_checks.with_nan(self.observations))
            )

    def __len__(self) -> int:
        return len(self.observations)

    @property
    def many(self) -> bool:
        """True if the truth is of many targets."""
        return np.ndim(self.truth) == 3

    @property
    def scans(self) -> list[Array] | None:
        """The scans; None with one observation at each step."""
        return self.observations if isinstance(self.observations, list) else None

    @property
    def times(self) -> Array:
        """Time of every step since the initial state, shape (T,)."""
        return np.cumsum(np.broadcast_to(self.dt, len(self)))

    @property
    def input(self) -> tuple[Any, dict[str, Any]]:
        """Arguments of a filter's ``run``: observations, or with sensors readings (time, sensor, z), and keywords."""
        if self.sensors is None:
            return self.observations, {"dt": self.dt, "controls": self.controls}
        # With several sensors time decides, not the number of the step.
        readings = list(zip(self.times, self.sensors, self.observations, strict=True))
        return readings, {"controls": self.controls}

    def first(self, steps: int) -> Recording:
        """Return the first `steps` steps."""
        # Some are absent, and `dt` may be one number for all steps, or an array of one.
        parts = {
            name: values[:steps]
            for name, values in vars(self).items()
            if values is not None and (name != "dt" or np.ndim(values))
        }
        return replace(self, **parts)


@dataclass(frozen=True, eq=False, repr=False)
class DataSet:
    """Real data: the recording, and the arguments that the model takes from it.

    The recording is the same in every run; without observations (T, 0), they are simulated anew in each.

    Examples
    --------
    >>> from herdfilter.study.recording import DataSet, Recording
    >>> truth, z = hf.simulate(hf.models.UNGM(), 10, rng=1)
    >>> data = DataSet(Recording(truth, z), model_arguments={"beacons": [[0.0, 0.0]]})
    >>> sorted(data.model_arguments), len(data.recording)
    (['beacons'], 10)
    """

    recording: Recording
    model_arguments: Mapping[str, Any] = field(default_factory=dict)

    __repr__ = fields_in_line


def feed(estimator: Any, recording: Recording, **options: Any) -> Any:
    """Run a filter over a recording, with those of the further `options` that its ``run`` accepts."""
    accepted = inspect.signature(estimator.run).parameters
    observations, arguments = recording.input
    # A filter of the user's own need not take the keywords of ours; degeneracy is measured, not warned of.
    with hold_warnings():
        return estimator.run(
            observations, **arguments, **{k: v for k, v in options.items() if k in accepted}
        )


def load_data(scenario: Scenario, folder: str | Path | None) -> DataSet | None:
    """Load the real data of a scenario; None if it is simulated, when `folder` must be None, too."""
    if folder is not None and (not isinstance(folder, (str, Path)) or not str(folder)):
        raise ValueError(f"data: expected a folder, got {_checks.short_repr(folder)}")
    if scenario.data is None:
        if folder is not None:
            raise ValueError(
                f"data: scenario {_checks.short_repr(scenario.name)} is simulated and takes no data folder"
            )
        return None
    load = scenario.data_loader
    options = {k: v for k, v in scenario.data.items() if k != "type"}
    check_keywords("[data]", load, options, added=("folder",))
    loaded = load(None if folder is None else Path(folder), **options)
    # A loader may return an object of its own that holds the data set and more.
    data = getattr(loaded, "data_set", loaded)
    if not isinstance(data, DataSet):
        raise TypeError(
            f"[data] type: expected a function that returns a DataSet, got {_checks.short_repr(loaded)} from it"
        )
    return data


def record(
    scenario: Scenario, model: Any, data: DataSet | None, rng: np.random.Generator
) -> Recording:
    """Return the recording of one run, simulated with `rng` or real."""
    if data is not None:
        recorded = data.recording
        if recorded.scans is not None or np.shape(recorded.observations)[1] > 0:
            return recorded
        # The data are a path without observations.
        return replace(
            recorded, observations=simulation.simulate_observations(model, recorded.truth, rng)
        )
    # The truth may come from another model than the filters'; of a family it must be the one with the same seed.
    simulated = scenario.simulated
    if simulated is not scenario:
        model = simulated.build_model(**({} if scenario.models is None else {"seed": model.seed}))
    steps = scenario.steps_of(model)
    if scenario.targets is not None:
        truth = scenario.targets.simulate_truth(model, steps, rng, scenario.dt)
        return Recording(truth, simulate_scans(model, truth, rng), scenario.dt)
    truth, observations = simulation.simulate(
        model, steps, rng, dt=scenario.dt, initial=scenario.initial_truth
    )
    return Recording(truth, observations, scenario.dt, simulation.simulated_controls(model, steps))
