"""The data of the page's animation: truth, detections, estimates and particles of the first run, in few bytes."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from herdfilter._checks import Array
from herdfilter.plotting.over_time import LABEL_COLORS
from herdfilter.plotting.style import dimension_label, styles
from herdfilter.study.results import StudyResult

MOST_COORDINATES = 500_000  # of particles on a page, 2.7 bytes each
MOST_STEPS = 300
MOST_PARTICLES = 300
DETECTION_MARGIN = 0.3  # room for detections around the truth, in extents of the truth
LARGEST_CODE = 65_535
HELD = 0.95  # share of the weight that the close-up shows
CALM = 9  # steps over which it keeps the largest reach, so that it does not jump


def animation(result: StudyResult, pair: Sequence[str]) -> dict[str, Any] | None:
    """Return the data of the animation for JSON, with a sentence on omissions; None without particles or scans.

    It begins with the filters of `pair`, side by side; others are added while there is room.
    """
    shown, scenario = result.trajectory, result.study.scenario
    scans, truth = shown.positions, _per_target(shown.recording.truth)
    moving = shown.particles if scans is None else shown.estimates
    pair = [name for name in pair if name in moving]
    if not pair:
        return None
    dims = [0] if truth.shape[2] == 1 else list(scenario.plane)
    every = -(-len(truth) // MOST_STEPS)
    steps = np.arange(0, len(truth), every)
    names = [*pair, *(name for name in moving if name not in pair)]
    estimates = {name: _per_target(shown.estimates[name]) for name in names}
    sizes = {name: shown.particles[name].shape[1] if name in shown.particles else 0 for name in names}
    strides = {name: -(-n // MOST_PARTICLES) or 1 for name, n in sizes.items()}
    drawn = {name: estimates[name].shape[1] + -(-sizes[name] // strides[name]) for name in names}
    cost = np.cumsum([len(steps) * len(dims) * drawn[name] for name in names])
    names = [name for name, numbers in zip(names, cost, strict=True) if name in pair or numbers <= MOST_COORDINATES]
    particles = {name: shown.particles[name][steps][:, :: strides[name]][..., dims] for name in names if sizes[name]}
    detections = None
    if scans is not None:  # those of omitted steps are added to the next step shown
        ends = range(every, len(scans), every)
        detections = [scans[0], *(np.concatenate(scans[end - every + 1 : end + 1]) for end in ends)]
    low, high = _bounds(truth[..., dims], particles, estimates, dims, detections)
    look = styles(result.study.filters)
    return {
        "times": _rounded_lists(shown.recording.times[steps]),
        "steps": (steps + 1).tolist(),
        "of": len(truth),
        "timeLabel": scenario.time_label,
        "labels": [dimension_label(scenario.labels, dim) for dim in dims],
        "low": _rounded_lists(low),
        "high": _rounded_lists(high),
        "truth": _rounded_lists(truth[steps][..., dims]),
        **_close_up(result, pair, steps, dims, particles, strides),
        "exact": shown.reference is not None,
        "pair": [*pair, *pair][:2],
        "several": shown.recording.many,
        "hues": [color.lower() for color in LABEL_COLORS],
        "scans": None if detections is None else [len(scan) for scan in detections],
        "detections": "" if detections is None else _coded(np.concatenate(detections), low, high),
        "filters": {
            name: {
                "color": look[name].color.lower(),
                "n": sizes[name],
                "drawn": particles[name].shape[1] if name in particles else 0,
                "estimate": _rounded_lists(estimates[name][steps][..., dims]),
                "particles": _coded(particles[name], low, high) if name in particles else "",
                "sizes": _sizes(shown.weights.get(name), steps, strides[name]),
            }
            for name in names
        },
        "omitted": _omissions(every, {n: strides[n] for n in names}, sizes, len(moving) - len(names), scans is not None),
    }


def _per_target(states: Array) -> Array:
    """Return states (T, m, d) of every target or label; those (T, d) of one target get an axis."""
    return states[:, None] if states.ndim == 2 else states


def _close_up(
    result: StudyResult,
    pair: Sequence[str],
    steps: np.ndarray,
    dims: list[int],
    particles: dict[str, Array],
    strides: dict[str, int],
) -> dict[str, Any]:
    """Return the centre and the reach of the close-up at every step: a square that holds `HELD` of both filters' weight."""
    from scipy.ndimage import maximum_filter1d

    shown = result.trajectory
    if shown.recording.many:
        return {"centre": None, "near": None}
    centre = (shown.recording.truth if shown.reference is None else shown.reference.means)[steps][:, dims]
    reach = np.zeros(len(steps))
    for name in pair:
        places = particles.get(name, shown.estimates[name][steps][:, None, dims])
        weights = shown.weights[name][steps][:, :: strides[name]] if name in shown.weights else np.ones(places.shape[:2])
        away = np.abs(places - centre[:, None]).max(axis=2)
        order = np.argsort(away, axis=1)
        held = np.take_along_axis(weights, order, axis=1).cumsum(axis=1)
        last = (held >= HELD * held[:, -1:]).argmax(axis=1)
        reach = np.fmax(reach, np.take_along_axis(away, order, axis=1)[np.arange(len(steps)), last])
    return {"centre": _rounded_lists(centre), "near": _rounded_lists(1.1 * maximum_filter1d(reach, CALM))}


def _bounds(
    truth: Array, particles: dict[str, Array], estimates: dict[str, Array], dims: list[int], scans: list[Array] | None
) -> tuple[Array, Array]:
    """Return limits per dimension, which hold the truth with a margin and most of the particles."""
    path = truth.reshape(-1, truth.shape[-1])
    first, last = np.nanmin(path, axis=0), np.nanmax(path, axis=0)
    span = last - first + 1e-9
    low, high = first - 0.05 * span, last + 0.05 * span
    rest = [x.reshape(-1, x.shape[-1]) for x in particles.values()]
    if not rest:
        rest = [states[..., dims].reshape(-1, len(dims)) for states in estimates.values()]
    for flat in rest:
        known = flat[np.isfinite(flat).all(axis=1)]
        if len(known):
            ends = np.quantile(known, (0.01, 0.99), axis=0)
            low, high = np.minimum(low, ends[0]), np.maximum(high, ends[1])
    low, high = np.maximum(low, first - 2 * span), np.minimum(high, last + 2 * span)
    if scans is not None and len(found := np.concatenate(scans)):  # false alarms are everywhere: show enough of them
        room = DETECTION_MARGIN * span.max()
        low = np.minimum(low, np.maximum(found.min(axis=0), first - room))
        high = np.maximum(high, np.minimum(found.max(axis=0), last + room))
    room = 0.04 * (high - low)
    return low - room, high + room


def _coded(points: Array, low: Array, high: Array) -> str:
    """Code coordinates (..., d) as 16 bits each between the limits; coordinates beyond are clipped."""
    scaled = np.clip((points - low) / (high - low) * LARGEST_CODE, 0, LARGEST_CODE)
    return base64.b64encode(np.nan_to_num(scaled).astype("<u2").tobytes()).decode()


def _sizes(weights: Array | None, steps: np.ndarray, stride: int) -> str:
    """Code diameters (T, n) as 8 bits, 64 for a weight of 1 / n; empty for equal weights."""
    if weights is None or np.allclose(weights * weights.shape[1], 1, atol=0.02):
        return ""
    relative = weights[steps][:, ::stride] * weights.shape[1]
    return base64.b64encode(np.clip(64 * np.sqrt(relative), 0, 255).astype(np.uint8).tobytes()).decode()


def _rounded_lists(values: Any) -> Any:
    """Return nested lists of numbers with six digits; None for NaN."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim:
        return [_rounded_lists(value) for value in array]
    return float(f"{array:.6g}") if np.isfinite(array) else None


def _omissions(every: int, strides: dict[str, int], sizes: dict[str, int], filters: int, scans: bool) -> str:
    """Return a sentence on omissions of the animation, or an empty text."""
    parts = []
    if every > 1:
        ordinal = {2: "second", 3: "third"}.get(every, f"{every}th")
        parts.append(f"every {ordinal} step" + (", with the detections of all" if scans else ""))
    thinned = {f"{-(-sizes[name] // k)} of {sizes[name]}" for name, k in strides.items() if k > 1}
    if thinned:
        parts.append(f"{', '.join(sorted(thinned))} particles of a filter")
    text = f"To keep the page small it shows {' and '.join(parts)}." if parts else ""
    return text + (f" {filters} more filters are left out." if filters else "")
