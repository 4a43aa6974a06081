"""Where detections lie in the plane that is drawn, whatever a sensor tells of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from herdfilter._checks import Array
from herdfilter.study.recording import Recording


def _polar(z: Array) -> Array:
    return z[:, :1] * np.column_stack([np.cos(z[:, 1]), np.sin(z[:, 1])])


READINGS: tuple[Callable[[Array], Array], ...] = (lambda z: z, lambda z: z[:, ::-1], _polar)
"""What two entries of a detection may be: a position, in either order, and range and bearing; (k, 2) -> (k, 2)."""


def positions(model: Any, recording: Recording, plane: Sequence[int]) -> list[Array] | None:
    """Return the detections of every scan as positions (k, 2) in the plane of two dimensions of the state.

    The model's own observations without noise of the true states tell what a detection is: one of `READINGS`, from wherever
    the sensor stands. None where it is none of these, or the model does not tell.
    """
    dim = recording.truth.shape[-1]
    if recording.scans is None or max(plane) >= dim or not hasattr(model, "observation_mean"):
        return None
    states = recording.truth.reshape(-1, dim)
    states = states[np.isfinite(states).all(axis=1)]
    with suppress(Exception):  # a model of the user's own
        seen = np.asarray(model.observation_mean(states, 1), dtype=np.float64)
        if seen.shape == (len(states), 2) and len(states):
            for read in READINGS:
                apart = states[:, list(plane)] - read(seen)
                if np.ptp(apart, axis=0).max() <= _ROUNDING * np.abs(states[:, list(plane)]).max():
                    return [read(scan.reshape(-1, 2)) + apart.mean(axis=0) for scan in recording.scans]
    return None


_ROUNDING = 1e-9
