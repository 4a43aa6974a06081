"""Results as a table and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import as_list, short_repr

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


class Views:
    """What every result offers that has ``means`` (T, d) and ``covariances`` (T, d, d)."""

    __slots__ = ()

    def to_dataframe(self, labels: Sequence[str] = ()) -> pd.DataFrame:
        """Return a table of one row per step.

        Parameters
        ----------
        labels : sequence of str, length d
            Names of the dimensions of the state; ``x0``, ``x1`` and so on unless given.

        Returns
        -------
        pandas.DataFrame
            With the columns ``step``, ``time`` where it is known, ``x0_mean`` and ``x0_sd`` for every dimension, and where
            the result has them ``ess``, ``resampled``, ``log_likelihood`` (the increment) and ``outcome`` (a word).

        Raises
        ------
        ValueError
            If the number of labels is not that of the dimensions.
        """
        import pandas as pd

        result: Any = self
        means, covariances = result.means, result.covariances
        names = _names(labels, means.shape[1])
        steps, times = getattr(self, "steps", None), getattr(self, "times", None)
        columns: dict[str, Any] = {"step": np.arange(1, len(means) + 1) if steps is None else steps}
        if times is not None:
            columns["time"] = times
        for i, name in enumerate(names):
            columns[f"{name}_mean"] = means[:, i]
            columns[f"{name}_sd"] = np.sqrt(np.maximum(covariances[:, i, i], 0.0))
        for name, attribute in _FURTHER.items():
            if hasattr(self, attribute):
                columns[name] = getattr(self, attribute)
        if hasattr(self, "outcomes"):
            columns["outcome"] = [outcome.value for outcome in result.outcomes]
        return pd.DataFrame(columns)

    def plot(
        self,
        ax: Axes | None = None,
        dims: int | Sequence[int] = (0, 1),
        truth: ArrayLike | None = None,
        ellipses: float | None = 0.95,
        labels: Sequence[str] = (),
        circular: Sequence[int] | None = None,
    ) -> Axes:
        """Draw the means as a path in the plane with ellipses, or one dimension over time with a band.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; without it, in a figure of pyplot.
        dims : int or (int, int)
            Two dimensions for a path, one for a line over time; a state of one dimension is drawn over time.
        truth : array_like, shape (T, d) or (T, len(dims)), optional
            The true states.
        ellipses : float, optional
            Probability inside the ellipses and the band, each of a Gaussian; None for none.
        labels : sequence of str, length d
            Names of the dimensions, for the axes.
        circular : sequence of int, optional
            Dimensions that are angles, those that the result knows of unless given: a line is broken where one wraps.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ValueError
            If a dimension does not exist, a shape does not fit, or `ellipses` is no probability.
        """
        from herdfilter.pictures.axes import as_mass, axes_or_new, check_dims, name_axes, text_colour
        from herdfilter.pictures.tracks import check_truth, plot_state_over_time, plot_track

        result: Any = self
        dim = result.means.shape[1]
        drawn, names = check_dims(dims, dim), _names(labels, dim)
        if ellipses is not None:
            as_mass("ellipses", ellipses)
        angles = tuple(getattr(self, "circular", ()) if circular is None else circular)
        actual = None if truth is None else check_truth(truth, drawn, dim)
        ax = axes_or_new(ax)
        if len(drawn) == 1:
            if not ax.get_ylabel():
                ax.set_ylabel(names[drawn[0]])
            return plot_state_over_time(self, drawn[0], ax, None if actual is None else actual[:, 0], ellipses, angles)
        name_axes(ax, *(names[i] for i in drawn))
        if actual is not None:
            turned = [k for k, i in enumerate(drawn) if i in angles]
            plot_track(actual, None, ax, circular=turned, color=text_colour(), linewidth=1, label="truth")
        around = {} if ellipses is None else {"covariances": result.covariances, "mass": ellipses}
        return plot_track(result.means, ax=ax, dims=drawn, circular=angles, label="estimate", **around)


_FURTHER = {"ess": "ess", "resampled": "resampled", "log_likelihood": "log_likelihoods"}
"""Column -> what is of one number per step."""


def _names(labels: Sequence[str], dim: int) -> list[str]:
    """Names of the dimensions."""
    labels = as_list("labels", labels, f"{dim} names")
    if not labels:
        return [f"x{i}" for i in range(dim)]
    if len(labels) != dim or not all(isinstance(name, str) for name in labels):
        raise ValueError(f"labels: expected {dim} names of dimensions, got {short_repr(labels)}")
    return list(labels)
