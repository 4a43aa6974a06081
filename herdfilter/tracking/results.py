"""Results of trackers: the record of one update, and the result of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from herdfilter._checks import Array, as_list
from herdfilter._repr import fields_in_line, summary_repr
from herdfilter.models.series import as_objects
from herdfilter.tracking.track import Label

if TYPE_CHECKING:
    import pandas as pd


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

    Examples
    --------
    >>> walk = hf.models.ConstantVelocity(0.01, 0.5, initial_mean=[0, 1], initial_covariance=np.eye(2))
    >>> model = hf.models.WithClutter(walk, detection_probability=0.9, clutter_density=0.01)
    >>> tracker = hf.tracking.LMBTracker(model, filter="ukf", initial=[hf.tracking.Birth(0.9, walk.initial)])
    >>> tracker.predict()
    >>> record = tracker.update([[1.2], [-20.0]])  # the second detection is a false alarm
    >>> record.labels, record.means.shape, record.covariances.shape, record.existence.round(2).tolist()
    ([(0, 0)], (1, 2), (1, 2, 2), [0.99])
    """

    step: int
    labels: list[Label]
    means: Array
    covariances: Array
    existence: Array
    cardinality: float

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

    @classmethod
    def collect(cls, records: Sequence[TrackingRecord], times: Sequence[Any], dim: int) -> TrackingResult:
        """Stack records, with the times of the first steps."""
        return cls(
            labels=[r.labels for r in records],
            means=[r.means for r in records],
            covariances=[r.covariances for r in records],
            existence=[r.existence for r in records],
            cardinality=np.array([r.cardinality for r in records]),
            steps=np.array([r.step for r in records], dtype=int),
            times=as_objects(times[: len(records)]),
            dim=dim,
        )

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return summary_repr(self, steps=len(self), dim=self.dim, tracks=len(self.names()))

    def names(self) -> list[Label]:
        """Return the labels of all reported tracks, in the order of their births."""
        return sorted({label for labels in self.labels for label in labels})

    def trajectories(self) -> dict[Label, Array]:
        """Return the means of each track, label -> (T, d), with NaN at scans that do not report it."""
        paths = {label: np.full((len(self), self.dim), np.nan) for label in self.names()}
        for k, (labels, means) in enumerate(zip(self.labels, self.means, strict=True)):
            for label, mean in zip(labels, means, strict=True):
                paths[label][k] = mean
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
            With the columns ``step``, ``time``, ``birth`` and ``number`` (the label), ``existence``, and ``x0_mean`` and
            ``x0_sd`` for every dimension.
        """
        import pandas as pd

        names = as_list("names", names, f"{self.dim} texts") or [f"x{i}" for i in range(self.dim)]
        if len(names) != self.dim:
            raise ValueError(f"names: expected one per dimension, {self.dim}, got {len(names)}")
        counts = [len(labels) for labels in self.labels]
        flat = [label for labels in self.labels for label in labels]
        table: dict[str, Any] = {
            "step": np.repeat(self.steps, counts),
            "time": np.repeat(self.times, counts),
            "birth": [label[0] for label in flat],
            "number": [label[1] for label in flat],
            "existence": np.concatenate([np.empty(0), *self.existence]),
        }
        means = np.concatenate([np.empty((0, self.dim)), *self.means])
        covariances = np.concatenate([np.empty((0, self.dim, self.dim)), *self.covariances])
        for i, name in enumerate(names):
            table[f"{name}_mean"], table[f"{name}_sd"] = means[:, i], np.sqrt(covariances[:, i, i])
        return pd.DataFrame(table)
