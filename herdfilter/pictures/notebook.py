"""The small picture of an object that a notebook shows."""

from __future__ import annotations

import copy
import io
from base64 import b64encode
from typing import Any

import numpy as np

from herdfilter.mixture import GaussianMixture
from herdfilter.pictures.plane import plot_mixture, plot_points

# Pixels of a page; the image has twice as many, for high-resolution screens.
WIDTH = 300
# Largest number of points drawn; of more points, every second, or third, and so on is drawn.
MOST_DOTS = 500
# Largest number of components whose contours are drawn; others take too long and are sampled.
MOST_CONTOURED = 20


def picture(thing: Any) -> str:
    """Return the picture of a result, mixture, points or filter as an element of HTML; the object does not change."""
    from matplotlib import figure, rc_context

    if hasattr(thing, "predict"):
        # Reading the particles of a filter may draw them, so a copy is read.
        thing = copy.deepcopy(thing)
    with rc_context({"font.size": 7}):
        # A figure of pyplot would stay open.
        new = figure.Figure(figsize=(3.0, 2.2), layout="constrained")
        ax = new.subplots()
        if hasattr(thing, "plot"):
            thing.plot(ax)
        elif (x := getattr(thing, "particles", getattr(thing, "x", None))) is not None:
            every = -(-len(x) // MOST_DOTS)
            weights = getattr(thing, "weights", np.ones(len(x)))[::every]
            plot_points(x[::every], ax, weights=weights / weights.sum())
        else:
            if not isinstance(thing, GaussianMixture):  # a Kalman filter
                thing = GaussianMixture([1.0], [thing.mean], [thing.covariance])
            if len(thing) > MOST_CONTOURED and thing.dim > 1:
                plot_points(thing.sample(MOST_DOTS, 0), ax)
            else:
                plot_mixture(thing, ax)
        file = io.BytesIO()
        new.savefig(file, format="png", dpi=2 * WIDTH / 3)
    return f'<img width="{WIDTH}" alt="" src="data:image/png;base64,{b64encode(file.getvalue()).decode()}">'
