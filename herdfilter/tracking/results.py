"""Results of trackers: the record of one update, and the result of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array, as_array, as_list
from herdfilter._repr import fields_in_line, html_repr, summary_repr
from herdfilter.models.contract import circular_dims
from herdfilter.models.series import as_objects
from herdfilter.tracking.status import DetectionHistory
from herdfilter.tracking.track import Label

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


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
    labels: list[Label]
    means: Array
    covariances: Array
    existence: Array
    cardinality: float
    history: list[DetectionHistory]

    __repr__ = fields_in_line


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

    labels: list[list[Label]]
    means: list[Array]
    covariances: list[Array]
    existence: list[Array]
    cardinality: Array
    steps: np.ndarray
    times: np.ndarray
    dim: int
    history: list[list[DetectionHistory]]
    circular: tuple[int, ...] = ()
    position_dims: tuple[int, ...] = ()

    _repr_html_ = html_repr

    @classmethod
    def collect(cls, records: Sequence[TrackingRecord], model: Any, kept: Any, times: Sequence[Any]) -> TrackingResult:
        """Stack records of a tracker's model, with the times of the first steps; no particles are kept."""
        names = "labels", "means", "covariances", "existence", "history"
        lists: dict[str, Any] = {name: [getattr(record, name) for record in records] for name in names}
        steps = np.array([record.step for record in records], dtype=int)
        cardinality = np.array([record.cardinality for record in records])
        lists |= {"circular": circular_dims(model), "position_dims": tuple(getattr(model, "position_dims", ()))}
        return cls(cardinality=cardinality, steps=steps, times=as_objects(times[: len(records)]), dim=model.dim, **lists)

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return summary_repr(self, steps=len(self), dim=self.dim, tracks=len(self.names()))

    def names(self) -> list[Label]:
        """Return the labels of all reported tracks, in the order of their births."""
        return sorted({label for labels in self.labels for label in labels})

    def trajectories(self) -> dict[Label, Array]:
        """Return the means of each track, label -> (T, d), with NaN at scans that do not report it."""
        return self._of_each_track(self.means, (self.dim,))

    def _of_each_track(self, values: Sequence[Any], shape: tuple[int, ...]) -> dict[Label, Array]:
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
        flat = [label for labels in self.labels for label in labels]
        history = [one for histories in self.history for one in histories]
        table: dict[str, Any] = {
            "step": np.repeat(self.steps, counts),
            "time": np.repeat(self.times, counts),
            "track_id": ["-".join(map(str, label)) for label in flat],
            "birth": [label[0] for label in flat],
            "number": [label[1] for label in flat],
            "existence": np.concatenate([np.empty(0), *self.existence]),
            "status": [one.status for one in history],
            "detections": [one.detections for one in history],
            "time_since_detection": [one.time_since_detection for one in history],
        }
        means = np.concatenate([np.empty((0, self.dim)), *self.means])
        covariances = np.concatenate([np.empty((0, self.dim, self.dim)), *self.covariances])
        for i, name in enumerate(names):
            table[f"{name}_mean"], table[f"{name}_sd"] = means[:, i], np.sqrt(covariances[:, i, i])
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
        table: pd.DataFrame = self.to_dataframe().groupby(["birth", "number"]).agg(track_id=("track_id", "first"), **columns)
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
        from herdfilter.pictures.axes import axes_or_new, name_axes, panels, text_colour
        from herdfilter.pictures.tracks import plot_state_over_time, plot_times, plot_track

        places, names = panels(ax, dims, self.dim, self.position_dims), self._dimension_names(names)
        truth = np.empty((len(self), 0, self.dim)) if truth is None else truth
        actual = as_array("truth", truth, (len(self), None, self.dim), finite=False)
        angles, mass = tuple(self.circular if circular is None else circular), 0.95 if ellipses is None else ellipses
        axes, (times, time_label) = [axes_or_new(one) for one, _ in places], plot_times(self, len(self))
        paths: list[Any] = []
        for x in actual.swapaxes(0, 1):
            paths.append((x, None, [], {"color": text_colour(), "linewidth": 1, "label": None if paths else "truth"}))
        coasts = self._of_each_track([[one.status == "coasting" for one in histories] for histories in self.history], ())
        spreads = self._of_each_track(self.covariances, (self.dim, self.dim))
        for label, x in self.trajectories().items():
            spread = None if ellipses is None else spreads[label]
            paths.append((x, spread, coasts[label] == 1, {"label": f"track {label}"}))
        for one, (_, drawn) in zip(axes, places, strict=True):
            name_axes(one, *(time_label, names[drawn[0]]) if len(drawn) == 1 else [names[i] for i in drawn])
            for x, spread, coasting, style in paths:
                there = np.flatnonzero(np.isfinite(x[:, drawn[0]])).tolist() or [0]
                at = slice(there[0], there[-1] + 1)
                part = SimpleNamespace(means=x[at], covariances=None if spread is None else spread[at], times=self.times[at])
                if len(drawn) == 2:
                    plot_track(part.means, part.covariances, one, drawn, mass, circular=angles, **style)
                else:
                    plot_state_over_time(part, drawn[0], one, None, mass, angles, **style)
                rings = [*([times[coasting]] if len(drawn) == 1 else []), *x[coasting][:, drawn].T]
                one.plot(*rings, "o", color=one.lines[-1].get_color(), markerfacecolor="none", markersize=5)
        for one in axes[:-1]:
            one.set_xlabel("")
        return np.array(axes) if len(axes) > 1 else axes[0]

    def _dimension_names(self, names: Sequence[str]) -> list[str]:
        names = as_list("names", names, f"{self.dim} texts") or [f"x{i}" for i in range(self.dim)]
        if len(names) != self.dim:
            raise ValueError(f"names: expected one per dimension, {self.dim}, got {len(names)}")
        return names
