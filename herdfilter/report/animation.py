"""The compact data of the page's animation: truth, detections, estimates and particles of the first run."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from scipy.ndimage import maximum_filter1d

from herdfilter._checks import Array
from herdfilter.plotting import style
from herdfilter.plotting.over_time import first_run_limits
from herdfilter.study.columns import error_measure
from herdfilter.study.results import StudyResult

# Largest number of particle coordinates on a page, 2.7 bytes each (16 bits in base 64).
MOST_COORDINATES = 500_000
DRAWN_STEPS = 300
DRAWN_PARTICLES = 300
LARGEST_CODE = 65_535  # of 16 bits
CLOSE_UP_SHARE = 0.95  # share of the particles of both filters that the close-up shows
# Steps over which the close-up takes the largest reach, so that it does not jump.
CALM = 9


def animation(result: StudyResult) -> dict[str, Any] | None:
    """Return the data of the animation, for JSON through `rounded_lists`; None without particles or scans.

    The first filter comes first, then the others by median error: the page shows the first two side by side.
    """
    first_run = result.trajectory
    scenario = result.study.scenario
    scans = first_run.positions
    drawable = first_run.particles if scans is None else first_run.estimates
    names = [name for name in result.study.filters if name in drawable]
    if not names:
        return None
    rows = result.summary[result.summary["n_particles"] == first_run.n_particles]
    medians = rows.set_index("filter")[f"{error_measure(result.summary)}_median"]
    names = [names[0], *medians.reindex(names[1:]).sort_values().index]
    # One target is drawn like many, with an axis of length 1 for the targets.
    truth = _per_target(first_run.recording.truth)
    dims = [0] if truth.shape[2] == 1 else list(scenario.plane)
    # Rounded up, so that at most `DRAWN_STEPS` remain.
    every = -(-len(truth) // DRAWN_STEPS)
    steps = np.arange(0, len(truth), every)
    low, high = first_run_limits(result, dims)
    # Filters, steps and dimensions share the budget of coordinates.
    most_particles = min(DRAWN_PARTICLES, MOST_COORDINATES // (len(steps) * len(dims) * len(names)))
    filters = {}
    clouds = []
    for name in names:
        particles = first_run.particles.get(name, truth[:, :0])
        n = particles.shape[1]
        thinned = slice(None, None, max(1, -(-n // most_particles)))
        particles = particles[steps][:, thinned][..., dims]
        sizes = ""
        if name in first_run.weights:
            sizes = _sizes(n * first_run.weights[name][steps][:, thinned])
        estimate = _per_target(first_run.estimates[name])[steps][..., dims]
        clouds.append(particles if n else estimate)
        filters[name] = {
            "color": style.styles(result.study.filters)[name].color,
            "drawn": particles.shape[1],
            "thinned": particles.shape[1] < n,
            "estimate": estimate,
            "particles": _sixteen_bits(particles, low, high),
            "sizes": sizes,
        }
    # The close-up follows the posterior mean, and is as wide as the particles of both filters need.
    path = truth[:, 0] if first_run.reference is None else first_run.reference.means
    centre = path[steps][:, dims]
    reach = [
        np.quantile(np.abs(x - centre[:, None]).max(axis=2), CLOSE_UP_SHARE, axis=1)
        for x in clouds[:2]
        if x.shape[1]
    ]
    detections = []
    if scans is not None:  # detections of skipped steps are shown with the next step
        detections = [
            np.concatenate(scans[max(0, step - every + 1) : step + 1]) for step in steps.tolist()
        ]
    return {
        "times": first_run.recording.times[steps],
        "steps": steps + 1,
        "of": len(truth),
        "timeLabel": scenario.time_label,
        "labels": [style.dimension_label(scenario.labels, dim) for dim in dims],
        "low": low,
        "high": high,
        "truth": truth[steps][..., dims],
        "centre": centre,
        "near": 1.1 * maximum_filter1d(np.fmax.reduce([np.zeros(len(steps)), *reach]), CALM),
        "exact": first_run.reference is not None,
        # A single filter is shown alone, and named twice.
        "pair": [names[0], names[:2][-1]],
        "several": first_run.recording.many,
        "hues": style.VIVID,
        "scans": None if scans is None else [len(scan) for scan in detections],
        # The empty array in front gives the shape if there are no scans.
        "detections": _sixteen_bits(np.concatenate([truth[0, :0, dims].T, *detections]), low, high),
        "filters": filters,
        "every": every,
    }


def _per_target(states: Array) -> Array:
    """Return states (T, m, d) of every target or label; with one target (T, d) becomes (T, 1, d)."""
    return states[:, None] if states.ndim == 2 else states


def _sixteen_bits(points: Array, low: Array, high: Array) -> str:
    """Code coordinates (..., d) in 16 bits each, clipped to the limits, in base 64."""
    scaled = np.clip((points - low) / (high - low) * LARGEST_CODE, 0, LARGEST_CODE)
    return base64.b64encode(np.nan_to_num(scaled).astype("<u2").tobytes()).decode()


def _sizes(relative_weights: Array) -> str:
    """Code the diameters of particles (T, n) in 8 bits each, 64 for a weight of 1 / n; empty for equal weights."""
    if np.allclose(relative_weights, 1, atol=0.02):
        return ""
    sizes = np.clip(64 * np.sqrt(relative_weights), 0, 255).astype(np.uint8)
    return base64.b64encode(sizes.tobytes()).decode()


def rounded_lists(values: Any) -> Any:
    """Return nested lists of numbers with six digits, and None, as JSON has no NaN or infinity, for those not finite."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim:
        return [rounded_lists(value) for value in array]
    return float(f"{array:.6g}") if np.isfinite(array) else None
