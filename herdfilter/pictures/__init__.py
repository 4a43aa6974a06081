"""Points, mixtures, ellipses and paths drawn into axes of matplotlib, from plain arrays.

Every function takes axes and returns them. Without axes it makes a figure of pyplot, which a notebook shows.
"""

from __future__ import annotations

from herdfilter.pictures.plane import plot_ellipse, plot_mixture, plot_points
from herdfilter.pictures.tracks import plot_state_over_time, plot_track

__all__ = ["plot_ellipse", "plot_mixture", "plot_points", "plot_state_over_time", "plot_track"]
