"""The interacting multiple model filter: one Kalman filter for each mode of a model that jumps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from herdfilter._checks import Array
from herdfilter._repr import fields_in_line
from herdfilter.angles import merged
from herdfilter.filters.kalman.core import KalmanFilter
from herdfilter.filters.kalman.gaussian import GaussianBelief, merged_gaussian, reweight
from herdfilter.filters.kalman.rules import MomentRule, moment_rule
from herdfilter.filters.observation import Observation
from herdfilter.filters.transition import Transition
from herdfilter.models.contract import Model, circular_dims, in_mode, observation_circular
from herdfilter.models.jump_markov import with_modes


class InteractingMultipleModel(KalmanFilter):
    r"""Kalman filters, one for each mode, that mix their Gaussians at every step (IMM; Blom and Bar-Shalom 1988).

    With the probabilities :math:`\mu_i` of the modes, those predicted are :math:`c_j = \sum_i \mu_i T_{ij}`. The filter of
    mode j starts from one Gaussian with the moments of the mixture of all, of weights :math:`\mu_i T_{ij} / c_j`. It
    predicts and updates by the model of its mode. Then :math:`\mu_j` becomes :math:`c_j` times the density that it predicted
    for the observation, normalised. Mean and covariance are those of the mixture; angles are averaged on the circle.

    Parameters
    ----------
    model : object
        A model that jumps between modes, such as `herdfilter.models.JumpMarkov`, each with what `UnscentedKalmanFilter`
        needs; any other is one mode.
    rule : {"unscented", "extended", "cubature"} or MomentRule
        The moments are those of the Kalman filter of that name.

    Examples
    --------
    A target goes straight or manoeuvres. It moves along a line at a constant velocity until it speeds up.

    >>> steady, lively = (hf.models.ConstantVelocity(q, 0.5, [0, 1], 0.1 * np.eye(2)) for q in (1e-3, 10.0))
    >>> model = hf.models.JumpMarkov([steady, lively], [[0.95, 0.05], [0.1, 0.9]])
    >>> result = hf.InteractingMultipleModel(model).run([1.1, 1.9, 3.0, 4.1, 5.0, 9.0, 16.0])
    >>> np.round(result.mode_probabilities[:, 1], 2).tolist()
    [0.24, 0.1, 0.05, 0.03, 0.03, 0.97, 0.91]
    """

    belief: ModeBelief

    def __init__(self, model: Model, rule: str | MomentRule = "unscented") -> None:
        model = with_modes(model, "InteractingMultipleModel")
        parts = initial_beliefs(model, "InteractingMultipleModel", moment_rule(rule))
        super().__init__(model, ModeBelief(np.array(model.initial_modes), tuple(parts), circular_dims(model)))

    @property
    def mode_probabilities(self) -> Array:
        """Probabilities of the modes, shape (J,)."""
        return self.belief.mode_probabilities


def initial_beliefs(model: Model, user: str, rule: MomentRule) -> list[GaussianBelief]:
    """Return the Gaussian of each mode at step 0, after checking that its model has all it needs."""
    return [GaussianBelief.initial(in_mode(model, j), user, rule) for j in range(len(model.models))]


@dataclass(frozen=True, eq=False, repr=False)
class ModeBelief:
    """Probabilities of the modes, and a Gaussian of the state given each mode (a `Belief`)."""

    mode_probabilities: Array
    parts: tuple[GaussianBelief, ...]
    circular: tuple[int, ...] = ()
    ess: float = np.nan

    __repr__ = fields_in_line

    @property
    def mean(self) -> Array:
        """See `Belief`."""
        return self._merged(self.mode_probabilities)[0]

    @property
    def covariance(self) -> Array:
        """See `Belief`."""
        factors = self._merged(self.mode_probabilities)[1][None]
        covariance: Array = (factors @ factors.mT)[0]
        return covariance

    def predict(self, transition: Transition) -> ModeBelief:
        """Mix the Gaussians, and predict by each mode."""
        joint = self.mode_probabilities[:, None] * transition.model.transition_matrix
        after = joint.sum(axis=0)
        parts = []
        for j, part in enumerate(self.parts):
            # an unreachable mode starts from the mixture of all: it has no weight now, but may get some later
            weights = joint[:, j] / after[j] if after[j] > 0 else self.mode_probabilities
            mean, factor = self._merged(weights)
            mixed = replace(part, mean=mean, factor=factor)
            parts.append(mixed.predict(transition.of(in_mode(transition.model, j))))
        return ModeBelief(after, tuple(parts), self.circular)

    def update(self, observation: Observation) -> tuple[ModeBelief, float]:
        """Update each mode as Kalman, and the probabilities as Bayes."""
        updated = [part.update(observation.in_mode(j)) for j, part in enumerate(self.parts)]
        weights, log_density = reweight(self.mode_probabilities, [log_density for _, log_density in updated])
        return ModeBelief(weights, tuple(part for part, _ in updated), self.circular), log_density

    def predicted_observation(self, model: Model, step: int) -> tuple[Array, Array]:
        """See `Belief`."""
        own = [in_mode(model, j) for j in range(len(self.parts))]
        moments = [part.predicted_observation(one, step) for part, one in zip(self.parts, own, strict=True)]
        means, covariances = (np.array(values) for values in zip(*moments, strict=True))
        return merged(means, covariances, self.mode_probabilities, observation_circular(own[0], means.shape[1]))

    def combine(self, others: Sequence[ModeBelief], weights: Array, circular: tuple[int, ...]) -> ModeBelief:
        """Combine the beliefs about each mode."""
        joint = weights[:, None] * np.array([other.mode_probabilities for other in others])
        total, parts = joint.sum(axis=0), []
        for j, part in enumerate(self.parts):
            shares = joint[:, j] / total[j] if total[j] > 0 else weights
            parts.append(part.combine([other.parts[j] for other in others], shares, circular))
        return ModeBelief(total, tuple(parts), circular)

    def _merged(self, weights: Array) -> tuple[Array, Array]:
        means = np.array([part.mean for part in self.parts])
        factors = np.array([part.factor for part in self.parts])
        return merged_gaussian(means, factors, weights, self.circular)
