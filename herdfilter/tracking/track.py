"""Tracks: the filter of a target that may exist, its start, and the parts of its update with a scan."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.special
from numpy.typing import ArrayLike

from herdfilter._checks import Array
from herdfilter._repr import summary_repr
from herdfilter.angles import wrap_angles
from herdfilter.filters.results import DegenerateWeightsError, Outcome
from herdfilter.mixture import GaussianMixture
from herdfilter.models.contract import OBSERVATION, Model, jumps
from herdfilter.models.jump_markov import JumpMarkov, with_modes
from herdfilter.models.resolved import Measurement, only_mode
from herdfilter.models.sensors import Sensor
from herdfilter.models.with_clutter import Factor
from herdfilter.tracking.status import DetectionHistory

SMALLEST_GATED_RATIO = 1e-6
"""A detection is in a gate, at any distance, if its weight is larger than this fraction of a miss's."""

CLUTTER_WEIGHT = 1e-12  # without clutter: weight of a false alarm relative to that of the detection's likeliest target


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
    history : DetectionHistory
        Its detections, and from them its status.

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
    filter: Any
    history: DetectionHistory = field(default_factory=DetectionHistory)

    @property
    def mean(self) -> Array:
        """Mean of the state, shape (d,)."""
        return np.asarray(self.filter.mean)

    @property
    def covariance(self) -> Array:
        """Covariance of the state, shape (d, d)."""
        return np.asarray(self.filter.covariance)

    def __repr__(self) -> str:
        return summary_repr(self, label=self.label, existence=self.existence, status=self.history.status, filter=self.filter)


class Hypothesis(NamedTuple):
    """An updated filter, and the log-evidence of the observation."""

    filter: Any
    log_evidence: float


def hypothesis_given(online: Any, z: ArrayLike | None, sensor: Sensor | None = None) -> Hypothesis:
    """Return a copy of a filter, updated with an observation; the evidence is 0 if the likelihood vanishes everywhere."""
    copied = copy.copy(online)
    try:
        record = copied.update(z, sensor)
    except DegenerateWeightsError:
        return Hypothesis(copied, -np.inf)
    return Hypothesis(copied, -np.inf if record.outcome is Outcome.DEGENERATE else record.log_likelihood)


def combine_filters(filters: Sequence[Any], weights: Array) -> Any:
    """Return one filter for hypotheses about one state, with probabilities (H,) of sum 1 (Bar-Shalom and Tse 1975)."""
    positive = np.flatnonzero(weights).tolist()
    first = filters[positive[0]]
    return first if len(positive) == 1 else first.combine([filters[i] for i in positive], weights[positive])


def start_filter(make: Callable[[Model], Any], model: Model, initial: GaussianMixture, step: int, predicted: bool) -> Any:
    """Return a filter whose state at `step` is distributed as `initial`; raise an error unless model and tracks fit it.

    If `predicted`, a transition of its own leads there (`BirthModel`). So a proposal that uses the observation moves its
    particles to the detection, although a birth may be anywhere in a wide area.
    """
    online = make(_wrap_modes(BirthModel if predicted else ModelWithInitial, model, initial))
    missing = [name for name in ("predicted_observation", "combine") if not hasattr(online, name)]
    if missing:
        raise TypeError(
            f"filter: expected one that can carry several hypotheses, got {type(online).__name__}, which has no "
            f"{' and no '.join(missing)}"
        )
    if predicted:
        online.step = step - 1
        online.predict()
    else:
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


def gate_detections(
    model: Model,
    tracks: np.ndarray,
    means: Array,
    covariances: Array,
    z: Array,
    missed: Array,
    log_factors: Array,
    probability: float,
) -> np.ndarray:
    """Return True for each detection z (k, m) in the gate of each track, (T, k).

    A gate is the ellipsoid that holds a Gaussian with a given probability (1 for no gate), or the larger one outside which a
    detection weighs less than `SMALLEST_GATED_RATIO` of a miss. So it costs no accuracy if predictions are about Gaussian.
    `tracks` (n,) have a gate, each about the detection N(mean, covariance) that it predicts; `missed` (T,) are the weights
    of misses, `log_factors` (T,) the logarithms of the ratio of a detection's weight to its density.
    """
    inside = np.ones((len(missed), len(z)), dtype=bool)
    if not len(tracks) or not len(z) or probability == 1:
        return inside
    size = means.shape[1]
    residuals = wrap_angles(z - means[:, None], Measurement(model).circular(size))
    roots = np.linalg.cholesky(covariances)
    white = np.linalg.inv(roots) @ residuals.transpose(0, 2, 1)
    with np.errstate(divide="ignore"):
        log_roots = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
        log_peaks = log_factors[tracks] - log_roots - 0.5 * size * np.log(2 * np.pi)
        counts = 2 * (log_peaks - np.log(missed[tracks]) - np.log(SMALLEST_GATED_RATIO))
    radii = np.maximum(2 * scipy.special.gammainccinv(size / 2, 1 - probability), counts)
    inside[tracks] = (white**2).sum(axis=1) <= radii[:, None]
    return inside


def association_matrix(existence: Array, detected: Factor, log_densities: Array, log_clutter: Factor) -> Array:
    """Return the matrix (T, 1 + M) of likelihood ratios, from logarithms, with each row up to a factor.

    A row is ``1 - r P_D`` for a target that does not exist or is missed, and ``r P_D g(z_j) / kappa`` for each detection
    (Reuter, Vo, Vo and Dietmayer 2014, "The labeled multi-Bernoulli filter"), with r from `existence` (T,), P_D `detected`,
    log g from `log_densities` (T, M), minus infinity outside the gate, and log kappa `log_clutter`. P_D is a number or (T,),
    log kappa a number or (M,).
    """
    with np.errstate(divide="ignore"):
        logs = np.log(existence * detected)[:, None] + log_densities
        missed = np.log1p(-existence * detected)
    if np.all(log_clutter > -np.inf):
        logs = logs - log_clutter
    elif logs.size:  # the limit of little clutter
        likeliest = logs.max(axis=0, initial=-np.inf)
        logs = logs - np.where(likeliest > -np.inf, likeliest, 0.0) - np.log(CLUTTER_WEIGHT)
    rows = np.column_stack([missed, logs])
    peaks = rows.max(axis=1, keepdims=True)
    matrix: Array = np.exp(rows - np.where(peaks > -np.inf, peaks, 0.0))
    return matrix


def update_existence(existence: Array, detected: Factor, marginals: Array) -> tuple[Array, Array]:
    """Return the probabilities of existence (T,) after a scan, and of the hypotheses (T, 1 + M) of each existing target.

    The first hypothesis is a miss. Rows of hypotheses sum to 1, or to 0 if the target cannot exist. The arguments are the
    probabilities of existence before, of detection, a number or (T,), and the marginals of the association (T, 1 + M).
    """
    weights = marginals.copy()
    missed = 1 - existence * detected
    weights[:, 0] *= existence * (1 - detected) / np.where(missed > 0, missed, 1.0)
    after = weights.sum(axis=1)
    weights /= np.where(after > 0, after, 1.0)[:, None]
    return np.minimum(after, 1.0), weights
