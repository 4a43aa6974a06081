"""Standardised innovations of a filter whose noise is a guess, and after the noise was fitted."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from noises import CASES

import herdfilter as hf
from herdfilter.plotting import STYLES

from .look import FAINT, GREY, INK, QUIET

WRONG = (0.1, 0.3)
"""Factors by which the guess is wrong: too sure of itself."""


def standardised(model: object, z: np.ndarray) -> np.ndarray:
    """Return what the observations (T, k) have beyond their predictions, of variance 1 if the model is right."""
    pf = hf.make_filter("auto", model, n_particles=500)
    rows = []
    for reading in z:
        pf.predict()
        mean, covariance = pf.predicted_observation()
        rows.append(np.linalg.solve(np.linalg.cholesky(covariance), reading - mean))
        pf.update(reading)
    return np.array(rows)


def innovations() -> Figure:
    """Draw the standardised innovations of a target's range and bearing by time, before and after."""
    build, steps, _ = CASES["range and bearing"]
    z = hf.simulate(build(1.0, 1.0), steps, rng=4)[1]
    guess = build(*WRONG)
    fit = hf.fit_noise(guess, z)
    figure = Figure(figsize=(9.6, 3.1))
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    for ax, model, title in zip(axes, (guess, fit.model), ("as guessed", "fitted"), strict=True):
        values = standardised(model, z)
        inside = np.mean(np.abs(values) < 1.96)
        ax.axhspan(-1.96, 1.96, color=FAINT, linewidth=0)
        ax.plot(1 + np.arange(steps), values, ".", color=STYLES["auto"].color, markersize=5)
        ax.axhline(0, color=GREY, linewidth=0.8)
        ax.set_title(title, color=INK, fontweight="bold", fontsize=11)
        text = f"variance {np.mean(values**2):.2g}; {100 * inside:.0f} % in the band"
        ax.text(0.97, 0.96, text, ha="right", va="top", transform=ax.transAxes, color=INK)
        ax.set(xlabel="step", xlim=(0, steps + 1))
    axes[0].set_ylabel("standardised innovation", color=QUIET)
    return figure
