"""The interacting multiple model filter: one Kalman filter for each mode of a model that jumps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from herdfilter._checks import Array
from herdfilter.filters.kalman.gaussian import Gaussians
from herdfilter.filters.kalman.gaussian_filters import GaussianFilter
from herdfilter.filters.kalman.rules import MomentRule
from herdfilter.models.contract import Model, in_mode
from herdfilter.models.jump_markov import with_modes
from herdfilter.models.resolved import Transition


class ModeFilter(GaussianFilter):
    """Base of the Kalman filters of models that jump, whose Gaussians each follow the model of their mode."""

    def __init__(self, model: Model, rule: str | MomentRule) -> None:
        super().__init__(with_modes(model, type(self).__name__), rule)

    @property
    def mode_probabilities(self) -> Array:
        """Probabilities of the modes, shape (J,)."""
        return self._probabilities(self.belief)

    def _initial(self, model: Model) -> Gaussians:
        modes = np.arange(len(model.models))
        belief = Gaussians.initial(
            [in_mode(model, mode) for mode in modes.tolist()], type(self).__name__
        )
        return replace(belief, weights=np.array(model.initial_modes), modes=modes)

    def _probabilities(self, belief: Gaussians) -> Array:
        return np.bincount(belief.modes, belief.weights, len(self.model.models)).astype(np.float64)


class InteractingMultipleModel(ModeFilter):
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

    def __init__(self, model: Model, rule: str | MomentRule = "unscented") -> None:
        super().__init__(model, rule)

    def _predict(self, transition: Transition) -> Gaussians:
        belief = self.belief
        # mu_i T_ij (K, J): its columns are the unnormalised mixing weights, their sums the predicted probabilities c_j
        joint = belief.weights[:, None] * transition.model.transition_matrix[belief.modes]
        return belief.mixed(joint, transition.circular).predict(transition, self.rule)
