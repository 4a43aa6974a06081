"""Parts that the filters of one state share: where they stand can be put away as arrays, and taken up again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from herdfilter._checks import short_repr
from herdfilter._repr import html_repr
from herdfilter.filters.forecast import Forecaster
from herdfilter.filters.results import StepRecord
from herdfilter.models.contract import Model
from herdfilter.models.sensors import Sensor
from herdfilter.models.series import Clock, Timed


class OnlineFilter(Forecaster, Timed):
    """Base of the filters that predict and update: `ParticleFilter`, and `KalmanFilter` of all kinds."""

    model: Model
    step: int
    log_likelihood: float
    record: StepRecord | None
    _by_model_at_start = False  # True if the model's own observation functions have read one of the initial state

    _repr_html_ = html_repr

    @property
    def state(self) -> dict[str, np.ndarray]:
        """The filter's present state as plain arrays: all that `restore` needs to go on to the last bit.

        Particles and weights, or the moments of a Kalman filter; step, time and log-likelihood; the state of the random
        generator; a prediction that waits for its observation. ``np.savez(path, **pf.state)`` keeps it on the disk. The
        model, the proposal and the other parts are not in it, nor is `record`.
        """
        held, clock, rng = self._held(), self._clock, getattr(self, "rng", None)
        given = {
            "filter": type(self).__name__,
            "step": self.step,
            "log_likelihood": self.log_likelihood,
            "time": clock.since,
            "origin": np.datetime64("NaT") if clock.origin is None else clock.origin,
            "zoned": clock.zoned,
            "by_model_at_start": self._by_model_at_start,
        }
        if rng is not None:
            given["generator"] = json.dumps(rng.bit_generator.state, default=np.ndarray.tolist)
        return {name: np.array(value) for name, value in {**given, **held}.items()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go to where a filter of the same kind and size stood.

        Parameters
        ----------
        state : mapping
            What `state` gave, or ``np.load(path)`` of it. The generator of this filter is set to where that one's stood.

        Raises
        ------
        TypeError, ValueError
            If it is not the state of such a filter; this one then stays where it is.
        """
        if not isinstance(state, Mapping):
            raise TypeError(f"state: expected a mapping as the attribute state of a filter has it, got {short_repr(state)}")
        missing = [name for name in ("filter", "step", "log_likelihood", "time", "origin", "zoned") if name not in state]
        if missing:
            raise ValueError(f"state: expected what the attribute state of a filter has, got none of {', '.join(missing)}")
        if str(state["filter"]) != type(self).__name__:
            raise ValueError(f"state: expected that of a {type(self).__name__}, got that of a {state['filter']}")
        try:
            taken = self._taken_up(state)
            generator = json.loads(str(state["generator"])) if "generator" in state else None
            origin = None if np.isnat(np.asarray(state["origin"])) else np.array(state["origin"])[()]
            if not int(state["step"]) >= 0:
                raise ValueError(f"state: expected a step from 0 on, got {state['step']}")
        except KeyError as error:
            raise ValueError(f"state: expected {error.args[0]}, as this filter has it, got none") from None
        except (TypeError, json.JSONDecodeError) as error:
            raise ValueError(f"state: expected the arrays that the attribute state has, got {error}") from None
        if generator is not None:
            stream = self.rng.bit_generator  # type: ignore[attr-defined]
            if generator["bit_generator"] != type(stream).__name__:
                raise ValueError(
                    f"state: expected a generator {type(stream).__name__}, as this filter has, got "
                    f"{generator['bit_generator']}"
                )
            stream.state = generator
        vars(self).update(taken, step=int(state["step"]), log_likelihood=float(state["log_likelihood"]), record=None)
        self._clock = Clock(origin, float(state["time"]), bool(state["zoned"]))
        self._by_model_at_start = bool(state["by_model_at_start"])

    def reset(self) -> None:
        """Go back to the initial state, step 0 and time 0; random draws go on from where the generator stands."""
        self.step, self.log_likelihood, self.record = 0, 0.0, None
        self._clock, self._by_model_at_start = Clock(), False
        self._rewind()

    def _check_order(self, sensor: Sensor | None) -> None:
        """Raise RuntimeError if the model reads a second observation of the initial state: `predict` was forgotten."""
        if self.step == 0 and sensor is None and self._by_model_at_start:
            raise RuntimeError(
                "update: expected one observation of the initial state, step 0, got a second; call predict between them"
            )

    def _held(self) -> dict[str, Any]:
        """Return the filter's own part of `state`."""
        raise NotImplementedError

    def _taken_up(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return the attributes that the filter's own part of a state stands for; KeyError if it lacks an array."""
        raise NotImplementedError

    def _rewind(self) -> None:
        """Go back to the initial distribution."""
        raise NotImplementedError


def arrays_of(belief: Any, prefix: str = "") -> dict[str, np.ndarray]:
    """Return the arrays of a `Belief` and of the beliefs in it, by their places."""
    arrays: dict[str, np.ndarray] = {}
    for field in fields(belief):
        value, name = getattr(belief, field.name), prefix + field.name
        if isinstance(value, np.ndarray):
            arrays[name] = value
        for k, part in enumerate(value if isinstance(value, tuple) else [value]):
            if hasattr(part, "combine"):  # a belief
                arrays |= arrays_of(part, f"{name}.{k}." if isinstance(value, tuple) else f"{name}.")
    return arrays


def with_arrays(belief: Any, state: Mapping[str, np.ndarray], prefix: str = "") -> Any:
    """Return a `Belief` with other arrays, by their places."""
    changes: dict[str, Any] = {}
    for field in fields(belief):
        value, name = getattr(belief, field.name), prefix + field.name
        if isinstance(value, np.ndarray):
            changes[field.name] = np.array(state[name])
            if changes[field.name].ndim != value.ndim or changes[field.name].shape[1:] != value.shape[1:]:
                raise ValueError(f"state: expected {name} of shape {value.shape}, got {changes[field.name].shape}")
        elif hasattr(value, "combine"):
            changes[field.name] = with_arrays(value, state, f"{name}.")
        elif isinstance(value, tuple) and value and hasattr(value[0], "combine"):
            changes[field.name] = tuple(with_arrays(one, state, f"{name}.{k}.") for k, one in enumerate(value))
    return replace(belief, **changes)
