"""What a scenario says of many targets: where they are born, which there are in truth, and how estimates are judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from herdfilter._checks import Array, as_array, as_number, as_positive, check_count, short_repr
from herdfilter.catalogue.expressions import check_keywords
from herdfilter.mixture import GaussianMixture
from herdfilter.tracking.birth import Birth, BirthFromMeasurements
from herdfilter.tracking.simulation import simulate_path

__all__ = ["Anywhere", "Place", "Targets", "Track"]


@dataclass(frozen=True)
class Place:
    """Where a target may be born at every step: an entry of ``[[targets.births]]``.

    Parameters
    ----------
    probability : float
        That there is one, in (0, 1].
    mean, sd : sequence of float
        Mean and standard deviations of its state, each (d,).

    Examples
    --------
    >>> from herdfilter.study.targets import Place
    >>> Place(probability=0.02, mean=[0.0, 100.0], sd=[50.0, 10.0])
    Place(probability=0.02, mean=[0.0, 100.0], sd=[50.0, 10.0])
    """

    probability: float
    mean: Sequence[float]
    sd: Sequence[float]

    def __post_init__(self) -> None:
        _check_probability("births: probability", self.probability)
        _check_gaussian(self.mean, self.sd)

    @property
    def told(self) -> Birth:
        """What a tracker is told."""
        return Birth(self.probability, gaussian(self.mean, self.sd))


@dataclass(frozen=True)
class Anywhere:
    """Births wherever a detection is of no track: the table ``[targets.births]``; see `BirthFromMeasurements`.

    Parameters
    ----------
    expected : float
        Mean number of births in a step.
    mean, sd : sequence of float
        Of the state of a new target before it is detected, each (d,).
    most : float
        Largest probability of a new track.

    Examples
    --------
    >>> from herdfilter.study.targets import Anywhere
    >>> births = Anywhere(expected=0.1, mean=[0.0, 0.0], sd=[100.0, 5.0])
    >>> births.most  # of a single detection, the largest probability of a birth
    0.1
    """

    expected: float
    mean: Sequence[float]
    sd: Sequence[float]
    most: float = 0.1

    def __post_init__(self) -> None:
        _check_gaussian(self.mean, self.sd)

    @property
    def told(self) -> BirthFromMeasurements:
        """What a tracker is told."""
        return BirthFromMeasurements(gaussian(self.mean, self.sd), self.expected, self.most)


def gaussian(mean: Sequence[float], sd: Sequence[float]) -> GaussianMixture:
    """Return one Gaussian whose dimensions are independent."""
    return GaussianMixture([1.0], [mean], np.diag(np.square(np.asarray(sd, dtype=np.float64))))


@dataclass(frozen=True)
class Track:
    """One target of the truth: an entry of ``[[targets.tracks]]``.

    Parameters
    ----------
    initial : sequence of float
        State at step `at`.
    sd : sequence of float, optional
        Standard deviations by which it differs from run to run; it does not unless given.
    first, last : int
        Steps from which and to which the target is there; to the end unless given.
    at : int, optional
        The step before `first` unless given; where it is later, the target is simulated back in time from there.

    Examples
    --------
    >>> from herdfilter.study.targets import Track
    >>> Track(initial=[0.0, 1.0], first=5, last=20)
    Track(initial=[0.0, 1.0], sd=None, first=5, last=20, at=None)
    """

    initial: Sequence[float]
    sd: Sequence[float] | None = None
    first: int = 1
    last: int | None = None
    at: int | None = None

    def __post_init__(self) -> None:
        state = as_array("[targets] tracks: initial", self.initial, (None,))
        if self.sd is not None:
            as_array("[targets] tracks: sd", self.sd, state.shape)
        check_count("[targets] tracks: first", self.first)
        if self.last is not None:
            check_count("[targets] tracks: last", self.last, minimum=self.first)
        if self.at is not None:
            check_count("[targets] tracks: at", self.at, minimum=0)


@dataclass(frozen=True)
class Targets:
    """The table ``[targets]`` of a scenario of many targets.

    Parameters
    ----------
    births : sequence of Place, or Anywhere
        Where targets appear; told to the tracker.
    cutoff : float
        Distance from which an estimate is none of the target, for all distances between sets; in the unit of the error.
    survival_probability : float
        Of a target from one step to the next; told to the tracker.
    tracks : sequence of Track
        The targets of the truth; unless given, they are drawn in each run from births and survival probability.
    noise : bool
        Whether the true targets have the noise of the transition.
    gospa_order, ospa_order : float
        Orders p of the distances.

    Examples
    --------
    >>> from herdfilter.study.targets import Place, Targets, Track
    >>> births = (Place(0.02, mean=[0.0, 0.0], sd=[50.0, 5.0]),)
    >>> targets = Targets(births, cutoff=20.0, tracks=(Track([0.0, 1.0]), Track([10.0, -1.0], first=5)))
    >>> [track.first for track in targets.tracks], targets.survival_probability
    ([1, 5], 0.99)
    """

    births: tuple[Place, ...] | Anywhere
    cutoff: float
    survival_probability: float = 0.99
    tracks: tuple[Track, ...] = ()
    noise: bool = True
    gospa_order: float = 2.0
    ospa_order: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.births, tuple) and not self.births:
            raise ValueError("[targets] births: expected at least one, got none: no target would ever be found")
        as_positive("[targets] cutoff", self.cutoff)
        _check_probability("survival_probability", self.survival_probability)
        for name in ("gospa_order", "ospa_order"):
            order = getattr(self, name)
            as_number(f"[targets] {name}", order, "a number from 1 to 100", lambda p: 1 <= p <= 100)

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Targets:
        """Check the table as it stands in a scenario's file."""
        check_keywords("[targets]", cls, table)
        births = table["births"]
        if isinstance(births, dict):
            check_keywords("[targets.births]", Anywhere, births)
            births = Anywhere(**births)
        else:
            births = _entries("births", births, Place)
        tracks = _entries("tracks", table.get("tracks", []), Track)
        return cls(**{**table, "births": births, "tracks": tracks})

    @property
    def told(self) -> dict[str, Any]:
        """What a tracker is told: its keyword arguments ``birth`` and ``survival_probability``."""
        places = self.births.told if isinstance(self.births, Anywhere) else [one.told for one in self.births]
        return {"birth": places, "survival_probability": self.survival_probability}

    def check_beside_model(self, dim: int, steps: int) -> None:
        """Raise ValueError unless states have `dim` entries and all targets begin within the steps."""
        places = [self.births] if isinstance(self.births, Anywhere) else self.births
        states = [("births: mean", one.mean) for one in places]
        states += [("tracks: initial", one.initial) for one in self.tracks]
        for name, state in states:
            as_array(f"[targets] {name}", state, (dim,))
        for one in self.tracks:
            if one.first > steps:
                raise ValueError(f"[targets] tracks: first: expected at most {steps}, the last step, got {one.first}")

    def simulate_truth(self, model: Any, steps: int, rng: np.random.Generator, dt: float) -> Array:
        """Simulate the true states (steps, targets, d), NaN where a target is absent."""
        tracks = self.tracks or self._drawn(steps, rng)
        truth = np.full((steps, len(tracks), model.dim), np.nan)
        for i, one in enumerate(tracks):
            initial = np.asarray(one.initial, dtype=np.float64)
            if one.sd is not None:
                initial = initial + np.asarray(one.sd) * rng.standard_normal(len(initial))
            at = one.first - 1 if one.at is None else one.at
            there = range(one.first, min(steps, one.last or steps) + 1)
            if len(there):
                path = simulate_path(model, initial, at, there, rng, dt, self.noise)
                truth[there[0] - 1 : there[-1], i] = path
        return truth

    def _drawn(self, steps: int, rng: np.random.Generator) -> list[Track]:
        """Draw targets from births and survival probability."""
        tracks = []
        for step in range(1, steps + 1):
            for one in self.births if isinstance(self.births, tuple) else ():
                if rng.random() < one.probability:
                    lived = 1 if self.survival_probability < 1 else steps
                    while lived < steps and rng.random() < self.survival_probability:
                        lived += 1
                    tracks.append(Track(one.mean, one.sd, step, step + lived - 1, step))
        return tracks


def _check_probability(name: str, value: Any) -> None:
    if as_positive(f"[targets] {name}", value) > 1:
        raise ValueError(f"[targets] {name}: expected a probability of at most 1, got {short_repr(value)}")


def _check_gaussian(mean: Any, sd: Any) -> None:
    middle = as_array("[targets] births: mean", mean, (None,))
    if (as_array("[targets] births: sd", sd, middle.shape) < 0).any():
        raise ValueError(f"[targets] births: sd: expected numbers of at least 0, got {short_repr(sd)}")


def _entries(name: str, entries: Any, part: Any) -> tuple[Any, ...]:
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError(f"[targets] {name}: expected tables [[targets.{name}]], got {short_repr(entries)}")
    for entry in entries:
        check_keywords(f"[[targets.{name}]]", part, entry)
    return tuple(part(**entry) for entry in entries)
