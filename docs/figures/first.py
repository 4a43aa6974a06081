"""The figure of the first screen: three filters of a model with two modes, two of which take as long for a step."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

import herdfilter as hf
from herdfilter.plotting import styles

from .look import FAINT, INK, QUIET

STEPS = 60
SERIES = 1
REFERENCE = 400_000
RUNS = 10
# On the machines of the results files `bootstrap` and `auto` take the same time with these numbers of particles.
PARTICLES = {"bootstrap": 3200, "auto": 500}


def squares() -> hf.models.FunctionModel:
    """Return two coupled states of which only the squares are seen, so that there are several modes."""
    return hf.models.from_functions(
        f=lambda x: 0.8 * x + 1.5 * np.sin(x[:, ::-1]),
        h=lambda x: x**2 / 2,
        Q=0.5 * np.eye(2),
        R=0.5 * np.eye(2),
        initial_mean=[0.5, 1.0],
        initial_covariance=np.eye(2),
    )


def equal_time() -> Figure:
    """Draw the distances from the posterior mean of a Kalman filter, of ten random filters, and of one without chance."""
    model = squares()
    _, z = hf.simulate(model, STEPS, rng=SERIES)
    reference = hf.make_filter("bootstrap", model, REFERENCE, rng=0).run(z)
    sd = np.sqrt(np.diagonal(reference.covariances, axis1=1, axis2=2))

    def distances(name: str, seed: int = 0) -> np.ndarray:
        means = hf.make_filter(name, model, PARTICLES.get(name, 1), rng=seed).run(z).means
        return np.sqrt(np.mean(((means - reference.means) / sd) ** 2, axis=1))

    panels = {
        "ukf": ("ukf, a third of the time", [distances("ukf")]),
        "bootstrap": (
            f"bootstrap, {PARTICLES['bootstrap']:,} particles, ten runs",
            [distances("bootstrap", seed) for seed in range(1, RUNS + 1)],
        ),
        "auto": (f"auto, {PARTICLES['auto']} particles, every run", [distances("auto")]),
    }
    looks = styles(list(panels))
    # One below the other and narrow, so that a phone shows all of it with letters of ten pixels.
    figure = Figure(figsize=(4.6, 4.2))
    axes = figure.subplots(3, 1, sharex=True, sharey=True)
    for ax, (name, (title, runs)) in zip(axes, panels.items(), strict=True):
        several = len(runs) > 1
        color = looks[name].color
        for values in runs:
            ax.plot(
                range(1, STEPS + 1),
                values,
                color=color,
                linewidth=0.7 if several else 1.8,
                alpha=0.75 if several else 1,
            )
        ax.set_title(title, color=color, fontweight="bold", fontsize=10, loc="left")
        text = f"root mean square {np.sqrt(np.mean(np.square(runs))):.2g}"
        ax.text(0.02, 0.98, text, ha="left", va="top", transform=ax.transAxes, color=INK)
        ax.set(xlim=(0, STEPS), ylim=(0, 1.5), yticks=[0, 0.5, 1])
        ax.grid(axis="y", color=FAINT, linewidth=0.7)
        ax.set_axisbelow(True)
    axes[-1].set_xlabel("step")
    figure.supylabel("distance from the posterior mean (sd)", color=QUIET, fontsize=10)
    return figure
