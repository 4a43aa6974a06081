"""The state of a filter: a snapshot to return to, or one read from arrays."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from herdfilter import _checks
from herdfilter.models.contract import Model, jumps
from herdfilter.models.resolved import Transition
from herdfilter.models.series import as_duration


@dataclass(frozen=True, eq=False, repr=False)
class FilterState:
    """A snapshot of a filter or a tracker. No copies are needed: its attributes are replaced at every step, never changed.

    These are its particles or belief, a transition that waits for its observation, step, clock and log-likelihood; and the
    states of its random generators, those of its tracks included. `OnlineFilter.state` is the same as arrays.
    """

    attributes: dict[str, Any]
    streams: list[tuple[Any, Any]]  # bit generators, each with its state

    @classmethod
    def of(cls, online: Any) -> FilterState:
        """Take the state of a filter or a tracker."""
        streams = []
        for part in (online, *(track.filter for track in getattr(online, "tracks", ()))):
            rng = getattr(part, "rng", None)
            if isinstance(rng, np.random.Generator):
                streams.append((rng.bit_generator, rng.bit_generator.state))
        return cls(dict(vars(online)), streams)

    def give_back(self, online: Any) -> None:
        """Put the filter or tracker back into this state."""
        vars(online).clear()
        vars(online).update(self.attributes)
        for stream, state in self.streams:
            stream.state = state


NUMBERS = "f8", lambda x: (np.abs(x) <= _checks.LARGEST).all(), f"up to {_checks.LARGEST:g}"
FLAG = "b", lambda x: True, "True or False"
MEANINGS: dict[str, Any] = {
    "log_feasible": ("f8", lambda x: -_checks.LARGEST <= x <= 0, "at most 0"),
    "weights": (
        "f8",
        lambda x: (x >= 0).all() and abs(x.sum() - 1) <= _checks.SUM_ERROR,
        "with the sum 1",
    ),
    "log_weights": ("f8", lambda x: (x <= _checks.SUM_ERROR).all(), "up to 0"),
    "covariances": (
        "f8",
        lambda x: _checks.as_covariance("state: covariance", x).max() <= _checks.LARGEST**2,
        "definite",
    ),
    "step": ("i", lambda x: x >= 0, "from 0 on"),
    "origin": ("M8", lambda x: True, "a date"),
    **dict.fromkeys(["zoned", "by_model_at_start", "resampled", "untouched", "gaussian"], FLAG),
}
"""Last part of the name of an array in a state -> type code, test of the values, and what to say that is expected.

All other arrays, such as means and factors of covariances, are `NUMBERS`.
"""


class SavedState:
    """A state that was passed to `restore`: each entry is checked when it is read."""

    def __init__(self, entries: Mapping[str, Any], model: Model) -> None:
        if not isinstance(entries, Mapping):
            raise TypeError(
                f"state: expected a mapping as the attribute state of a filter has it, got {_checks.short_repr(entries)}"
            )
        missing = [
            name for name in str(entries.get("entries", "entries")).split() if name not in entries
        ]
        if missing:
            raise ValueError(
                f"state: expected what the attribute state of a filter has, got none of {', '.join(missing)}"
            )
        count = len(model.models) if jumps(model) else 1
        modes = "i", lambda x: np.isin(x, range(count)).all(), f"from 0 to {count - 1}"
        self.entries = entries
        self.meanings = {**MEANINGS, "modes": modes}

    def expect(self, name: str, value: Any) -> None:
        """Raise ValueError unless an entry equals this number or text."""
        entry = str(self.entries.get(name, "none"))
        if entry != str(value):
            raise ValueError(
                f"state: expected {name} {value}, as this filter has, got {_checks.short_repr(entry)}"
            )

    def read(self, name: str, shape: tuple[int, ...] = ()) -> np.ndarray:
        """Return a copy of an array; ValueError unless it has this shape, and the type and range that belong to its name."""
        # "gaussian.means" of a belief within a belief has the meaning of "means".
        array = _checks.as_any(f"state: {name}", self.entries.get(name))
        code, fits, expected = self.meanings.get(name.rpartition(".")[2], NUMBERS)
        if array.shape != shape or code not in array.dtype.str or not fits(array):
            raise ValueError(
                f"state: expected {name} {shape} of type {code}, {expected}, got {array.dtype} {array.shape}: "
                f"{_checks.short_repr(array.tolist())}"
            )
        return array.astype(np.int64 if code == "i" else array.dtype.newbyteorder("="))

    def transition(self, model: Model) -> Transition | None:
        """Return the transition that waits for its observation, made with `model`; None if none waits."""
        if "pending_dt" not in self.entries:
            return None
        control = None
        if "pending_control" in self.entries:
            control = _as_array(self.entries["pending_control"])[()]
        dt = as_duration("state: pending_dt", self.read("pending_dt").item())
        return Transition(model, dt, control, self.read("step").item()).snapshot()

    def generator(self, stream: Any) -> Any:
        """Return the saved state of a generator; ValueError unless the generator is of the same kind as `stream`."""
        text = str(self.entries.get("generator"))
        trial = copy.deepcopy(stream)
        # A copy takes the state and must show the same text. Positions in buffers are checked here, since NumPy reads memory
        # at any that it is given: 624 words of MT19937, 4 of Philox.
        with suppress(Exception):
            trial.state = numbers = json.loads(text)
            positions = {"pos": 0, "buffer_pos": 0, **numbers, **numbers["state"]}
            if (
                0 <= positions["pos"] <= 624
                and 0 <= positions["buffer_pos"] <= 4
                and as_text(trial.state) == text
            ):
                return trial.state
        raise ValueError(
            f"state: expected a generator {type(stream).__name__}, as this filter has, got {_checks.short_repr(text)}"
        )


def as_text(numbers: Any) -> str:
    """Return the state of a generator as JSON."""
    return json.dumps(numbers, default=np.ndarray.tolist)


def waiting_arrays(transition: Transition) -> dict[str, Any]:
    """Return the entries from which `SavedState.transition` restores a transition that waits for its observation."""
    if transition.control is None:
        return {"pending_dt": transition.dt}
    return {"pending_dt": transition.dt, "pending_control": _as_array(transition.control)}


def _as_array(control: Any) -> np.ndarray:
    """Return a control input as an array for a state; ValueError if it is no array, number or text."""
    array = np.array(_checks.as_any("control", control))
    # pickled, or a table that would lose its labels
    if array.dtype.hasobject or hasattr(control, "to_numpy"):
        raise ValueError(
            f"control: expected an array, a number or a text, as a state keeps them, got {_checks.short_repr(control)}"
        )
    return array
