"""The data of the page's animation: truth, detections, estimates and particles of the first run, in few bytes."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from scipy.ndimage import maximum_filter1d

from herdfilter._checks import Array
from herdfilter.plotting.over_time import first_run_limits
from herdfilter.plotting.style import VIVID, dimension_label, styles
from herdfilter.study.columns import error_measure
from herdfilter.study.results import StudyResult

MOST_COORDINATES = 500_000  # of particles on a page, 2.7 bytes each
MOST_STEPS = 300
MOST_PARTICLES = 300
LARGEST_CODE = 65_535
CLOSE_UP_SHARE = 0.95  # of the particles of both filters
CALM = 9  # steps over which the close-up keeps the largest reach, so that it does not jump


def animation(result: StudyResult) -> dict[str, Any] | None:
    """Return the data of the animation, for JSON through `rounded_lists`; None without particles or scans.

    The first filter and the best of the others, by median error, come first: the page shows them side by side.
    """
    shown = result.trajectory
    scenario = result.study.scenario
    scans = shown.positions
    names = [name for name in result.study.filters if name in (shown.particles if scans is None else shown.estimates)]
    if not names:
        return None
    medians = result.summary[result.summary["n_particles"] == shown.n_particles].set_index("filter")
    ranked = medians[f"{error_measure(result.summary)}_median"].reindex(names[1:]).sort_values()
    names = [names[0], *ranked.index]
    truth = _per_target(shown.recording.truth)
    dims = [0] if truth.shape[2] == 1 else list(scenario.plane)
    every = -(-len(truth) // MOST_STEPS)
    steps = np.arange(0, len(truth), every)
    low, high = first_run_limits(result, dims)
    most_particles = min(MOST_PARTICLES, MOST_COORDINATES // (len(steps) * len(dims) * len(names)))
    filters = {}
    clouds = []
    for name in names:
        particles = shown.particles.get(name, truth[:, :0])
        n = particles.shape[1]
        thinned = slice(None, None, max(1, -(-n // most_particles)))
        particles = particles[steps][:, thinned][..., dims]
        relative_weights = n * shown.weights[name][steps][:, thinned] if name in shown.weights else None
        estimate = _per_target(shown.estimates[name])[steps][..., dims]
        clouds.append(particles if n else estimate)
        filters[name] = {
            "color": styles(result.study.filters)[name].color,
            "drawn": particles.shape[1],
            "thinned": particles.shape[1] < n,
            "estimate": estimate,
            "particles": _coded(particles, low, high),
            "sizes": _sizes(relative_weights),
        }
    centre = (truth[:, 0] if shown.reference is None else shown.reference.means)[steps][:, dims]
    reach = [np.quantile(np.abs(x - centre[:, None]).max(axis=2), CLOSE_UP_SHARE, axis=1) for x in clouds[:2] if x.shape[1]]
    detections = []
    if scans is not None:  # those of omitted steps are added to the next step shown
        detections = [np.concatenate(scans[max(0, step - every + 1) : step + 1]) for step in steps.tolist()]
    return {
        "times": shown.recording.times[steps],
        "steps": steps + 1,
        "of": len(truth),
        "timeLabel": scenario.time_label,
        "labels": [dimension_label(scenario.labels, dim) for dim in dims],
        "low": low,
        "high": high,
        "truth": truth[steps][..., dims],
        "centre": centre,
        "near": 1.1 * maximum_filter1d(np.fmax.reduce([np.zeros(len(steps)), *reach]), CALM),
        "exact": shown.reference is not None,
        "pair": [names[0], names[:2][-1]],
        "several": shown.recording.many,
        "hues": VIVID,
        "scans": None if scans is None else [len(scan) for scan in detections],
        "detections": _coded(np.concatenate([truth[0, :0, dims].T, *detections]), low, high),
        "filters": filters,
        "every": every,
    }


def _per_target(states: Array) -> Array:
    """Return states (T, m, d) of every target or label; those (T, d) of one target get an axis."""
    return states[:, None] if states.ndim == 2 else states


def _coded(points: Array, low: Array, high: Array) -> str:
    """Code coordinates (..., d) as 16 bits each between the limits; coordinates beyond are clipped."""
    scaled = np.clip((points - low) / (high - low) * LARGEST_CODE, 0, LARGEST_CODE)
    return base64.b64encode(np.nan_to_num(scaled).astype("<u2").tobytes()).decode()


def _sizes(relative_weights: Array | None) -> str:
    """Code diameters (T, n) as 8 bits, 64 for a weight of 1 / n; empty for equal weights."""
    if relative_weights is None or np.allclose(relative_weights, 1, atol=0.02):
        return ""
    return base64.b64encode(np.clip(64 * np.sqrt(relative_weights), 0, 255).astype(np.uint8).tobytes()).decode()


def rounded_lists(values: Any) -> Any:
    """Return nested lists of numbers with six digits; None for NaN."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim:
        return [rounded_lists(value) for value in array]
    return float(f"{array:.6g}") if np.isfinite(array) else None
