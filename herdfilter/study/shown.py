"""The first run of a filter in full, for the `Trajectory`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from herdfilter._checks import Array, as_array
from herdfilter.study.metrics import labelled_estimates
from herdfilter.study.recording import Recording, packed
from herdfilter.study.reference import Reference
from herdfilter.study.stopping import unless_stopped
from herdfilter.study.study import Study
from herdfilter.study.tasks import Task


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


def feed(particle_filter: Any, recording: Recording, keep_particles: bool = False) -> Any:
    """Run a filter over a recording; particles are asked for where the filter can keep them."""
    can_keep = keep_particles and "keep_particles" in inspect.signature(particle_filter.run).parameters
    options = {"keep_particles": True} if can_keep else {}
    observations, told = recording.input
    return particle_filter.run(observations, **told, **options)


def shown_of(
    study: Study, task: Task, model: Any, recording: Recording, reference: Reference | None
) -> dict[tuple[str, str], Array]:
    """Run a filter once more, and return what it did, for `Outcome.shown`."""
    shown: dict[tuple[str, str], Any] = {("", "truth"): recording.truth, ("", "dt"): recording.dt}
    if recording.scans is None:
        shown["", "observations"] = recording.observations
    else:
        shown |= {("", name): values for name, values in packed(recording.scans).items()}
        seen = positions(model, recording, study.scenario.plane)
        if seen is not None:
            shown["", "positions"] = np.concatenate(seen)
    if recording.controls is not None:
        shown["", "controls"] = recording.controls
    if reference is not None:
        shown |= {
            ("", "reference"): reference.means,
            ("", "reference_error"): reference.error,
            ("", "reference_log_likelihood"): reference.log_likelihood,
        }
    with unless_stopped():  # failed when it was measured, too
        result = feed(study.build_filter(task, model), recording, keep_particles=True)
        if recording.many:
            steps, _, dim = recording.truth.shape
            shown[task.filter, "estimates"] = labelled_estimates(result, steps, dim)
            return shown
        particles = getattr(result, "particles", None)
        shown[task.filter, "estimates"] = as_array("estimates", result.means, recording.truth.shape)
        if particles is not None:
            shown[task.filter, "particles"] = np.asarray(particles, dtype=np.float64)
            if getattr(result, "weights", None) is not None:
                shown[task.filter, "weights"] = np.asarray(result.weights, dtype=np.float64)
    return shown
