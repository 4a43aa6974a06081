"""One run of each scenario: the truth, an estimate, and what the filter was shown."""

from __future__ import annotations

from matplotlib.figure import Figure

from herdfilter.plotting import drawings, plot_track, styles
from herdfilter.plotting.over_time import mark_sensors, model_sensors
from herdfilter.plotting.style import dimension_label
from herdfilter.study.engine import run_study
from herdfilter.study.plan import plan_study
from herdfilter.study.recording import record
from herdfilter.study.scenario import Scenario, load_scenario

from .look import INK

ROWS = 3
OBSERVED = {  # what the first entries of an observation are
    "alike_landmarks": ["range of some landmark (m)", "its bearing (rad)"],
    "bearings": ["bearing from sensor 1 (rad)", "bearing from sensor 2 (rad)"],
    "bearings_only": ["bearing (rad)"],
    "coordinated_turn": ["range (m)", "bearing (rad)"],
    "cross_bearings": [
        "bearing of beacon 1 (rad)",
        "bearing of beacon 2 (rad)",
        "bearing of beacon 3 (rad)",
    ],
    "double_well": ["x with noise"],
    "epidemic": ["reported cases"],
    "landmarks": [
        "range of landmark 1 (m)",
        "bearing of landmark 1 (rad)",
        "range of landmark 2 (m)",
    ],
    "leverage": ["return 1", "return 2"],
    "lidar": [
        "range ahead (m)",
        "range 10\u00b0 to the left (m)",
        "range 20\u00b0 to the left (m)",
    ],
    "linear_gaussian": ["position with noise"],
    "lorenz63": ["x with noise", "y with noise", "z with noise"],
    "mirror_ranges": ["range from sensor 1", "range from sensor 2"],
    "pendulum": ["horizontal position with noise"],
    "plaza": ["beacon that answered", "range (m)"],
    "predators_and_prey": ["prey that are counted (thousands)"],
    "reentry": ["range (km)", "bearing (rad)"],
    "sharp_range": ["range"],
    "stochastic_volatility": ["return"],
    "terrain": ["height of the ground with noise (m)"],
    "uav": ["range (m)", "azimuth (rad)", "elevation (rad)"],
    "ungm": ["x\u00b2 / 20 with noise"],
}


def scenario(name: str) -> Figure:
    """Draw one run of a scenario: the truth, the estimate of a filter without random numbers, and what it was shown."""
    shown = load_scenario(name)
    if shown.model["type"] == "WithClutter" or "harbour" in (shown.data or {}).get("type", ""):
        return over_detections(shown)
    who = next(
        known for known in ("augmented-kh", "mixture-chg", *shown.filters) if known in shown.filters
    )
    study = plan_study(shown, who, max(shown.particles), 1)
    model = study.build_model()
    recording = record(shown, model, study.data, study.recording_rng(0))
    key = (who, max(shown.particles))
    built = study.filters[who](model, key[1], study.filter_rng(0, key))
    result = built.run(recording.observations, dt=recording.dt, controls=recording.controls)
    observations = recording.observations[:, :ROWS]
    figure = Figure(figsize=(7.2, 3.3))
    grid = figure.add_gridspec(observations.shape[1], 2, width_ratios=[3, 2])
    ax = figure.add_subplot(grid[:, 0])
    in_plane = shown.view == "plane" and model.dim > 1
    truth = {"color": "#b0b0b0", "linewidth": 3, "label": "truth"}
    estimate = {
        "color": styles([who])[who].color,
        "linewidth": 1.2,
        "label": f"{who}, {key[1]} particles",
    }
    if in_plane:
        dims = list(shown.plane)
        ax.set(
            **dict(
                zip(
                    ("xlabel", "ylabel"),
                    (dimension_label(shown.labels, i) for i in dims),
                    strict=True,
                )
            )
        )
        plot_track(recording.truth, None, ax, dims, ends=True, **truth)
        plot_track(result.means, None, ax, dims, **estimate)
        places = model_sensors(model)
        if places is not None:
            mark_sensors(ax, *places)
        ax.set_aspect("equal", adjustable="datalim")
    else:
        ax.set(xlabel=shown.time_label, ylabel=dimension_label(shown.labels, 0))
        ax.plot(recording.times, recording.truth[:, 0], **truth)
        ax.plot(recording.times, result.means[:, 0], **estimate)
    known = OBSERVED.get(name, [])
    for row, entries in enumerate(observations.T):
        beside = figure.add_subplot(grid[row, 1])
        beside.plot(recording.times, entries, ".", color=INK, markersize=2.5)
        beside.tick_params(labelbottom=row == observations.shape[1] - 1)
        label = known[row] if row < len(known) else f"observation {row + 1}"
        beside.set_title(label, loc="left", fontsize=9, color=INK)
    beside.set_xlabel(shown.time_label)
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=9)
    return figure


def over_detections(shown: Scenario) -> Figure:
    """Draw the first run of a scenario of scans: the first filter's estimates, or labelled tracks, over all detections."""
    who = next(known for known in ("auto", *shown.filters) if known in shown.filters)
    result = run_study(plan_study(shown, who, max(shown.particles), 1))
    return drawings(result)["trajectory"].figure
