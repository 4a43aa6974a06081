"""The small picture of an object that a notebook shows."""

from __future__ import annotations

import copy
import io
from base64 import b64encode
from typing import Any

from herdfilter.mixture import GaussianMixture
from herdfilter.pictures.plane import plot_mixture, plot_points

WIDTH = 300  # pixels of a page; the image has twice as many, for screens of small pixels
MOST_DOTS = 500  # largest number of points drawn: of more, every second or third and so on
MOST_CONTOURED = 20  # most components of a mixture whose contours are quick; of more, points are drawn from it


def picture(thing: Any) -> str:
    """Return the picture of a result, mixture, points or filter as an element of HTML; the object stays as it is."""
    from matplotlib import figure, rc_context

    if hasattr(thing, "predict"):  # a filter draws particles when it is asked for them: here a copy does
        thing = copy.deepcopy(thing)
    with rc_context({"font.size": 7}):
        new = figure.Figure(figsize=(3.0, 2.2), layout="constrained")  # none of pyplot, which would stay open
        ax, weights = new.subplots(), getattr(thing, "weights", None)
        if hasattr(thing, "plot"):
            thing.plot(ax)
        elif (x := getattr(thing, "particles", getattr(thing, "x", None))) is not None:
            some = slice(None, None, -(-len(x) // MOST_DOTS))
            plot_points(x[some], ax, weights=None if weights is None else weights[some] / weights[some].sum())
        else:
            mixture = thing if weights is not None else GaussianMixture([1.0], [thing.mean], [thing.covariance])
            if len(mixture) > MOST_CONTOURED and mixture.dim > 1:
                plot_points(mixture.sample(MOST_DOTS, 0), ax)
            else:
                plot_mixture(mixture, ax)
        file = io.BytesIO()
        new.savefig(file, format="png", dpi=2 * WIDTH / 3)
    return f'<img width="{WIDTH}" alt="" src="data:image/png;base64,{b64encode(file.getvalue()).decode()}">'
