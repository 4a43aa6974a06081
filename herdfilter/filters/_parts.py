"""Checks of what a user plugs into a particle filter, and of what the parts return."""

from __future__ import annotations

from typing import Any

import numpy as np

from herdfilter.filters.particles import Particles
from herdfilter.models.contract import Model, check_state, in_mode, jumps, require_likelihood


def check_model(model: Model) -> None:
    """Raise an error that names what is wrong with a model, or one of its modes, as far as that shows without a draw."""
    for mode in range(len(model.models)) if jumps(model) else ():
        check_model(in_mode(model, mode))
    check_state(model, "ParticleFilter", "sample")
    require_likelihood(model, "ParticleFilter")


def check_part(name: str, part: object, kind: type, expected: str) -> None:
    """Raise TypeError unless `part` is an instance of this kind."""
    if isinstance(part, type):
        raise TypeError(f"{name}: expected {expected}, an instance, got the class {part.__name__}")
    if isinstance(part, str):
        raise TypeError(
            f"{name}: expected {expected}, got {part!r}; filters that have a name are made by "
            f"herdfilter.make_filter({part!r}, model, n_particles, rng)"
        )
    if not isinstance(part, kind):
        raise TypeError(f"{name}: expected {expected}, got {part!r}")


def returned(particles: Any, part: object, method: str, shape: tuple[int, int]) -> Particles:
    """Return what a method of a part gave, checked to be particles of this shape."""
    if isinstance(particles, Particles):
        x, weights = np.shape(particles.x), np.shape(particles.log_weights)
        if x == shape and weights == shape[:1]:
            return particles
    name = f"{type(part).__name__}.{method}"
    if not isinstance(particles, Particles):
        raise TypeError(
            f"{name}: expected a herdfilter.filters.Particles(particles, log_weights), got {type(particles).__name__}"
        )
    raise ValueError(
        f"{name}: expected particles of shape {shape} and as many weights, got {x} and {weights}; look at the model's "
        "initial and dim, or at the sampler"
    )
