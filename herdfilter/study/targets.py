"""The table ``[targets]`` of a scenario: births, the targets of the truth, and how estimates are judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter.mixture import GaussianMixture
from herdfilter.study import tables
from herdfilter.tracking.birth import Birth, BirthFromMeasurements
from herdfilter.tracking.simulation import simulate_path

__all__ = ["Anywhere", "BirthPlace", "Targets", "TrueTrack"]

Vector = Annotated[Sequence[float], partial(_checks.as_array, shape=(None,))]
Order = Annotated[
    float,
    partial(_checks.as_number, expected="a number from 1 to 100", fits=lambda p: 1 <= p <= 100),
]


class _StateAtBirth:
    """The state of a new target: independent Gaussians, with the fields `mean` and `sd` of a table."""

    mean: Sequence[float]
    sd: Sequence[float]

    def __post_init__(self) -> None:
        tables.convert_fields(self)
        if (_checks.as_array("sd", self.sd, np.shape(self.mean)) < 0).any():
            raise ValueError(
                f"sd: expected numbers of at least 0, got {_checks.short_repr(self.sd)}"
            )

    @property
    def gaussian(self) -> GaussianMixture:
        """The distribution of the state."""
        return GaussianMixture([1.0], [self.mean], np.diag(np.square(self.sd, dtype=float)))


@dataclass(frozen=True)
class BirthPlace(_StateAtBirth):
    """A place where a target may be born at every step: an entry of ``[[targets.births]]``.

    Parameters
    ----------
    probability : float
        Probability of a birth, in (0, 1].
    mean, sd : sequence of float
        Mean and standard deviations of its state, each (d,).

    Examples
    --------
    >>> from herdfilter.study.targets import BirthPlace
    >>> BirthPlace(probability=0.02, mean=[0.0, 100.0], sd=[50.0, 10.0])
    BirthPlace(probability=0.02, mean=[0.0, 100.0], sd=[50.0, 10.0])
    """

    probability: tables.Share
    mean: Vector
    sd: Vector

    def for_tracker(self) -> Birth:
        """Return the birth argument of a tracker."""
        return Birth(self.probability, self.gaussian)


@dataclass(frozen=True)
class Anywhere(_StateAtBirth):
    """Births at detections that belong to no track: the table ``[targets.births]``; see `BirthFromMeasurements`.

    Parameters
    ----------
    expected : float
        Mean number of births in a step.
    mean, sd : sequence of float
        Mean and standard deviations of the state of a new target before it is detected, each (d,).
    most : float
        Largest probability that a detection starts a new track.

    Examples
    --------
    >>> from herdfilter.study.targets import Anywhere
    >>> Anywhere(expected=0.1, mean=[0.0, 0.0], sd=[100.0, 5.0]).most
    0.1
    """

    expected: float
    mean: Vector
    sd: Vector
    most: float = 0.1

    def for_tracker(self) -> BirthFromMeasurements:
        """Return the birth argument of a tracker."""
        return BirthFromMeasurements(self.gaussian, self.expected, self.most)


@dataclass(frozen=True)
class TrueTrack:
    """One target of the truth: an entry of ``[[targets.tracks]]``.

    Parameters
    ----------
    initial : sequence of float
        State at step `at`.
    sd : sequence of float, optional
        Standard deviations of `initial` from run to run; 0 by default.
    first, last : int
        First and last step with the target; by default the last is the end.
    at : int, optional
        By default the step before `first`; from a later step the target is simulated back in time, too.

    Examples
    --------
    >>> from herdfilter.study.targets import TrueTrack
    >>> TrueTrack(initial=[0.0, 1.0], first=5, last=20)
    TrueTrack(initial=[0.0, 1.0], sd=None, first=5, last=20, at=None)
    """

    initial: Vector
    sd: Sequence[float] | None = None
    first: tables.Count = 1
    last: tables.Count | None = None
    at: tables.CountFromZero | None = None

    def __post_init__(self) -> None:
        tables.convert_fields(self)
        if self.sd is not None:
            _checks.as_array("sd", self.sd, np.shape(self.initial))
        if self.last is not None:
            _checks.check_count("last", self.last, minimum=self.first)


@dataclass(frozen=True)
class Targets:
    """The table ``[targets]`` of a scenario of many targets.

    Parameters
    ----------
    births : sequence of BirthPlace, or Anywhere
        Births of targets; trackers know them.
    cutoff : float
        Distance, in the unit of the error, from which an estimate does not belong to a target in GOSPA and OSPA.
    survival_probability : float
        Probability that a target survives a step; trackers know it.
    tracks : sequence of TrueTrack
        The targets of the truth; by default drawn in each run from births and survival probability.
    noise : bool
        The true targets have the noise of the transition.
    gospa_order, ospa_order : float
        Orders p of the distances.

    Examples
    --------
    >>> from herdfilter.study.targets import BirthPlace, Targets, TrueTrack
    >>> targets = Targets((BirthPlace(0.02, mean=[0.0, 0.0], sd=[50.0, 5.0]),), cutoff=20.0, tracks=(TrueTrack([0.0, 1.0]),))
    >>> targets.tracks[0].first, targets.survival_probability
    (1, 0.99)
    """

    # A list of tables, or one table.
    births: tuple[BirthPlace, ...] | Anywhere
    cutoff: tables.Positive
    survival_probability: tables.Share = 0.99
    tracks: tuple[TrueTrack, ...] = ()
    noise: bool = True
    gospa_order: Order = 2.0
    ospa_order: Order = 1.0

    def __post_init__(self) -> None:
        tables.convert_fields(self)
        if not self.births:
            raise ValueError(
                "births: expected at least one, got none; without births no target is found"
            )

    def for_tracker(self) -> dict[str, Any]:
        """Return the arguments ``birth`` and ``survival_probability`` of a tracker."""
        births = self.births
        # Births at detections, or a list of places.
        birth = (
            births.for_tracker()
            if isinstance(births, Anywhere)
            else [birth.for_tracker() for birth in births]
        )
        return {"birth": birth, "survival_probability": self.survival_probability}

    def check_truth(self, recorded: bool) -> None:
        """Raise ValueError unless the truth is either recorded or can be simulated."""
        if recorded and self.tracks:
            raise ValueError(
                "targets.tracks: cannot be combined with [data], which brings the truth"
            )
        if not recorded and not self.tracks and isinstance(self.births, Anywhere):
            raise ValueError(
                "targets.tracks: expected some, or [[targets.births]] to draw them from, got neither"
            )

    def check_beside_model(self, dim: int, steps: int) -> None:
        """Raise ValueError unless states have `dim` entries and all targets begin within the steps."""
        for births in [self.births] if isinstance(self.births, Anywhere) else self.births:
            _checks.as_array("targets.births: mean", births.mean, (dim,))
        for track in self.tracks:
            _checks.as_array("targets.tracks: initial", track.initial, (dim,))
            if track.first > steps:
                raise ValueError(
                    f"targets.tracks: first: expected at most {steps}, the last step, got {track.first}"
                )

    def simulate_truth(self, model: Any, steps: int, rng: np.random.Generator, dt: float) -> Array:
        """Simulate the true states (steps, targets, d), NaN where a target is absent."""
        # Trackers expect births and deaths as these draws have them, so that their model is the true one.
        tracks = self.tracks or self._draw_tracks(steps, rng)
        truth = np.full((steps, len(tracks), model.dim), np.nan)
        for i, track in enumerate(tracks):
            # Drawn even for a target that never appears, so that the others do not depend on it.
            initial = np.asarray(track.initial, dtype=np.float64)
            if track.sd is not None:
                initial = initial + track.sd * rng.standard_normal(len(initial))
            # As for a filter, the initial state is that of the step before the first.
            at = track.first - 1 if track.at is None else track.at
            lifetime = range(track.first, min(steps, track.last or steps) + 1)
            if len(lifetime):
                truth[lifetime[0] - 1 : lifetime[-1], i] = simulate_path(
                    model, initial, at, lifetime, rng, dt, self.noise
                )
        return truth

    def _draw_tracks(self, steps: int, rng: np.random.Generator) -> list[TrueTrack]:
        """Draw targets from births and survival probability."""
        tracks = []
        for step in range(1, steps + 1):
            for birth in self.births if isinstance(self.births, tuple) else ():
                if rng.random() < birth.probability:
                    # An immortal target takes no draws.
                    duration = 1 if self.survival_probability < 1 else steps
                    while duration < steps and rng.random() < self.survival_probability:
                        duration += 1
                    # A birth is described by the state at the first step, as trackers expect it.
                    tracks.append(TrueTrack(birth.mean, birth.sd, step, step + duration - 1, step))
        return tracks
