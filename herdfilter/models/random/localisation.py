"""Random models of a target that must be found: a wide prior, sharp sensors, little or no noise, constant parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from herdfilter._checks import Array
from herdfilter.mixture import GaussianMixture
from herdfilter.models.random.drifts import Drift, Rng, choose, coordinates, draw_number, listed, log_uniform, rounded
from herdfilter.models.random.noises import Motion, additive
from herdfilter.models.random.observations import Schedule, Sensing, View, gaussian_noise, sensor_view

MOTIONS = {"still": 0.3, "straight": 0.4, "circling": 0.3}
PLACES = {1: 0.2, 2: 0.7, 3: 0.1}  # dimension of the place -> probability; it is a plane where the target circles
SENSORS = {"range": 0.5, "bearing": 0.2, "terrain": 0.3}  # ranges where bearings lack a plane, or a terrain a moving target
MODES = {1: 0.5, 2: 0.2, 3: 0.15, 4: 0.15}  # number of Gaussians of the prior -> probability
NOISE_FREE_SHARE, IN_TURN_SHARE, OFFSET_SHARE, LIKELIHOOD_ONLY_SHARE, HEAVY_TAILED_SHARE = 0.4, 0.7, 0.3, 0.3, 0.3
SHARPNESS = (0.001, 0.01)  # noise of a reading in units of its spread under the prior: smallest and largest
LEAST_PRODUCT = 0.001  # of these ratios of an observation, as many as the place has dimensions
JITTER = (1e-4, 1e-2)  # transition noise of places in units of the prior's width
UNKNOWN_DRIFT = 0.001  # of a place in one step, in the same unit
WAVES = 6  # of a terrain


def localisation_drift(kind: str, places: int, offset: bool, unit: float) -> Drift:
    """Return a place that stands still, or moves with a constant velocity, or one that turns at a constant rate.

    The coordinates are the place, the velocity, the turn in radians per step and the offset of all sensors.
    """

    def f(x: Array) -> Array:
        moved = x.copy()
        if kind == "circling":
            cos, sin = np.cos(x[:, 4]), np.sin(x[:, 4])
            moved[:, 2] = cos * x[:, 2] - sin * x[:, 3]
            moved[:, 3] = sin * x[:, 2] + cos * x[:, 3]
        if kind != "still":
            moved[:, :places] += moved[:, places : 2 * places]
        return moved

    dim = {"still": places, "straight": 2 * places, "circling": 5}[kind]
    words = f"{kind}, place {coordinates(range(places))}"
    words += f", velocity {coordinates(range(places, 2 * places))}" if kind != "still" else ""
    words += ", turned by x5 at every step" if kind == "circling" else ""
    words += f"; x{dim + 1}, the offset of all readings, is constant" if offset else ""
    return Drift(kind, np.full(dim + offset, unit), 1, f, words)


def terrain(places: int, frequencies: Array, heights: Array, phases: Array) -> View:
    """Return the height of a terrain at the place: a sum of sine waves, so that many places have the same."""

    def h(x: Array) -> Array:
        waves = np.sin(x[:, :places] @ frequencies.T + phases)
        return waves @ heights[:, None]

    words = f"sum of a sin(w x + p) of the place, a = {listed(heights)}, p = {listed(phases)}; w: {listed(frequencies)}"
    return View("terrain", h, words)


def in_turn(whole: Sensing, parts: list[Sensing]) -> Sensing:
    """Return an observation of one of its sensors at a time: they take turns by step."""

    def taking_turns(name: str) -> Any:
        return lambda *arguments: parts[(arguments[-1] - 1) % len(parts)].functions[name](*arguments)

    functions = {name: taking_turns(name) for name in parts[0].functions if name != "observation_circular"}
    functions |= {"observation_circular": (0,)} if whole.circular else {}
    sensing = Sensing(whole.view, Schedule(), whole.noise_words, scaled=None, **functions)
    sensing.words = f"{whole.view.words}; one of them at every step, in turn"
    return sensing


def draw_localisation(rng: Rng) -> tuple[Motion, Sensing, GaussianMixture, int, tuple[str, ...], Array]:
    """Draw transition, observation, prior, number of steps, labels, and the size of an unknown drift, (d,)."""
    kind, steps, unit = choose(rng, MOTIONS), int(rng.integers(40, 81)), float(rounded(log_uniform(rng, 0.1, 100.0)))
    places = 2 if kind == "circling" else choose(rng, PLACES)
    offset = rng.random() < OFFSET_SHARE
    drift = localisation_drift(kind, places, offset, unit)
    speed = rng.uniform(0.1, 0.5) * unit / steps
    turn = np.array([rng.uniform(1.0, 6.0), rng.uniform(0.3, 1.0)]) / steps
    count = choose(rng, MODES)
    width = unit if count == 1 else unit * rng.uniform(0.1, 0.3)
    means, sd = np.zeros((count, drift.dim)), np.zeros(drift.dim)
    away = rng.standard_normal((count, places))
    if count > 1:
        means[:, :places] = unit * rng.uniform(1.0, 2.0, (count, 1)) * away / np.linalg.norm(away, axis=1, keepdims=True)
    sd[:places] = width
    if kind != "still":
        sd[places : 2 * places] = speed
    if kind == "circling":
        means[:, 4], sd[4] = turn
    if offset:
        sd[-1] = rng.uniform(0.02, 0.2) * unit
    weights = rounded(rng.uniform(0.5, 1.5, count)) if count > 1 else np.ones(1)
    initial = GaussianMixture(weights, rounded(means), np.diag(rounded(sd) ** 2))
    motion = _draw_jitter(rng, drift, places, unit, speed)
    sensing, labels = _draw_sensors(rng, initial, places, kind == "still", offset, unit)
    labels = (kind, motion.kind, sensing.view.kind, *labels)
    labels += (("offset",) if offset else ()) + (("multimodal prior",) if count > 1 else ())
    drifts = np.where(np.arange(drift.dim) < places, UNKNOWN_DRIFT * unit, 0.0)
    return motion, sensing, initial, steps, labels, drifts


def _draw_jitter(rng: Rng, drift: Drift, places: int, unit: float, speed: float) -> Motion:
    """Draw noise of place and velocity, none of turn and offset; or no noise at all."""
    size = float(log_uniform(rng, *JITTER))
    factor = np.zeros((drift.dim, places * (1 if drift.kind == "still" else 2)))
    np.fill_diagonal(factor, np.repeat([size * unit, size * speed], places))
    if rng.random() >= NOISE_FREE_SHARE:
        return additive(drift, rounded(factor))
    nothing = np.zeros((drift.dim, drift.dim))
    functions = {
        "transition_mean": lambda x, dt, control, step: drift.f(x),
        "transition_covariance": lambda dt, step: nothing,
    }
    return Motion(drift, "noise-free", "none", **functions)


def _draw_sensors(
    rng: Rng, initial: GaussianMixture, places: int, still: bool, offset: bool, unit: float
) -> tuple[Sensing, tuple[str, ...]]:
    kind, x = choose(rng, SENSORS), initial.sample(1000, np.random.Generator(np.random.PCG64(0)))
    if (kind == "bearing" and places != 2) or (kind == "terrain" and still):
        kind = "range"
    matrix, zero = np.eye(places, x.shape[1]), np.zeros(places)
    if kind == "terrain":
        frequencies = rounded(rng.standard_normal((WAVES, places)) * log_uniform(rng, 0.5, 4.0, WAVES)[:, None] / unit)
        heights, phases = rounded(unit * rng.uniform(0.2, 1.0, WAVES)), rounded(rng.uniform(0.0, 2 * np.pi, WAVES))
        view, parts = terrain(places, frequencies, heights, phases), []
    else:
        count = places + offset + int(rng.integers(1, 4))
        sensors = rounded(unit * 1.5 * rng.standard_normal((count, places)))
        view = sensor_view(kind, matrix, zero, sensors)
        parts = [sensor_view(kind, matrix, zero, one[None]) for one in sensors]
    if offset:
        view, parts = _with_offset(view), [_with_offset(part) for part in parts]
    turns = rng.random() < IN_TURN_SHARE and len(parts) > 1
    freedom = draw_number(rng, 2.5, 6.0) if kind != "bearing" and rng.random() < HEAVY_TAILED_SHARE else None
    readings = view.h(x)
    ratio = float(log_uniform(rng, *SHARPNESS))
    if not turns:
        ratio = max(ratio, LEAST_PRODUCT ** (1 / min(places, readings.shape[1])))
    sd = rounded(ratio * (np.ones(readings.shape[1]) if kind == "bearing" else readings.std(axis=0)))
    sensing = gaussian_noise(view, sd, Schedule(), freedom)
    if turns:
        each = [gaussian_noise(part, one[None], Schedule(), freedom) for part, one in zip(parts, sd, strict=True)]
        sensing = in_turn(sensing, each)
    labels = (("heavy-tailed",) if freedom else ()) + (("in turn",) if turns else ())
    if rng.random() >= LIKELIHOOD_ONLY_SHARE:
        return sensing, labels
    return sensing.likelihood_only(), (*labels, "likelihood only")


def _with_offset(view: View) -> View:
    return View(view.kind, lambda x: view.h(x) + x[:, -1:], f"{view.words}, plus the offset")
