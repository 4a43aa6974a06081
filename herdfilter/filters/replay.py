"""Readings that arrive late: the filter is set back to the state before them, and later readings are used again."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from herdfilter import _checks
from herdfilter._repr import summary_repr
from herdfilter.filters.results import StepRecord
from herdfilter.filters.saved import FilterState
from herdfilter.models import series
from herdfilter.models.sensors import Sensor


class Replay:
    """A filter or a tracker that takes readings one by one as they arrive, and puts late ones in their places.

    The state of the filter before every reading is kept, that of its random generator included. A late reading sets the
    filter back, and the readings after it are used again. The result is, bit by bit, as if all readings had arrived in the
    order of their times.

    Parameters
    ----------
    filter : ParticleFilter, Kalman filter or LMBTracker
        Its present state is that at `start`. You may read its estimates at any time, but do not call its `predict` and
        `update`.
    lag : float or timedelta
        How much older than the latest reading a reading may be; in seconds with durations and dates.
    start : float or date, optional
        Time of the filter's present state, by default ``filter.time``; needed where readings have dates.

    Examples
    --------
    The reading of time 2 arrives after that of time 3.

    >>> tracker = hf.Replay(hf.make_filter("auto", hf.models.UNGM(), n_particles=20), lag=5.0)
    >>> for time, z in [(1, [0.2]), (3, [1.5]), (2, [4.0])]:
    ...     record = tracker.update(time, z)
    ...
    >>> record.step, tracker.filter.step
    (3, 3)
    >>> in_order = hf.make_filter("auto", hf.models.UNGM(), n_particles=20).run([[0.2], [4.0], [1.5]])
    >>> np.array_equal(in_order.means[-1], record.mean)
    True
    """

    def __init__(self, filter: Any, lag: Any, start: Any = None) -> None:  # noqa: A002
        _checks.check_methods("filter", filter, "predict", "update")
        self.filter = filter
        self.start = start
        self.lag = float(series.Clock().elapsed([lag], "lag")[0])
        if not self.lag >= 0:
            raise ValueError(
                f"lag: expected a duration of at least 0, got {_checks.short_repr(lag)}"
            )
        self._recent: list[_Reading] = []  # in the order of their times, back to the lag
        if start is not None:
            filter._clock = series.Clock.at(start)
        elif not isinstance(filter, series.Timed):  # a user's own, which gets a clock
            filter._clock = series.Clock()
        self._first = filter._clock

    def __repr__(self) -> str:
        return summary_repr(self, filter=self.filter, lag=self.lag, start=self.start)

    def update(
        self,
        time: Any,
        z: ArrayLike | None,
        sensor: Sensor | None = None,
        control: Any = None,
        gate: float | None = None,
    ) -> StepRecord | Any:
        """Use a reading; return the record of the latest one, which may be another.

        Parameters
        ----------
        time : float or date
            Of the reading.
        z, sensor
            As the filter's ``update`` takes them.
        control
            Control input on the way to it from the reading before.
        gate
            As the filter's ``update`` takes it; not for a tracker.

        Raises
        ------
        ValueError
            If the time is before `start`, or older than the lag allows.
        Exception
            Whatever the filter raises; the filter is then as before, and the reading is not kept.
        """
        if gate is not None and hasattr(self.filter, "tracks"):
            raise ValueError(
                f"gate: expected None, as a tracker has gates of its own, got {_checks.short_repr(gate)}"
            )
        latest = self.filter._clock.since
        since = float(self._first.elapsed([time], "time")[0])
        if since < self._first.since:
            raise ValueError(
                f"time: expected a time not before the start, {self._first.time}, got {time}"
            )
        if since < latest - self.lag:
            raise ValueError(
                f"time: expected at most {self.lag} before the latest reading, got {time}, which is "
                f"{latest - since} before it; choose a larger lag"
            )
        now = FilterState.of(self.filter)
        options = {
            name: value for name, value in (("sensor", sensor), ("gate", gate)) if value is not None
        }
        used = [reading for reading in self._recent if reading.since <= since]
        later = self._recent[len(used) :]
        # Set the filter back before the later readings, then use this one and them again, with new snapshots.
        try:
            if later:
                later[0].before.give_back(self.filter)
            for reading in (_Reading(since, z, control, options, now), *later):
                used.append(reading._replace(before=FilterState.of(self.filter)))
                clock = self.filter._clock
                if reading.since > clock.since:
                    self.filter.predict(reading.since - clock.since, reading.control)
                    # the time as given; `predict` has added up rounded time steps
                    self.filter._clock = clock._replace(since=reading.since)
                record = self.filter.update(reading.z, **reading.options)
        except BaseException:
            now.give_back(self.filter)
            raise
        oldest = self.filter._clock.since - self.lag
        self._recent = [reading for reading in used if reading.since >= oldest]
        return record


class _Reading(NamedTuple):
    since: float
    z: ArrayLike | None
    control: Any
    options: dict[str, Any]
    before: FilterState  # the filter before this reading, its clock included
