"""Results of trackers: the record of one update, and the result of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter import _checks, _repr
from herdfilter._checks import Array
from herdfilter.models.contract import circular_dims
from herdfilter.models.series import as_objects
from herdfilter.tracking import track

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


HISTORY_COLUMNS = ("status", "detections", "time_since_detection")
# Fields of a result with an entry for each scan.
LISTS = ("labels", "means", "covariances", "existence", "history")


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class TrackingRecord:
    """One update of a tracker.

    Attributes
    ----------
    step : int
        Time index, from 1.
    labels : list of tuple, length m
        Labels of the m reported tracks, in the order of their births.
    means, covariances : ndarray, shapes (m, d) and (m, d, d)
        Moments of their states.
    existence : ndarray, shape (m,)
        Their probabilities of existence.
    cardinality : float
        Expected number of targets: the sum of the probabilities of all tracks, reported or not.
    history : list of DetectionHistory, length m
        Their detections, and from them their status.

    Examples
    --------
    >>> walk = hf.models.ConstantVelocity(0.01, 0.5, initial_mean=[0, 1], initial_covariance=np.eye(2))
    >>> model = hf.models.WithClutter(walk, detection_probability=0.9, clutter_density=0.01)
    >>> tracker = hf.tracking.LMBTracker(model, filter="ukf", initial=[hf.tracking.Birth(0.9, walk.initial)])
    >>> tracker.predict()
    >>> record = tracker.update([[1.2], [-20.0]])  # the second detection is a false alarm
    >>> record.labels, record.means.shape, record.covariances.shape, record.existence.round(2).tolist()
    ([(0, 0)], (1, 2), (1, 2, 2), [0.99])
    >>> record.history[0].status
    'tentative'
    """

    step: int
    labels: list[track.Label]
    means: Array
    covariances: Array
    existence: Array
    cardinality: float
    history: list[track.DetectionHistory]

    __repr__ = _repr.fields_in_line


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class TrackingResult:
    """Results of a run over T scans; each list has an entry for each scan, as in `TrackingRecord`.

    Attributes
    ----------
    labels : list of list of tuple
    means, covariances, existence : list of ndarray
    cardinality : ndarray, shape (T,)
        Expected number of targets.
    steps : ndarray of int, shape (T,)
        Time index of each scan; scans of the same time share one.
    times : ndarray, shape (T,)
        Time of each scan, as it was given: numbers, durations or dates; sums of `dt` if that was given.
    dim : int
        Dimension d of a state.
    history : list of list of DetectionHistory
    circular, position_dims : tuple of int
        Indices of the angle-valued dimensions, and of those that the model calls positions.

    Examples
    --------
    >>> walk = hf.models.ConstantVelocity(0.01, 0.5, initial_mean=[0, 1], initial_covariance=np.eye(2))
    >>> model = hf.models.WithClutter(walk, detection_probability=0.9, clutter_density=0.01)
    >>> tracker = hf.tracking.LMBTracker(model, filter="ukf", initial=[hf.tracking.Birth(0.9, walk.initial)])
    >>> result = tracker.run([[[1.2]], [], [[2.9], [-20.0]]])
    >>> result.names(), result.cardinality.round(2).tolist(), result.trajectories()[0, 0][:, 0].round(1).tolist()
    ([(0, 0)], [0.99, 0.87, 0.99], [1.2, 2.3, 2.9])
    """

    labels: list[list[track.Label]]
    means: list[Array]
    covariances: list[Array]
    existence: list[Array]
    cardinality: Array
    steps: np.ndarray
    times: np.ndarray
    dim: int
    history: list[list[track.DetectionHistory]]
    circular: tuple[int, ...] = ()
    position_dims: tuple[int, ...] = ()

    _repr_html_ = _repr.html_repr

    @classmethod
    def collect(
        cls, records: Sequence[TrackingRecord], model: Any, kept: Any, times: Sequence[Any]
    ) -> TrackingResult:
        """Stack records of a tracker's model, with the times of the first steps; no particles are kept."""
        return cls(
            **{name: [getattr(record, name) for record in records] for name in LISTS},
            cardinality=np.array([record.cardinality for record in records]),
            steps=np.array([record.step for record in records], dtype=int),
            times=as_objects(times[: len(records)]),
            dim=model.dim,
            circular=circular_dims(model),
            position_dims=tuple(getattr(model, "position_dims", ())),
        )

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return _repr.summary_repr(self, steps=len(self), dim=self.dim, tracks=len(self.names()))

    def names(self) -> list[track.Label]:
        """Return the labels of all reported tracks, in the order of their births."""
        return sorted({*chain.from_iterable(self.labels)})

    def trajectories(self) -> dict[track.Label, Array]:
        """Return the means of each track, label -> (T, d), with NaN at scans that do not report it."""
        return self._of_each_track(self.means, (self.dim,))

    def _of_each_track(
        self, values: Sequence[Any], shape: tuple[int, ...]
    ) -> dict[track.Label, Array]:
        """Return label -> (T, *shape), NaN at scans that do not report the track, from the values of each scan."""
        paths = {label: np.full((len(self), *shape), np.nan) for label in self.names()}
        for k, (labels, rows) in enumerate(zip(self.labels, values, strict=True)):
            for label, row in zip(labels, rows, strict=True):
                paths[label][k] = row
        return paths

    def to_dataframe(self, names: Sequence[str] = ()) -> pd.DataFrame:
        """Return a table with one row for each track reported at each scan.

        Parameters
        ----------
        names : sequence of str, length d
            Names of the state's dimensions, else ValueError; ``x0``, ``x1`` and so on unless given.

        Returns
        -------
        pandas.DataFrame
            With the columns ``step``, ``time``, ``track_id`` (a text, the label as "birth-number"), ``birth``, ``number``,
            ``existence``, ``status``, ``detections``, ``time_since_detection``, and ``x0_mean`` and ``x0_sd`` for every
            dimension.
        """
        import pandas as pd

        names = self._dimension_names(names)
        counts = [len(labels) for labels in self.labels]
        labels = list(chain.from_iterable(self.labels))
        history = list(chain.from_iterable(self.history))
        table: dict[str, Any] = {
            "step": np.repeat(self.steps, counts),
            "time": np.repeat(self.times, counts),
            "track_id": ["-".join(map(str, label)) for label in labels],
            "birth": [birth for birth, _ in labels],
            "number": [number for _, number in labels],
            "existence": np.concatenate([np.empty(0), *self.existence]),
            **{name: [getattr(entry, name) for entry in history] for name in HISTORY_COLUMNS},
        }
        # The empty array gives the shape if no scan reports a track.
        means = np.concatenate([np.empty((0, self.dim)), *self.means])
        covariances = np.concatenate([np.empty((0, self.dim, self.dim)), *self.covariances])
        for i, name in enumerate(names):
            table[f"{name}_mean"] = means[:, i]
            table[f"{name}_sd"] = np.sqrt(covariances[:, i, i])
        return pd.DataFrame(table)

    def summary(self) -> pd.DataFrame:
        """Return a table with one row for each reported track.

        Returns
        -------
        pandas.DataFrame
            With ``track_id``, ``birth`` and ``number`` as in `to_dataframe`; the times of its ``first`` and ``last`` report,
            and the number of ``scans`` that report it; ``detections``, ``existence`` and ``status`` at the last.
        """
        columns = {"first": ("time", "first"), "last": ("time", "last"), "scans": ("time", "size")}
        columns |= {name: (name, "last") for name in ("detections", "existence", "status")}
        # Rows come in the order of the scans: "first" and "last" are those of each track.
        table: pd.DataFrame = (
            self.to_dataframe()
            .groupby(["birth", "number"])
            .agg(track_id=("track_id", "first"), **columns)
        )
        return table.reset_index()[["track_id", "birth", "number", *columns]]

    def plot(
        self,
        ax: Axes | Sequence[Axes] | None = None,
        dims: int | Sequence[int] | None = None,
        truth: ArrayLike | None = None,
        ellipses: float | None = 0.95,
        names: Sequence[str] = (),
        circular: Sequence[int] | None = None,
    ) -> Any:
        """Draw every reported track in a colour of its own: a path in the plane with ellipses, or over time with a band.

        Rings mark scans at which a track coasts. A line is broken where the track is not reported. Return the axes, an array
        of them if there are several panels; ValueError as from `FilterResult.plot`.

        Parameters
        ----------
        ax, dims, ellipses, circular
            As in `FilterResult.plot`.
        truth : array_like, shape (T, targets, d), optional
            The true states; NaN where a target is absent.
        names : sequence of str, length d
            Names of the dimensions, for the axes.
        """
        from herdfilter.pictures import axes as figure
        from herdfilter.pictures import tracks

        panes = figure.panels(ax, dims, self.dim, self.position_dims)
        names = self._dimension_names(names)
        truth = np.empty((len(self), 0, self.dim)) if truth is None else truth
        actual = _checks.as_array("truth", truth, (len(self), None, self.dim), finite=False)
        angles = tuple(self.circular if circular is None else circular)
        mass = 0.95 if ellipses is None else ellipses
        times, time_label = tracks.plot_times(self, len(self))
        # Of each path: states, covariances, the scans with a ring, and its style.
        paths: list[tuple[Array, Any, Any, dict[str, Any]]] = []
        for k, x in enumerate(actual.swapaxes(0, 1)):
            label = None if k else "truth"
            paths.append(
                (x, None, [], {"color": figure.text_colour(), "linewidth": 1, "label": label})
            )
        # NaN where a track is not reported, so that comparison with 1 gives the scans at which it coasts.
        coasts = self._of_each_track(
            [[entry.status == "coasting" for entry in scan] for scan in self.history], ()
        )
        spreads = self._of_each_track(self.covariances, (self.dim, self.dim))
        for name, x in self.trajectories().items():
            spread = None if ellipses is None else spreads[name]
            paths.append((x, spread, coasts[name] == 1, {"label": f"track {name}"}))
        axes = []
        for pane_or_none, pane_dims in panes:
            pane = figure.axes_or_new(pane_or_none)
            over_time = len(pane_dims) == 1
            figure.name_axes(pane, *[time_label] * over_time, *(names[i] for i in pane_dims))
            for x, spread, coasting, style in paths:
                # Only from the first to the last scan that reports the track; in between NaN breaks the line.
                present = np.flatnonzero(np.isfinite(x[:, pane_dims[0]])).tolist() or [0]
                rows = slice(present[0], present[-1] + 1)
                covariances = None if spread is None else spread[rows]
                if over_time:
                    part = SimpleNamespace(
                        means=x[rows], covariances=covariances, times=self.times[rows]
                    )
                    tracks.plot_state_over_time(
                        part, pane_dims[0], pane, None, mass, angles, **style
                    )
                else:
                    tracks.plot_track(
                        x[rows], covariances, pane, pane_dims, mass, circular=angles, **style
                    )
                rings = [*[times[coasting]] * over_time, *x[coasting][:, pane_dims].T]
                colour = pane.lines[-1].get_color()
                pane.plot(*rings, "o", color=colour, markerfacecolor="none", markersize=5)
            axes.append(pane)
        # Of several panels over time only the last names the axis.
        for pane in axes[:-1]:
            pane.set_xlabel("")
        return np.array(axes) if len(axes) > 1 else axes[0]

    def _dimension_names(self, names: Sequence[str]) -> list[str]:
        names = _checks.as_list("names", names, f"{self.dim} texts") or [
            f"x{i}" for i in range(self.dim)
        ]
        if len(names) != self.dim:
            raise ValueError(f"names: expected one per dimension, {self.dim}, got {len(names)}")
        return names
