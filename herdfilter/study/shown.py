"""The first run of a filter in full, for the `Trajectory`."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from herdfilter._checks import Array, as_array
from herdfilter.study.positions import positions
from herdfilter.study.recording import Recording, packed
from herdfilter.study.reference import Reference
from herdfilter.study.sets import labelled_estimates
from herdfilter.study.stopping import unless_stopped
from herdfilter.study.study import Study
from herdfilter.study.tasks import Task


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
