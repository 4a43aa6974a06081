"""Parts that the filters of one state share: where they stand can be put away as arrays, and taken up again."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from herdfilter._checks import LARGEST, SUM_ERROR, as_any, as_covariance, short_repr
from herdfilter._repr import html_repr, summary_repr
from herdfilter.filters.forecast import Forecaster
from herdfilter.filters.results import StepRecord
from herdfilter.filters.state import FilterState
from herdfilter.models.contract import Model, jumps
from herdfilter.models.sensors import Sensor
from herdfilter.models.series import Clock, Timed

VERSION = 1  # of the state of a filter, to be raised when its entries change


class OnlineFilter(Forecaster, Timed):
    """Base of the filters that predict and update: `ParticleFilter`, and `KalmanFilter` of all kinds."""

    model: Model
    step: int
    log_likelihood: float
    record: StepRecord | None
    rng: Any = None  # the generator of a filter that draws
    _by_model_at_start = False  # True if the model's own observation functions have read one of the initial state

    _repr_html_ = html_repr

    @property
    def state(self) -> dict[str, np.ndarray]:
        """The filter's present state as plain arrays: all that `restore` needs to go on to the last bit.

        Particles and weights, or the moments of a Kalman filter; step, time and log-likelihood; the state of the random
        generator; a prediction that waits for its observation; of which filter and proposal it is, and the version of this
        list. ``np.savez(path, **pf.state)`` keeps it on the disk. The model and the options of the parts are not in it, nor
        is `record`. ValueError if the waiting prediction has a control input that is no array, number or text.
        """
        clock = self._clock
        given = {
            "version": VERSION,
            "filter": self._kind(),
            **self._held(),
            "step": self.step,
            "log_likelihood": self.log_likelihood,
            "time": clock.since,
            "origin": np.datetime64(clock.origin),
            "zoned": clock.zoned,
            "by_model_at_start": self._by_model_at_start,
        }
        for _, numbers in FilterState.of(self).streams:
            given["generator"] = _as_text(numbers)
        return {name: np.array(value) for name, value in {**given, "entries": " ".join(given)}.items()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go to where a filter of the same kind and size stood.

        Parameters
        ----------
        state : mapping
            What `state` gave, or ``np.load(path)`` of it. The generator of this filter is set to where that one's stood.

        Raises
        ------
        TypeError, ValueError
            If it is not the state of such a filter, or an array has another type, shape or meaning than there: weights that
            do not sum to 1, a covariance that is indefinite. This filter then stays where it is.
        """
        saved = SavedState(state, self.model)
        saved.expect("version", VERSION)
        saved.expect("filter", self._kind())
        now, changes = FilterState.of(self), self._taken_up(saved)
        names = "step", "log_likelihood", "time", "zoned", "by_model_at_start"
        step, total, since, zoned, by_model = (saved.read(name).item() for name in names)
        origin = saved.read("origin")[()]
        clock = Clock(None if np.isnat(origin) else origin, since, zoned)
        changes |= {"step": step, "log_likelihood": total, "record": None, "_clock": clock, "_by_model_at_start": by_model}
        streams = [(stream, saved.generator(stream)) for stream, _ in now.streams]
        FilterState(now.attributes | changes, streams).give_back(self)

    def _kind(self) -> str:
        """Return what a filter must share with one whose state it takes up."""
        n_particles, proposal = getattr(self, "n_particles", None), getattr(self, "proposal", None)
        return summary_repr(self, n_particles=n_particles, proposal=proposal, of=getattr(proposal, "proposal", None))

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

    def _settle(self) -> None:
        """Let a prediction stand that waits for its observation."""

    def _held(self) -> dict[str, Any]:
        """Return the filter's own part of `state`."""
        raise NotImplementedError

    def _taken_up(self, state: SavedState) -> dict[str, Any]:
        """Return the attributes that the filter's own part of a state stands for; ValueError if it does not fit."""
        raise NotImplementedError

    def _rewind(self) -> None:
        """Go back to the initial distribution."""
        raise NotImplementedError


NUMBERS = "f8", lambda x: (np.abs(x) <= LARGEST).all(), f"up to {LARGEST:g}"
MEANINGS: dict[str, Any] = {
    name: meaning
    for names, *meaning in (
        ("weights mode_probabilities", "f8", lambda x: (x >= 0).all() and abs(x.sum() - 1) <= SUM_ERROR, "with the sum 1"),
        ("log_weights", "f8", lambda x: (x <= SUM_ERROR).all(), "up to 0"),
        ("covariance covariances", "f8", lambda x: as_covariance("state: covariance", x).max() <= LARGEST**2, "definite"),
        ("step", "i", lambda x: x >= 0, "from 0 on"),
        ("origin", "M8", lambda x: True, "a date"),
        ("zoned by_model_at_start resampled untouched gaussian", "b", lambda x: True, "True or False"),
    )
    for name in names.split()
}
"""Last part of the name of an array in a state -> the code of its type, a test of its values, and what is expected.

Other arrays are `NUMBERS`: means, members, factors of covariances.
"""


class SavedState:
    """A state that `restore` is given: each entry is checked when it is read."""

    def __init__(self, entries: Mapping[str, Any], model: Model) -> None:
        if not isinstance(entries, Mapping):
            raise TypeError(
                f"state: expected a mapping as the attribute state of a filter has it, got {short_repr(entries)}"
            )
        missing = [name for name in str(entries.get("entries", "entries")).split() if name not in entries]
        if missing:
            raise ValueError(f"state: expected what the attribute state of a filter has, got none of {', '.join(missing)}")
        count = len(model.models) if jumps(model) else 1
        modes = "i", lambda x: np.isin(x, range(count)).all(), f"from 0 to {count - 1}"
        self.entries, self.meanings = entries, {**MEANINGS, "modes": modes}

    def expect(self, name: str, value: Any) -> None:
        """Raise ValueError unless an entry is this number or text."""
        found = str(self.entries.get(name, "none"))
        if found != str(value):
            raise ValueError(f"state: expected {name} {value}, as this filter has, got {short_repr(found)}")

    def read(self, name: str, shape: tuple[int, ...] = ()) -> np.ndarray:
        """Return a copy of an array; ValueError unless it has this shape, and the type and the meaning of its name."""
        array = as_any(f"state: {name}", self.entries.get(name))
        code, fits, expected = self.meanings.get(name.rpartition(".")[2], NUMBERS)
        if array.shape != shape or code not in array.dtype.str or not fits(array):
            raise ValueError(
                f"state: expected {name} {shape} of type {code}, {expected}, got {array.dtype} {array.shape}: "
                f"{short_repr(array.tolist())}"
            )
        return array.astype(np.int64 if code == "i" else array.dtype.newbyteorder("="))

    def generator(self, stream: Any) -> Any:
        """Return the state of a generator such as `stream`."""
        trial, text = copy.deepcopy(stream), str(self.entries.get("generator"))
        with suppress(Exception):
            trial.state = numbers = json.loads(text)
            places = {"pos": 0, "buffer_pos": 0, **numbers, **numbers["state"]}  # NumPy reads the memory at any
            if 0 <= places["pos"] <= 624 and 0 <= places["buffer_pos"] <= 4 and _as_text(trial.state) == text:
                return trial.state
        raise ValueError(f"state: expected a generator {type(stream).__name__}, as this filter has, got {short_repr(text)}")


def _as_text(numbers: Any) -> str:
    return json.dumps(numbers, default=np.ndarray.tolist)
