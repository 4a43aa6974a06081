"""What the page needs to move: truth, detections, estimates and particles of the first run, in few bytes."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from herdfilter._checks import Array
from herdfilter.plotting.style import dimension_label, styles
from herdfilter.plotting.trajectories import LABEL_COLORS
from herdfilter.study.results import StudyResult

MOST_NUMBERS = 500_000  # coordinates of particles on a page, 2.7 bytes each
MOST_STEPS = 300
MOST_PARTICLES = 300
SURROUNDINGS = 0.3  # in extents of the truth: how much of the detections about it is in view
_SCALE = 65_535


def animation(result: StudyResult, pair: Sequence[str]) -> dict[str, Any] | None:
    """Return the data of the animation in terms of JSON, and in words what was left out; None without particles or scans.

    Parameters
    ----------
    result : StudyResult
    pair : sequence of str
        The filters to begin with, side by side; of others there is what there is room for.
    """
    shown, scenario = result.trajectory, result.study.scenario
    scans, truth = shown.positions, _each(shown.recording.truth)
    moving = shown.particles if scans is None else shown.estimates
    pair = [name for name in pair if name in moving]
    if not pair:
        return None
    dims = [0] if truth.shape[2] == 1 else list(scenario.plane)
    every = -(-len(truth) // MOST_STEPS)
    steps = np.arange(0, len(truth), every)
    names = [*pair, *(name for name in moving if name not in pair)]
    estimates = {name: _each(shown.estimates[name]) for name in names}
    sizes = {name: shown.particles[name].shape[1] if name in shown.particles else 0 for name in names}
    strides = {name: -(-n // MOST_PARTICLES) or 1 for name, n in sizes.items()}
    drawn = {name: estimates[name].shape[1] + -(-sizes[name] // strides[name]) for name in names}
    cost = np.cumsum([len(steps) * len(dims) * drawn[name] for name in names])
    names = [name for name, numbers in zip(names, cost, strict=True) if name in pair or numbers <= MOST_NUMBERS]
    clouds = {name: shown.particles[name][steps][:, :: strides[name]][..., dims] for name in names if sizes[name]}
    seen = None if scans is None else _together(scans, every)
    low, high = _bounds(truth[..., dims], clouds, estimates, dims, seen)
    look = styles(result.study.filters)
    return {
        "times": _short(shown.recording.times[steps]),
        "steps": (steps + 1).tolist(),
        "of": len(truth),
        "timeLabel": scenario.time_label,
        "labels": [dimension_label(scenario.labels, dim) for dim in dims],
        "low": _short(low),
        "high": _short(high),
        "truth": _short(truth[steps][..., dims]),
        **_close_up(result, pair, steps, dims, clouds, strides),
        "exact": shown.reference is not None,
        "pair": [*pair, *pair][:2],
        "several": shown.recording.many,
        "hues": [color.lower() for color in LABEL_COLORS],
        "scans": None if seen is None else [len(scan) for scan in seen],
        "detections": "" if seen is None else _coded(np.concatenate(seen), low, high),
        "filters": {
            name: {
                "color": look[name].color.lower(),
                "n": sizes[name],
                "drawn": clouds[name].shape[1] if name in clouds else 0,
                "estimate": _short(estimates[name][steps][..., dims]),
                "particles": _coded(clouds[name], low, high) if name in clouds else "",
                "sizes": _sizes(shown.weights.get(name), steps, strides[name]),
            }
            for name in names
        },
        "omitted": _omitted(
            every, {name: strides[name] for name in names}, sizes, len(moving) - len(names), seen is not None
        ),
    }


def _each(states: Array) -> Array:
    """States of every target, or label, (T, m, d), of those of one (T, d)."""
    return states[:, None] if states.ndim == 2 else states


def _together(scans: Sequence[Array], every: int) -> list[Array]:
    """Put the detections of steps that are left out with those of the next step that is shown."""
    first = [scans[0]]
    ends = range(every, len(scans), every)
    return first + [np.concatenate(scans[end - every + 1 : end + 1]) for end in ends]


def _close_up(
    result: StudyResult,
    pair: Sequence[str],
    steps: np.ndarray,
    dims: list[int],
    clouds: dict[str, Array],
    strides: dict[str, int],
) -> dict[str, Any]:
    """Return where the close-up looks at, and how far it sees; nowhere where there are many targets."""
    shown = result.trajectory
    if shown.recording.many:
        return {"centre": None, "near": None}
    centre = shown.recording.truth if shown.reference is None else shown.reference.means
    away = [np.linalg.norm((shown.estimates[name] - centre)[:, dims], axis=1) for name in pair]
    nearest = min(float(np.median(distance)) for distance in away)  # of the better: it is to be in view
    known = {name: clouds[name] for name in pair if name in clouds}
    spread = _spread(shown.weights, known, steps, strides) if known else 0.0
    return {"centre": _short(centre[steps][:, dims]), "near": _short(3 * max(spread, nearest))}


def _bounds(
    truth: Array,
    clouds: dict[str, Array],
    estimates: dict[str, Array],
    dims: list[int],
    scans: list[Array] | None,
) -> tuple[Array, Array]:
    """Limits per dimension: the truth with room about it, and nearly all of the rest, but not the few that are far off."""
    path = truth.reshape(-1, truth.shape[-1])
    first, last = np.nanmin(path, axis=0), np.nanmax(path, axis=0)
    span = last - first + 1e-9
    low, high = first - 0.05 * span, last + 0.05 * span
    rest = [particles.reshape(-1, particles.shape[-1]) for particles in clouds.values()]
    if not rest:
        rest = [states[..., dims].reshape(-1, len(dims)) for states in estimates.values()]
    for flat in rest:
        known = flat[np.isfinite(flat).all(axis=1)]
        if len(known):
            ends = np.quantile(known, (0.01, 0.99), axis=0)
            low, high = np.minimum(low, ends[0]), np.maximum(high, ends[1])
    low, high = np.maximum(low, first - 2 * span), np.minimum(high, last + 2 * span)
    if scans is not None:  # false alarms are everywhere: enough of them to see them
        room = SURROUNDINGS * span.max()
        found = np.concatenate(scans)
        if len(found):
            low = np.minimum(low, np.maximum(found.min(axis=0), first - room))
            high = np.maximum(high, np.minimum(found.max(axis=0), last + room))
    room = 0.04 * (high - low)
    return low - room, high + room


def _spread(weights: Any, clouds: dict[str, Array], steps: np.ndarray, strides: dict[str, int]) -> float:
    """Typical standard deviation of the widest of the clouds."""
    found = []
    for name, particles in clouds.items():
        w = np.ones(particles.shape[:2])
        if name in weights:
            w = weights[name][steps][:, :: strides[name]] + 1e-300
        w = w / w.sum(axis=1, keepdims=True)
        mean = np.einsum("tn,tnd->td", w, particles)
        variance = np.einsum("tn,tnd->td", w, (particles - mean[:, None]) ** 2)
        found.append(float(np.median(np.sqrt(variance.max(axis=1)))))
    return max(found)


def _coded(particles: Array, low: Array, high: Array) -> str:
    """Code coordinates (..., d) as 16 bits each between the limits; the end values are for what lies beyond."""
    scaled = np.clip((particles - low) / (high - low) * _SCALE, 0, _SCALE)
    return base64.b64encode(np.nan_to_num(scaled).astype("<u2").tobytes()).decode()


def _sizes(weights: Array | None, steps: np.ndarray, stride: int) -> str:
    """Code diameters (T, n) as 8 bits, 64 for a weight of 1 / n; empty where all weights are equal."""
    if weights is None or np.allclose(weights * weights.shape[1], 1, atol=0.02):
        return ""
    relative = weights[steps][:, ::stride] * weights.shape[1]
    return base64.b64encode(np.clip(64 * np.sqrt(relative), 0, 255).astype(np.uint8).tobytes()).decode()


def _short(values: Any) -> Any:
    """Nested lists of numbers with six digits."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim:
        return [_short(value) for value in array]
    return float(f"{array:.6g}") if np.isfinite(array) else None


def _omitted(every: int, strides: dict[str, int], sizes: dict[str, int], filters: int, scans: bool) -> str:
    parts = []
    if every > 1:
        kept = ", with the detections of all" if scans else ""
        parts.append(f"every {_ordinal(every)} step{kept}")
    thinned = {f"{-(-sizes[name] // k)} of {sizes[name]}" for name, k in strides.items() if k > 1}
    if thinned:
        parts.append(f"{', '.join(sorted(thinned))} particles of a filter")
    text = f"To keep the page small it shows {' and '.join(parts)}." if parts else ""
    return text + (f" {filters} more filters are left out." if filters else "")


def _ordinal(number: int) -> str:
    return {2: "second", 3: "third"}.get(number, f"{number}th")
