"""A track: the filter of one target that may be there, how it begins, and how its hypotheses are combined."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array
from herdfilter._repr import summary_repr
from herdfilter.filters.results import DegenerateWeightsError, Outcome, StepRecord
from herdfilter.mixture import GaussianMixture
from herdfilter.models.contract import OBSERVATION, Model, jumps, only_mode
from herdfilter.models.jump_markov import JumpMarkov, with_modes
from herdfilter.models.sensors import Sensor

Label = tuple[int, int]
"""Step of the birth, and number among the births of that step."""


@dataclass(frozen=True, eq=False, repr=False)
class Track:
    """A labelled Bernoulli component: a target that may be there or not, and where it is if it is there.

    Attributes
    ----------
    label : tuple of int
        Step of the birth and number among the births of that step; never changes.
    existence : float
        Probability that the target is there.
    filter : object
        A filter of the catalogue that holds the density of its state. It is replaced in the next step, not changed.

    Examples
    --------
    A target that is there with probability 1/2, until a detection comes from where it should be.

    >>> walk = hf.models.ConstantVelocity(0.01, 0.5, initial_mean=[0, 1], initial_covariance=np.eye(2))
    >>> model = hf.models.WithClutter(walk, detection_probability=0.9, clutter_density=0.01)
    >>> tracker = hf.tracking.LMBTracker(model, filter="ukf", initial=[hf.tracking.Birth(0.5, walk.initial)])
    >>> tracker.predict()
    >>> record = tracker.update([[1.2]])
    >>> (track,) = tracker.tracks
    >>> track.label, round(track.existence, 2), track.filter.mean.shape
    ((0, 0), 0.96, (2,))
    """

    label: Label
    existence: float
    filter: Supposing

    @property
    def mean(self) -> Array:
        """Mean of the state, shape (d,)."""
        return self.filter.mean

    @property
    def covariance(self) -> Array:
        """Covariance of the state, shape (d, d)."""
        return self.filter.covariance

    def __repr__(self) -> str:
        return summary_repr(self, label=self.label, existence=self.existence, filter=self.filter)


class Supposing(Protocol):
    """A filter that can stand for several hypotheses. It replaces what it holds, and changes none of it."""

    @property
    def mean(self) -> Array:
        """Mean of the state, (d,)."""
        ...

    @property
    def covariance(self) -> Array:
        """Covariance of the state, (d, d)."""
        ...

    def predict(self, dt: float = 1.0, control: Any = None) -> None:
        """Go to the next step."""
        ...

    def update(self, z: ArrayLike | None, sensor: Sensor | None = None) -> StepRecord:
        """Take up the observation there."""
        ...

    def predicted_observation(self, sensor: Sensor | None = None) -> tuple[Array, Array] | None:
        """Mean and covariance of the observation before it is taken up; None where there are none."""
        ...

    def combined(self, others: Sequence[Any], weights: Array) -> Any:
        """Return a filter that stands for the mixture of what these believe, weights (H,) that sum to 1."""
        ...


F = TypeVar("F", bound=Supposing)


class Hypothesis(NamedTuple):
    """A filter that has taken up an observation, and the log-density of that by what it believed before."""

    filter: Any
    log_evidence: float


def supposed(online: Supposing, z: ArrayLike | None, sensor: Sensor | None = None) -> Hypothesis:
    """Return a copy of a filter that has taken up an observation; the filter itself stands where it stood.

    The evidence is minus infinity, and the copy of no use, where the likelihood vanishes wherever the filter looks.
    """
    copied = copy.copy(online)
    try:
        record = copied.update(z, sensor)
    except DegenerateWeightsError:
        return Hypothesis(copied, -np.inf)
    vanished = record.outcome is Outcome.DEGENERATE
    return Hypothesis(copied, -np.inf if vanished else record.log_likelihood)


def combined(filters: Sequence[F], weights: Array) -> F:
    """Return one filter for several hypotheses about the same state, with their probabilities (H,), which sum to 1.

    A Gaussian takes the mean and the covariance of the mixture (the JPDA filter of Bar-Shalom and Tse 1975). Particles are
    united, each cloud with its weight; as many as before are made of the union at the next step. A hypothesis that has all
    of the weight is returned as it is.
    """
    kept = np.flatnonzero(weights).tolist()
    if len(kept) == 1:
        return filters[kept[0]]
    return filters[kept[0]].combined([filters[i] for i in kept], weights[kept])


Make = Callable[[Model], Any]
"""A filter for a model."""


def standing(make: Make, model: Model, initial: Any, step: int) -> Any:
    """Return a filter whose state at `step`, before any transition, is distributed as `initial`."""
    online = make(started_from(model, initial))
    _ = online.mean  # particles are drawn when they are first needed
    online.model, online.step = _as_held(online, model), step
    return online


def appearing(make: Make, model: Model, initial: GaussianMixture, step: int) -> Any:
    """Return a filter that stands at a prediction for `step`, by which the state is distributed as `initial`.

    It has got there by a move of its own, so that a proposal which looks at the observation places particles with the
    detection in view: a birth may be anywhere in a wide area, a detection tells where.
    """
    online = make(_appearing(model, initial))
    online.step = step - 1
    online.predict()
    online.model = _as_held(online, model)
    return online


def check_filter(make: Make, model: Model, places: Sequence[GaussianMixture]) -> None:
    """Build one filter, which names what the model lacks, or what is no filter for tracks that start at these places."""
    for place in places:
        if place.dim != model.dim:
            raise ValueError(f"birth: expected states of {model.dim} dimensions, as of the model, got {place.dim}")
    if not places:
        return
    online = make(started_from(model, places[0]))
    missing = [name for name in ("predicted_observation", "combined") if not hasattr(online, name)]
    if missing:
        raise TypeError(
            f"filter: expected one that can stand for several hypotheses, got {type(online).__name__}, which has no "
            f"{' and no '.join(missing)}"
        )


def started_from(model: Model, initial: Any) -> Model:
    """Return a model that starts from another initial distribution, in whatever mode."""
    if not jumps(model):
        return StartedFrom(model, initial)
    modes = [StartedFrom(one, initial) for one in model.models]
    return JumpMarkov(modes, model.transition_matrix, model.initial_modes)


def _appearing(model: Model, initial: GaussianMixture) -> Model:
    """Return the model of a state that appears, in a mode that it keeps meanwhile."""
    if not jumps(model):
        return Appearing(model, initial)
    modes = [Appearing(one, initial) for one in model.models]
    return JumpMarkov(modes, np.eye(len(modes)), model.initial_modes)


def _as_held(online: Any, model: Model) -> Model:
    """Return the model in the form in which a filter holds it: with modes, or as one mode alone."""
    return with_modes(model, type(online).__name__) if jumps(online.model) else only_mode(model)


class StartedFrom:
    """A model whose initial distribution is another."""

    def __init__(self, model: Model, initial: Any) -> None:
        self._model, self.initial = model, initial

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._model, name)


class Appearing:
    """A state that appears, distributed as a mixture: half of the spread is there at first, noise adds the other half.

    With components of different covariances the noise is half of what all have in common.
    """

    def __init__(self, model: Model, mixture: GaussianMixture) -> None:
        self._model, self._mixture = model, mixture

    @cached_property
    def _noise(self) -> Array:
        covariances = self._mixture.distinct_covariances
        if len(covariances) == 1:
            return 0.5 * covariances[0]
        whole = covariances.mean(axis=0)
        scale = np.sqrt(np.where(np.diagonal(whole) > 0, np.diagonal(whole), 1.0))
        values, vectors = np.linalg.eigh(whole / np.outer(scale, scale))
        kept = values > 1e-12 * values[-1]
        white = (vectors[:, kept] / np.sqrt(values[kept])).T / scale
        least = np.linalg.eigvalsh(white @ covariances @ white.T)[:, 0].min()
        return 0.5 * max(least, 0.0) * whole

    @cached_property
    def initial(self) -> GaussianMixture:
        """The components, less the noise."""
        rest = self._mixture.distinct_covariances - self._noise
        return GaussianMixture.unchecked(self._mixture.weights, self._mixture.means, rest)

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """Return states as they are."""
        return x

    def transition_covariance(self, dt: float, step: int) -> Array:
        """Return the noise."""
        return self._noise

    def __getattr__(self, name: str) -> Any:
        if name not in ("dim", "circular", *OBSERVATION):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._model, name)
