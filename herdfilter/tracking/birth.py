"""Births of targets: at known places in every step, or at detections that belong to no track."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter._repr import fields_in_line
from herdfilter.angles import wrap
from herdfilter.filters.kalman.gaussian import iterated_update
from herdfilter.filters.observation import ObservationRows
from herdfilter.mixture import GaussianMixture
from herdfilter.models import contract
from herdfilter.models.evaluations import THREAD
from herdfilter.models.jump_markov import JumpMarkov, with_modes
from herdfilter.models.resolved import Measurement, only_mode
from herdfilter.models.with_clutter import WithClutter


@dataclass(frozen=True, eq=False, repr=False)
class Birth:
    """A place where a target may appear.

    Parameters
    ----------
    probability : float
        Probability that a target appears there within a time of 1.
    initial : GaussianMixture
        Distribution of its state at that step.

    Examples
    --------
    A target comes through this gate in 2 % of the steps.

    >>> gate = hf.GaussianMixture([1.0], [[0.0, 0.0]], np.diag([1.0, 4.0]))
    >>> birth = hf.tracking.Birth(0.02, gate)
    """

    probability: float
    initial: GaussianMixture

    __repr__ = fields_in_line

    def __post_init__(self) -> None:
        _checks.check_fields(self, probability=_checks.as_fraction)
        _checks.check_part("initial", self.initial, GaussianMixture, "a herdfilter.GaussianMixture")

    def within(self, dt: float) -> Birth:
        """Return the birth with the probability that a target appears in a time `dt`."""
        dt = _checks.as_positive("dt", dt)
        return self if dt == 1 else replace(self, probability=1 - (1 - self.probability) ** dt)


class UnexplainedDetections(NamedTuple):
    """The detections z (k, m) of a scan, the model that reads it, and the probabilities (k,) that they are of no track."""

    model: WithClutter
    z: Array
    probabilities: Array


@dataclass(frozen=True, eq=False, repr=False)
class BirthFromMeasurements:
    r"""Births at detections that belong to no track (Reuter, Vo, Vo and Dietmayer 2014, section IV-B).

    A detection that belongs to tracks with probability u starts a track at the next step, with the probability of existence
    :math:`\min(r_{max}, \lambda (1 - u) / \sum (1 - u))`. The distribution of its state is `prior`, updated with the
    detection by an iterated extended Kalman update (Bell and Cathey 1993), and predicted to the next step. Where P_D or the
    density of clutter vary, a scan's births are shared out by :math:`(1 - u) P_D / \kappa`. Detections no further apart than
    two of one target are on average, in the metric of their noise, start one track together: that two targets appear at one
    place in one scan has a probability of the order of its square.

    Parameters
    ----------
    initial : GaussianMixture
        One component: the distribution of a new target's state before the detection. It is wide in the observed entries, and
        has the spread of real targets in the others, such as velocities.
    expected : float
        Mean number lambda of births in a time of 1.
    most : float
        Largest probability of existence of a new track.
    state : callable, optional
        ``(k, m) -> (k, d)``: states from which the iteration starts, by default the mean of `initial`. For ranges and
        bearings, give the positions they stand for.

    Examples
    --------
    A radar at the origin detects a target 1 km due north: its position is known to some metres, its velocity is not.

    >>> model = hf.models.WithClutter(hf.models.CoordinatedTurn(), 0.9, clutter_density=1e-4)
    >>> prior = hf.GaussianMixture([1.0], [[0.0] * 5], np.diag([2000.0, 100.0, 2000.0, 100.0, 0.05]) ** 2)
    >>> def state(z):
    ...     x, y = z[:, 0] * np.cos(z[:, 1]), z[:, 0] * np.sin(z[:, 1])
    ...     return np.column_stack([x, 0 * x, y, 0 * x, 0 * x])
    ...
    >>> births = hf.tracking.BirthFromMeasurements(prior, state=state)
    >>> (mean,), (covariance,) = births.locate(model, np.array([[1000.0, np.pi / 2]]), step=1)
    >>> np.allclose(mean[[0, 2]], [0, 1000], atol=1), np.sqrt(np.diagonal(covariance)).round(2).tolist()
    (True, [3.16, 100.0, 10.0, 100.0, 0.05])
    """

    initial: GaussianMixture
    expected: float = 0.1
    most: float = 0.1
    state: Callable[[Array], Array] | None = None

    __repr__ = fields_in_line

    def __post_init__(self) -> None:
        _checks.check_part("initial", self.initial, GaussianMixture, "a herdfilter.GaussianMixture")
        if len(self.initial) != 1:
            raise ValueError(f"initial: expected one component, got {len(self.initial)}")
        _checks.as_definite("initial.covariance", self.initial.distinct_covariances[0], None)
        _checks.check_fields(self, expected=_checks.as_positive, most=_checks.as_fraction)
        if self.state is not None and not callable(self.state):
            raise TypeError(
                f"state: expected a function of detections, got {_checks.short_repr(self.state)}"
            )

    def births_at(
        self, scans: Sequence[UnexplainedDetections], step: int, dt: float
    ) -> list[Birth]:
        """Return the births at the detections of a step, `expected` times `dt` in the mean."""
        # The expected number of births is shared out over all scans of the step, by how much of each is unexplained.
        total = sum(scan.probabilities.sum() for scan in scans)
        births = []
        for model, z, probabilities in scans:
            positive = probabilities > 0
            if not positive.any():  # which is also the case without a detection
                continue
            z = z[positive]
            shares = probabilities[positive]
            means, covariances = self.locate(model.model, z, step)
            # Where P_D or kappa vary, a detection counts by the odds of a new target's to clutter's.
            if callable(model.detection_probability) or callable(model.clutter_density):
                odds = shares * model.detection_probabilities(means, step)
                odds = odds / model.clutter_densities(z, step) if model.clutter_density else odds
                shares = odds * (shares.sum() / max(odds.sum(), _checks.SMALLEST))
            rates = self.expected * dt * shares / total
            near = _near_pairs(Measurement(model.model), z, means, step)
            # Detections near one another start one track together: first those with most neighbours.
            unused = rates > 0
            for i in np.argsort(-near.sum(axis=1), kind="stable"):
                if unused[i]:
                    group = near[i] & unused
                    unused &= ~group
                    rate = rates[group].sum()
                    initial = GaussianMixture.unchecked(
                        rates[group] / rate, means[group], covariances[group]
                    )
                    births.append(Birth(min(self.most, rate), initial))
        return births

    def locate(self, model: contract.Model, z: Array, step: int) -> tuple[Array, Array]:
        """Return means (k, d) and covariances (k, d, d) of the state given each detection (k, m) alone."""
        contract.require(model, "BirthFromMeasurements", contract.OBSERVED)
        prior = np.repeat(self.initial.means, len(z), axis=0)
        states = prior
        if self.state is not None:
            states = _checks.as_array("state", self.state(_checks.read_only(z)), prior.shape)
        # The iteration runs in coordinates u, in which the prior is N(0, I).
        start = np.linalg.solve(self.initial.factors[0], (states - prior).T).T
        means, factors, _ = iterated_update(
            ObservationRows(model, z, step), prior, self.initial.factors, start
        )
        return wrap(means, contract.circular_dims(model)), factors @ factors.mT


def _near_pairs(measurement: Measurement, z: Array, states: Array, step: int) -> np.ndarray:
    """Return which detections (k, m) are no further apart than the mean square of a difference of noise, m; (k, k)."""
    size = z.shape[1]
    differences = wrap(z[:, None] - z, measurement.circular(size))
    # The difference of two detections of one target has twice the covariance of the noise.
    try:
        precisions = np.linalg.inv(2 * measurement.noises(states, size, step))
    except np.linalg.LinAlgError:  # there is no noise
        return np.eye(len(z), dtype=bool)
    near = ((differences @ precisions) * differences).sum(axis=2) <= size
    return np.asarray(near | near.T)


class ModelWithInitial(contract.Wrapper):
    """A model with another initial distribution."""

    def __init__(self, model: contract.Model, initial: GaussianMixture) -> None:
        self.model = model
        self.initial = initial


class BirthModel(ModelWithInitial):
    """The model of a birth: half of the mixture's covariance is initial, a transition with noise adds the other half.

    With components of different covariances the noise is half of the part that all have in common.
    """

    def __init__(self, model: contract.Model, mixture: GaussianMixture) -> None:
        covariances = mixture.distinct_covariances
        common: Array = covariances[0]
        share = 1.0  # of the common covariance that no component falls below
        if len(covariances) > 1:
            common = covariances.mean(axis=0)
            # The smallest eigenvalue of all components where their mean is whitened; by way of correlations, as units may
            # differ by orders of magnitude.
            scale = np.sqrt(np.where(np.diagonal(common) > 0, np.diagonal(common), 1.0))
            values, vectors = np.linalg.eigh(common / np.outer(scale, scale))
            positive = values > 1e-12 * values[-1]
            white = (vectors[:, positive] / np.sqrt(values[positive])).T / scale
            share = max(np.linalg.eigvalsh(white @ covariances @ white.T)[:, 0].min(), 0.0)
        self._noise = 0.5 * share * common
        remaining = covariances - self._noise
        super().__init__(
            model, GaussianMixture.unchecked(mixture.weights, mixture.means, remaining)
        )

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """Return the states; the model is not asked."""
        THREAD.evaluations.add()
        return x

    def transition_covariance(self, dt: float, step: int) -> Array:
        """Return the noise."""
        return self._noise

    def __getattr__(self, name: str) -> Any:
        # Nothing else of the motion may be used.
        if name not in ("dim", "circular", *contract.OBSERVATION):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return super().__getattr__(name)


def start_filter(
    make: Callable[[contract.Model], Any],
    model: contract.Model,
    initial: GaussianMixture,
    step: int,
    predicted: bool,
) -> Any:
    """Return a filter whose state at `step` is distributed as `initial`; raise an error unless model and tracks fit it.

    If `predicted`, a transition of its own leads there (`BirthModel`). So a proposal that uses the observation moves its
    particles to the detection, although a birth may be anywhere in a wide area.
    """
    starting = BirthModel if predicted else ModelWithInitial
    if contract.jumps(model):
        # Each mode starts from the same distribution. A target keeps its mode at a birth.
        matrix = np.eye(len(model.models)) if predicted else model.transition_matrix
        modes = [starting(mode, initial) for mode in model.models]
        online = make(JumpMarkov(modes, matrix, model.initial_modes))
    else:
        online = make(starting(model, initial))
    # What a filter needs to carry several hypotheses.
    _checks.check_methods("filter", online, "predicted_observation", "combine")
    if predicted:
        # The filter's first prediction is the birth's own transition, with its noise.
        online.step = step - 1
        online.predict()
    else:
        _ = online.mean  # particles are drawn when they are first needed
        online.step = step
    # From now on the filter has the model itself: all its modes, or the only one.
    online.model = (
        with_modes(model, type(online).__name__)
        if contract.jumps(online.model)
        else only_mode(model)
    )
    return online
