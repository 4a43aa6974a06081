"""What the page needs to move: truth, estimates and particles of the first run, in few bytes."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from herdfilter._checks import Array
from herdfilter.evaluation.results import StudyResult
from herdfilter.plotting.style import dimension_label, styles

MOST_NUMBERS = 500_000  # coordinates of particles on a page, 2.7 bytes each
MOST_STEPS = 300
MOST_PARTICLES = 300
_SCALE = 65_535


def animation(result: StudyResult, pair: Sequence[str]) -> dict[str, Any] | None:
    """Return the data of the animation in terms of JSON, and in words what was left out; None without particles.

    Parameters
    ----------
    result : StudyResult
    pair : sequence of str
        The filters to begin with, side by side; of others there are particles where there is room.
    """
    shown, scenario = result.trajectory, result.study.scenario
    pair = [name for name in pair if name in shown.particles]
    if not pair:
        return None
    truth = shown.recording.truth
    dims = [0] if truth.shape[1] == 1 else list(scenario.plane)
    every = -(-len(truth) // MOST_STEPS)
    steps = np.arange(0, len(truth), every)
    names = [*pair, *(name for name in shown.particles if name not in pair)]
    sizes = {name: shown.particles[name].shape[1] for name in names}
    strides = {name: -(-n // MOST_PARTICLES) for name, n in sizes.items()}
    cost = np.cumsum([len(steps) * len(dims) * -(-sizes[name] // strides[name]) for name in names])
    names = [
        name for name, numbers in zip(names, cost, strict=True) if name in pair or numbers <= MOST_NUMBERS
    ]
    clouds = {name: shown.particles[name][steps][:, :: strides[name]][..., dims] for name in names}
    low, high = _bounds(truth[:, dims], clouds)
    look = styles(result.study.filters)
    centre = truth if shown.reference is None else shown.reference.means
    away = [np.linalg.norm((shown.estimates[name] - centre)[:, dims], axis=1) for name in pair]
    offsets = [
        0.0,
        min(float(np.median(distance)) for distance in away),
    ]  # of the better: it is to be in view
    return {
        "times": _short(shown.recording.times[steps]),
        "steps": (steps + 1).tolist(),
        "of": len(truth),
        "timeLabel": scenario.time_label,
        "labels": [dimension_label(scenario.labels, dim) for dim in dims],
        "low": _short(low),
        "high": _short(high),
        "truth": _short(truth[steps][:, dims]),
        "centre": _short(centre[steps][:, dims]),
        "near": _short(3 * max(_spread(shown.weights, clouds, pair, steps, strides), *offsets)),
        "exact": shown.reference is not None,
        "pair": [*pair, *pair][:2],
        "filters": {
            name: {
                "color": look[name].color.lower(),
                "n": sizes[name],
                "drawn": clouds[name].shape[1],
                "estimate": _short(shown.estimates[name][steps][:, dims]),
                "particles": _coded(clouds[name], low, high),
                "sizes": _sizes(shown.weights.get(name), steps, strides[name]),
            }
            for name in names
        },
        "omitted": _omitted(
            every, {name: strides[name] for name in names}, sizes, len(shown.particles) - len(names)
        ),
    }


def _bounds(truth: Array, clouds: dict[str, Array]) -> tuple[Array, Array]:
    """Limits per dimension: the truth with room about it, and nearly all particles, but not the few that are far off."""
    span = np.ptp(truth, axis=0) + 1e-9
    low, high = truth.min(axis=0) - 0.05 * span, truth.max(axis=0) + 0.05 * span
    for cloud in clouds.values():
        flat = cloud.reshape(-1, cloud.shape[-1])
        ends = np.quantile(flat, (0.01, 0.99), axis=0)
        low, high = np.minimum(low, ends[0]), np.maximum(high, ends[1])
    low, high = np.maximum(low, truth.min(axis=0) - 2 * span), np.minimum(high, truth.max(axis=0) + 2 * span)
    room = 0.04 * (high - low)
    return low - room, high + room


def _spread(
    weights: Any, clouds: dict[str, Array], pair: Sequence[str], steps: np.ndarray, strides: dict[str, int]
) -> float:
    """Typical standard deviation of the wider of the two clouds."""
    found = []
    for name in pair:
        cloud = clouds[name]
        w = np.ones(cloud.shape[:2])
        if name in weights:
            w = weights[name][steps][:, :: strides[name]] + 1e-300
        w = w / w.sum(axis=1, keepdims=True)
        mean = np.einsum("tn,tnd->td", w, cloud)
        variance = np.einsum("tn,tnd->td", w, (cloud - mean[:, None]) ** 2)
        found.append(float(np.median(np.sqrt(variance.max(axis=1)))))
    return max(found)


def _coded(cloud: Array, low: Array, high: Array) -> str:
    """Code coordinates (T, n, d) as 16 bits each between the limits; the end values are for what lies beyond."""
    scaled = np.clip((cloud - low) / (high - low) * _SCALE, 0, _SCALE)
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


def _omitted(every: int, strides: dict[str, int], sizes: dict[str, int], filters: int) -> str:
    parts = []
    if every > 1:
        parts.append(f"every {_ordinal(every)} step")
    thinned = {f"{-(-sizes[name] // k)} of {sizes[name]}" for name, k in strides.items() if k > 1}
    if thinned:
        parts.append(f"{', '.join(sorted(thinned))} particles of a filter")
    text = f"To keep the page small it shows {' and '.join(parts)}." if parts else ""
    return text + (f" {filters} more filters are left out." if filters else "")


def _ordinal(number: int) -> str:
    return {2: "second", 3: "third"}.get(number, f"{number}th")
