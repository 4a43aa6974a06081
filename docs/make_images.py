"""Draw the figures of the documentation from fresh computation: ``python docs/make_images.py [samplers] [filters] ...``.

`scenario_ungm` and so on, one run of each scenario, and `samplers` take seconds (real data are downloaded, or looked for in
HERDFILTER_DATA), `filters` (20 runs of three scenarios at four particle counts) some minutes, `paper_fig1` to
`paper_fig5`, the figures of `herdfilter paper` and their tables, a minute together. `random_models` is drawn from what
`python benchmarks/bench_default.py` found.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

import herdfilter as hf
from herdfilter.evaluation.engine import run_study
from herdfilter.evaluation.recording import record
from herdfilter.evaluation.scenario import Scenario, load_scenario, scenario_files
from herdfilter.evaluation.statistics import median_interval
from herdfilter.evaluation.study import plan_study
from herdfilter.paper import FIGURES, reproduce
from herdfilter.plotting import plot_track, styles, trajectory
from herdfilter.plotting.sensors import sensors
from herdfilter.plotting.style import dimension_label
from herdfilter.plotting.trajectories import mark_ends, mark_sensors

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
from common import RESULTS, load, save

IMAGES = Path(__file__).parent / "images"
INK, QUIET = "#222222", "#6e6e6e"
LOOK = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    "savefig.facecolor": "white",  # readable on a dark page
}

# The five components of the example in Wolf and Baum (2021).
MIXTURE = hf.GaussianMixture(
    [0.3, 0.1, 0.2, 0.3, 0.1],
    [[6, 5], [7, 2], [1, 3], [7, 6], [2, 8]],
    [[[5, 3], [3, 5]], [[1, 0.3], [0.3, 1]], [[4, 3], [3, 4]], [[2, 0.5], [0.5, 3]], [[1, 0], [0, 3]]],
)


def samplers(n: int = 100) -> Figure:
    """Draw n points from one mixture by three samplers."""
    drawn = {
        "random": (hf.RandomSampling(), INK),
        "kernel herding": (hf.KernelHerding(), "#0072B2"),
        "herded Gibbs": (hf.ContinuousHerdedGibbs(), "#D55E00"),
    }
    x, y = np.linspace(-5, 13, 300), np.linspace(-3.2, 13.2, 280)
    grid = np.stack(np.meshgrid(x, y), axis=-1)
    density = np.exp(MIXTURE.log_density(grid.reshape(-1, 2))).reshape(grid.shape[:2])
    levels = density.max() * np.array([0.01, 0.05, 0.15, 0.3, 0.5, 0.7, 0.9, 1.01])
    shades = mpl.colormaps["Greys"](np.linspace(0.06, 0.42, len(levels) - 1))
    figure = Figure(figsize=(9.6, 3.35))
    for ax, (name, (sampler, colour)) in zip(figure.subplots(1, 3), drawn.items(), strict=True):
        points, distance = _median_draw(sampler, n)
        ax.contourf(x, y, density, levels, colors=shades)
        ax.plot(*points.x.T, "o", color=colour, markersize=4.6, markeredgecolor="white", markeredgewidth=0.5)
        ax.set(aspect="equal", xlim=(x[0], x[-1]), ylim=(y[0], y[-1]), xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        ax.set_title(name, color=colour, fontweight="bold", fontsize=12)
        ax.set_xlabel(f"energy distance {distance:.2g}", color=INK)
    return figure


def _median_draw(sampler: hf.RandomSampling, n: int, draws: int = 101) -> tuple[hf.Points, float]:
    """Points of the seed whose energy distance is the median: a typical draw of a random sampler."""
    seeds = range(draws if isinstance(sampler, hf.RandomSampling) else 1)
    points = [sampler.sample(MIXTURE, n, rng=seed) for seed in seeds]
    distances = [hf.energy_distance(p, MIXTURE) for p in points]
    middle = int(np.argsort(distances)[len(distances) // 2])
    return points[middle], distances[middle]


SCENARIOS = ["ungm", "lorenz63", "bearings"]
FILTERS = ["bootstrap", "sqmc", "herded-kh", "augmented-kh", "auto-kh"]
PARTICLES = [25, 50, 100, 200]


def filters(runs: int = 20) -> Figure:
    """Draw the median error against the reference posterior mean over the particle count, for three scenarios."""
    look = styles(FILTERS)
    figure = Figure(figsize=(9.6, 3.7))
    for ax, name in zip(figure.subplots(1, len(SCENARIOS)), SCENARIOS, strict=True):
        table = hf.compare(name, FILTERS, PARTICLES, runs=runs, workers=2, progress=True)
        for i, (who, rows) in enumerate(table.groupby("filter", sort=False)):
            groups = [(n, group["reference_error"].dropna()) for n, group in rows.groupby("n_particles")]
            n = np.array([count for count, _ in groups]) * 1.03 ** (i - 1.5)
            middle = np.array([errors.median() for _, errors in groups])
            low, high = np.array([median_interval(errors.to_numpy()) for _, errors in groups]).T
            ax.errorbar(n, middle, [middle - low, high - middle], label=who, elinewidth=1, **look[who].line)
        ax.set(xscale="log", yscale="log", xlabel="particles")
        ax.set_title(load_scenario(name).title.replace("Univariate nonstationary growth model", "UNGM"))
        ax.set_xticks(PARTICLES, [str(count) for count in PARTICLES])
        ax.minorticks_off()
        ax.set_yticks(*_round_ticks(ax.get_ylim()))
        ax.grid(axis="y", color="#e4e4e4", linewidth=0.7)
        ax.set_axisbelow(True)
    figure.axes[0].set_ylabel("median RMS error\nto the reference posterior mean")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(FILTERS))
    return figure


def _round_ticks(limits: tuple[float, float]) -> tuple[list[float], list[str]]:
    """Positions 1, 2 and 5 times a power of ten inside the limits, and their labels."""
    ticks = [m * 10.0**p for p in range(-4, 4) for m in (1, 2, 5)]
    inside = [tick for tick in ticks if limits[0] <= tick <= limits[1]]
    return inside, [f"{tick:g}" for tick in inside]


SORTED = ["sqmc", "ranked", "auto-random", "auto-kh"]


def random_models() -> Figure:
    """Draw the errors over those of bootstrap on random models, sorted, as `bench_default.py` found them."""
    table, look = load("default_models", RESULTS), styles(SORTED)
    figure = Figure(figsize=(7.2, 3.4))
    ax = figure.subplots()
    for who in SORTED:
        ratios = np.sort(table[who].dropna())
        share = 100 * (np.arange(len(ratios)) + 0.5) / len(ratios)
        ax.plot(share, ratios, label=who, **{**look[who].line, "marker": ""})
    ax.axhline(1, color=QUIET, linewidth=1)
    decades = np.arange(-4, 3)
    ax.set(
        yscale="log",
        xlim=(0, 100),
        ylim=(10.0 ** decades[0], 10.0 ** decades[-1]),
        xlabel="models, sorted (%)",
    )
    ax.set_ylabel(f"error over that of bootstrap\nn = {table['n'].iloc[0]}")
    ax.set_yticks(10.0**decades, [f"{10.0**decade:g}" for decade in decades])
    ax.minorticks_off()
    ax.grid(axis="y", color="#e4e4e4", linewidth=0.7)
    ax.legend()
    return figure


def paper(name: str) -> Figure:
    """Draw a figure of the paper, as the command does, and keep its table for the pages."""
    made = reproduce(name)
    save(f"paper_{name}", made.table.rename(columns=lambda text: " ".join(text.split())), RESULTS)
    return made.figure


ROWS = 3
OBSERVED = {  # what the first entries of an observation are
    "bearings": ["bearing from sensor 1 (rad)", "bearing from sensor 2 (rad)"],
    "bearings_only": ["bearing (rad)"],
    "coordinated_turn": ["range (m)", "bearing (rad)"],
    "double_well": ["x with noise"],
    "landmarks": ["range of landmark 1 (m)", "bearing of landmark 1 (rad)", "range of landmark 2 (m)"],
    "linear_gaussian": ["position with noise"],
    "lorenz63": ["x with noise", "y with noise", "z with noise"],
    "mirror_ranges": ["range from sensor 1", "range from sensor 2"],
    "plaza": ["beacon that answered", "range (m)"],
    "reentry": ["range (km)", "bearing (rad)"],
    "sharp_range": ["range"],
    "stochastic_volatility": ["return"],
    "uav": ["range (m)", "azimuth (rad)", "elevation (rad)"],
    "ungm": ["x\u00b2 / 20 with noise"],
}


def scenario(name: str) -> Figure:
    """Draw one run of a scenario: the truth, the estimate of a filter without random numbers, and what it was shown."""
    shown = load_scenario(name)
    if shown.model["type"] == "WithClutter" or (shown.data or {}).get("type") == "autoferry":
        return over_detections(shown)
    who = next(known for known in ("augmented-kh", "mixture-chg", *shown.filters) if known in shown.filters)
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
    estimate = {"color": styles([who])[who].color, "linewidth": 1.2, "label": f"{who}, {key[1]} particles"}
    if in_plane:
        dims = list(shown.plane)
        ax.set(
            **dict(zip(("xlabel", "ylabel"), (dimension_label(shown.labels, i) for i in dims), strict=True))
        )
        plot_track(recording.truth, None, ax, dims, **truth)
        plot_track(result.means, None, ax, dims, **estimate)
        places = sensors(model)
        if places is not None:
            mark_sensors(ax, *places)
        mark_ends(ax, recording.truth[:, dims])
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
    who = next(known for known in ("auto-kh", *shown.filters) if known in shown.filters)
    result = run_study(plan_study(shown, who, max(shown.particles), 1))
    return trajectory(result)


def main(names: list[str]) -> None:
    """Draw the figures named, all unless any is."""
    known = {"samplers": samplers, "filters": filters, "random_models": random_models} | {
        f"paper_{name}": partial(paper, name) for name in FIGURES
    }
    known |= {f"scenario_{name}": partial(scenario, name) for name in scenario_files()}
    IMAGES.mkdir(exist_ok=True)
    with mpl.rc_context(LOOK):
        for name in names or known:
            path = IMAGES / f"{name}.png"
            known[name]().savefig(path, dpi=140)
            if name.startswith(("paper", "scenario")):
                # many anti-aliased lines: a palette makes them a third as large
                Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)
            print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
