"""Tracks: the filter of a target that may exist, the start of that filter, and the combination of its hypotheses."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
    """A labelled Bernoulli component: a target that exists with some probability, and the density of its state.

    Attributes
    ----------
    label : tuple of int
        Step of the birth and number among the births of that step; never changes.
    existence : float
        Probability that the target exists.
    filter : object
        The filter of its state. The tracker replaces it at each step, and does not change it.

    Examples
    --------
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
    filter: TrackFilter

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


class TrackFilter(Protocol):
    """A filter that tracks can hold. Its copies share arrays, which it replaces and never changes."""

    @property
    def mean(self) -> Array:
        """Mean of the state, (d,)."""
        ...

    @property
    def covariance(self) -> Array:
        """Covariance of the state, (d, d)."""
        ...

    def predict(self, dt: float = 1.0, control: Any = None) -> None:
        """Predict to the next step."""
        ...

    def update(self, z: ArrayLike | None, sensor: Sensor | None = None) -> StepRecord:
        """Update with the observation of that step."""
        ...

    def predicted_observation(self, sensor: Sensor | None = None) -> tuple[Array, Array] | None:
        """Return mean and covariance of the predicted observation; None if they are not known."""
        ...

    def combine(self, others: Sequence[Any], weights: Array) -> Any:
        """Return one filter for the mixture of several, with weights (H,) that sum to 1."""
        ...


F = TypeVar("F", bound=TrackFilter)


class Hypothesis(NamedTuple):
    """An updated filter, and the log-evidence of the observation."""

    filter: Any
    log_evidence: float


def hypothesis_given(online: TrackFilter, z: ArrayLike | None, sensor: Sensor | None = None) -> Hypothesis:
    """Return a copy of a filter, updated with an observation; the evidence is 0 if the likelihood vanishes everywhere."""
    copied = copy.copy(online)
    try:
        record = copied.update(z, sensor)
    except DegenerateWeightsError:
        return Hypothesis(copied, -np.inf)
    return Hypothesis(copied, -np.inf if record.outcome is Outcome.DEGENERATE else record.log_likelihood)


def combine_filters(filters: Sequence[F], weights: Array) -> F:
    """Return one filter for several hypotheses about the same state, with probabilities (H,) that sum to 1.

    A Gaussian takes the mean and the covariance of the mixture (the JPDA filter of Bar-Shalom and Tse 1975). The weighted
    particles of all hypotheses are concatenated; the next step resamples the usual number.
    """
    positive = np.flatnonzero(weights).tolist()
    if len(positive) == 1:
        return filters[positive[0]]
    mixture: F = filters[positive[0]].combine([filters[i] for i in positive], weights[positive])
    return mixture


def check_filter(make: Callable[[Model], Any], model: Model, places: Sequence[GaussianMixture]) -> None:
    """Raise an error unless the model fits the filter and the births, and tracks can hold the filter."""
    for place in places:
        if place.dim != model.dim:
            raise ValueError(f"birth: expected states of {model.dim} dimensions, as of the model, got {place.dim}")
    if not places:
        return
    online = make(_wrap_modes(ModelWithInitial, model, places[0]))
    missing = [name for name in ("predicted_observation", "combine") if not hasattr(online, name)]
    if missing:
        raise TypeError(
            f"filter: expected one that can stand for several hypotheses, got {type(online).__name__}, which has no "
            f"{' and no '.join(missing)}"
        )


def start_filter(make: Callable[[Model], Any], model: Model, initial: GaussianMixture, step: int, predicted: bool) -> Any:
    """Return a filter whose state at `step` is distributed as `initial`.

    If `predicted`, a transition of its own leads there (`BirthModel`). So a proposal that uses the observation moves its
    particles to the detection, although a birth may be anywhere in a wide area.
    """
    if predicted:
        online = make(_wrap_modes(BirthModel, model, initial))
        online.step = step - 1
        online.predict()
    else:
        online = make(_wrap_modes(ModelWithInitial, model, initial))
        _ = online.mean  # particles are drawn when they are first needed
        online.step = step
    # a filter holds a model with modes, or its only mode
    online.model = with_modes(model, type(online).__name__) if jumps(online.model) else only_mode(model)
    return online


class ModelWithInitial:
    """A model with another initial distribution."""

    def __init__(self, model: Model, initial: Any) -> None:
        self._model, self.initial = model, initial

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._model, name)


class BirthModel:
    """The model of a birth: half of the mixture's covariance is initial, a transition with noise adds the other half.

    With components of different covariances the noise is half of the part that all have in common.
    """

    def __init__(self, model: Model, mixture: GaussianMixture) -> None:
        self._model, covariances = model, mixture.distinct_covariances
        common: Array = covariances[0]
        share = 1.0
        if len(covariances) > 1:
            common = covariances.mean(axis=0)
            scale = np.sqrt(np.where(np.diagonal(common) > 0, np.diagonal(common), 1.0))
            values, vectors = np.linalg.eigh(common / np.outer(scale, scale))
            positive = values > 1e-12 * values[-1]
            white = (vectors[:, positive] / np.sqrt(values[positive])).T / scale
            share = max(np.linalg.eigvalsh(white @ covariances @ white.T)[:, 0].min(), 0.0)
        self._noise = 0.5 * share * common
        self.initial = GaussianMixture.unchecked(mixture.weights, mixture.means, covariances - self._noise)

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """Return the states."""
        return x

    def transition_covariance(self, dt: float, step: int) -> Array:
        """Return the noise."""
        return self._noise

    def __getattr__(self, name: str) -> Any:
        if name not in ("dim", "circular", *OBSERVATION):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._model, name)


def _wrap_modes(wrapper: type[ModelWithInitial | BirthModel], model: Model, initial: GaussianMixture) -> Model:
    """Wrap a model, or each of its modes; at a birth a target keeps its mode."""
    if not jumps(model):
        return wrapper(model, initial)
    modes = [wrapper(one, initial) for one in model.models]
    matrix = np.eye(len(modes)) if wrapper is BirthModel else model.transition_matrix
    return JumpMarkov(modes, matrix, model.initial_modes)
