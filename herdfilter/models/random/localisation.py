"""Random localisation models: a target with a wide prior, sharp sensors, little or no noise, and constant parts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator

from herdfilter._checks import Array
from herdfilter.mixture import GaussianMixture
from herdfilter.models.random import drifts, observations
from herdfilter.models.random.noises import additive

MOTIONS = {"still": 0.3, "straight": 0.4, "circling": 0.3}
# dimension of the position -> probability; a target that circles is in a plane
POSITION_DIMENSIONS = {1: 0.2, 2: 0.7, 3: 0.1}
SENSOR_KINDS = {"range": 0.75, "bearing": 0.25}  # bearings need a plane: else there are ranges
# number of Gaussians in the prior -> probability
PRIOR_COMPONENTS = {1: 0.5, 2: 0.2, 3: 0.15, 4: 0.15}
NOISE_FREE_SHARE = 0.4
IN_TURN_SHARE = 0.7
OFFSET_SHARE = 0.3
LIKELIHOOD_ONLY_SHARE = 0.3
STUDENT_SHARE = 0.3
SHARPNESS = (0.001, 0.01)  # range of the noise of a reading, in units of its spread under the prior
# smallest product of as many of these ratios as the position has dimensions
LEAST_SHARPNESS_PRODUCT = 0.003
# range of the transition noise of positions, in units of the prior's width
MOTION_NOISE_RANGE = (1e-4, 1e-2)


def localisation_drift(kind: str, m: int, offset: bool, unit: float) -> drifts.Drift:
    """Return the drift of a position (m,), its velocity, its turn in radians per step, and the offset of all readings."""
    dim = {"still": m, "straight": 2 * m, "circling": 5}[kind]

    def f(x: Array) -> Array:
        next_x = x.copy()
        if kind == "circling":
            cos = np.cos(x[:, 4])
            sin = np.sin(x[:, 4])
            next_x[:, 2] = cos * x[:, 2] - sin * x[:, 3]
            next_x[:, 3] = sin * x[:, 2] + cos * x[:, 3]
        if kind != "still":
            next_x[:, :m] += next_x[:, m : 2 * m]
        return next_x

    # where the coordinates of each part of the state begin, and end
    edges = pairwise([0, m, min(2 * m, dim), dim, dim + offset])
    parts = zip(("place", "velocity", "turn", "offset"), edges, strict=True)
    words = [f"{name} {drifts.coordinates(range(i, j))}" for name, (i, j) in parts if i < j]
    return drifts.Drift(kind, np.full(dim + offset, unit), 1, f, f"{kind}, {', '.join(words)}")


def in_turn(joint: observations.Sensing, parts: list[observations.Sensing]) -> observations.Sensing:
    """Return the observation by one sensor at a time, in turn by step; `parts` are its sensors, `joint` is all of them."""

    def by_step(name: str) -> Any:
        # the step is the last argument of every function
        return lambda *inputs: parts[(inputs[-1] - 1) % len(parts)].functions[name](*inputs)

    functions = {
        name: by_step(name) if callable(value) else value
        for name, value in parts[0].functions.items()
    }
    sensing = observations.Sensing(joint.view, joint.schedule, joint.noise_words, **functions)
    sensing.words = f"{joint.view.words}; one of them at every step, in turn"
    return sensing


def draw_localisation(rng: Generator) -> observations.Parts:
    """Draw a model: its transition, observation, prior, number of steps, and labels."""
    kind = drifts.draw_key(rng, MOTIONS)
    steps = drifts.draw_count(rng, 40, 80)
    unit = float(drifts.rounded(drifts.log_uniform(rng, 0.1, 100.0)))
    m = 2 if kind == "circling" else drifts.draw_key(rng, POSITION_DIMENSIONS)
    offset = rng.random() < OFFSET_SHARE
    count = drifts.draw_key(rng, PRIOR_COMPONENTS)
    drift = localisation_drift(kind, m, offset, unit)
    # in the whole run the target moves by 0.1 to 0.5 of the prior's width
    speed = rng.uniform(0.1, 0.5) * unit / steps
    means = np.zeros((count, drift.dim))
    sd = np.full(drift.dim, speed)
    sd[:m] = unit
    # narrower Gaussians, whose means lie in random directions from the origin
    if count > 1:
        means[:, :m] = unit * drifts.draw_vectors(rng, count, m, 1.0, 2.0)
        sd[:m] *= rng.uniform(0.1, 0.3)
    if kind == "circling":
        # it turns by 1 to 6 radians in the whole run
        means[:, 4] = rng.uniform(1.0, 6.0) / steps
        sd[4] = rng.uniform(0.3, 1.0) / steps
    if offset:
        sd[-1] = rng.uniform(0.02, 0.2) * unit
    initial = drifts.draw_weights(rng, means, sd)
    size = (
        0.0
        if rng.random() < NOISE_FREE_SHARE
        else float(drifts.log_uniform(rng, *MOTION_NOISE_RANGE))
    )
    factor = size * np.diag([unit] * m + [speed] * (drift.dim - m))
    # only position and velocity have noise: turn and offset are constant
    motion = additive(drift, drifts.rounded(factor[:, : m * (1 if kind == "still" else 2)]))
    sensing, labels = _draw_sensors(rng, initial, m, offset, unit)
    labels = (kind, motion.kind if size else "noise-free", sensing.view.kind, *labels)
    labels += (("offset",) if offset else ()) + (("multimodal prior",) if count > 1 else ())
    spread = drifts.rounded(np.sqrt(np.diagonal(initial.covariance)))
    return observations.Parts(drift.dim, initial, steps, spread, labels, motion, sensing)


def _draw_sensors(
    rng: Generator, initial: GaussianMixture, m: int, offset: bool, unit: float
) -> tuple[observations.Sensing, tuple[str, ...]]:
    drawn_kind = drifts.draw_key(rng, SENSOR_KINDS)
    kind = drawn_kind if m == 2 else "range"
    x = initial.sample(1000, Generator(PCG64(0)))
    matrix = np.eye(m, x.shape[1])
    sensors = drifts.rounded(
        unit * 1.5 * rng.standard_normal((m + offset + drifts.draw_count(rng, 1, 3), m))
    )
    # all, then one by one
    subsets = (sensors, *sensors[:, None])
    views = [observations.sensor_view(kind, matrix, np.zeros(m), subset) for subset in subsets]
    views = [_with_offset(view) for view in views] if offset else views
    turns = rng.random() < IN_TURN_SHARE
    freedom = None
    if kind != "bearing" and rng.random() < STUDENT_SHARE:
        freedom = drifts.draw_number(rng, 2.5, 6.0)
    readings = views[0].h(x)
    ratio = float(drifts.log_uniform(rng, *SHARPNESS))
    # one sharp reading leaves a thin surface; several at once would leave hardly any particle
    count = len(sensors)
    if not turns:
        ratio = max(ratio, LEAST_SHARPNESS_PRODUCT ** (1 / min(m, count)))
    sd = drifts.rounded(ratio * (np.ones(count) if kind == "bearing" else readings.std(axis=0)))
    joint, *parts = [
        observations.gaussian_noise(view, view_sd, observations.ObservedSteps(), freedom)
        for view, view_sd in zip(views, (sd, *sd[:, None]), strict=True)
    ]
    sensing = in_turn(joint, parts) if turns else joint
    labels = (("heavy-tailed",) if freedom else ()) + (("in turn",) if turns else ())
    if rng.random() < LIKELIHOOD_ONLY_SHARE:
        labels += ("likelihood only",)
        sensing.functions = {
            name: sensing.functions[name] for name in ("log_likelihood", "sample_observation")
        }
    return sensing, labels


def _with_offset(view: observations.View) -> observations.View:
    words = f"{view.words}, plus the offset"
    return view._replace(h=lambda x: view.h(x) + x[:, -1:], words=words)
