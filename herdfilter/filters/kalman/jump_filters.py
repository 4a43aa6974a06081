"""Kalman filters of models that jump: interacting multiple models, and the mixture Kalman filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from herdfilter._checks import Array, check_count
from herdfilter.filters.kalman import rules
from herdfilter.filters.kalman.core import KalmanFilter
from herdfilter.filters.kalman.gaussian import Gaussians
from herdfilter.filters.observation import Observation
from herdfilter.filters.state import Indices
from herdfilter.models import contract
from herdfilter.models.jump_markov import with_modes
from herdfilter.models.resolved import Transition


class ModeFilter(KalmanFilter):
    """Base of the Kalman filters of models that jump, whose Gaussians each follow the model of their mode."""

    belief: Gaussians
    _takes_bounds = False

    def __init__(self, model: contract.Model, rule: str | rules.MomentRule = "unscented") -> None:
        self.rule = rules.moment_rule(rule)
        super().__init__(with_modes(model, type(self).__name__))

    @property
    def mode_probabilities(self) -> Array:
        """Probabilities of the modes, shape (J,)."""
        return self._probabilities(self.belief)

    def _initial(self) -> Gaussians:
        modes = np.arange(len(self.model.models))
        models = [contract.in_mode(self.model, mode) for mode in modes.tolist()]
        for model in models:
            self._check_model(model)
        weights = np.array(self.model.initial_modes)
        return replace(Gaussians.initial(models), weights=weights, modes=modes)

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

    def _predict(self, transition: Transition) -> Gaussians:
        belief = self.belief
        # mu_i T_ij (K, J): its columns are the unnormalised mixing weights, their sums the predicted probabilities c_j
        joint = belief.weights[:, None] * transition.model.transition_matrix[belief.modes]
        return belief.mixed(joint, transition.circular).predict(transition, self.rule)


class MixtureKalmanFilter(ModeFilter):
    r"""Particles that are histories of modes and associations, each with its Kalman filter (Chen and Liu 2000).

    Every history is continued by all J modes, with its weight times T times the density of the observation that its Kalman
    filter predicts. A scan of k detections branches each into 1 + k, a miss and every detection, with their terms
    of the likelihood (`herdfilter.models.WithClutter`). At most n histories go on to the next step, selected as by Fearnhead
    and Clifford (2003). With c such that :math:`\sum_k \min(w_k / c, 1) = n`, weights above c stay as they are. The others,
    in the order of their histories, are selected at even steps of their cumulative weight, with the weight c each. No
    random number is used. On linear Gaussian models this is exact as long as n holds all histories, and close to it after.

    Parameters
    ----------
    model : object
        As for `InteractingMultipleModel`.
    n_particles : int
        Most histories n that go on from one step to the next.
    rule
        As for `InteractingMultipleModel`.

    Examples
    --------
    A random walk has short or long steps. With room for all histories of modes the answer is exact; eight come close.

    >>> short, long = (hf.models.LinearGaussian([[1]], [[1]], [[q]], [[1]], [0], [[1]]) for q in (0.01, 4.0))
    >>> model = hf.models.JumpMarkov([short, long], [[0.9, 0.1], [0.2, 0.8]])
    >>> z = [[0.1], [-0.2], [3.1], [6.0], [5.9]]
    >>> exact, few = (hf.MixtureKalmanFilter(model, n).run(z) for n in (64, 8))
    >>> np.round(exact.mode_probabilities[:, 1], 2).tolist(), np.allclose(few.means, exact.means, atol=0.05)
    ([0.32, 0.2, 0.69, 0.96, 0.69], True)
    """

    def __init__(
        self,
        model: contract.Model,
        n_particles: int = 100,
        rule: str | rules.MomentRule = "unscented",
    ) -> None:
        self.n_particles = check_count("n_particles", n_particles)
        super().__init__(model, rule)

    def _predict(self, transition: Transition) -> Gaussians:
        indices, weights = select_histories(self.belief.weights, self.n_particles)
        selected = replace(self.belief.take(indices), weights=weights)
        return selected.split(transition.model.transition_matrix).predict(transition, self.rule)

    def _update(self, observation: Observation) -> tuple[Gaussians, float]:
        return self.belief.branch(observation, self.rule)[:2]

    def _ess(self, belief: Gaussians) -> float:
        return float(1 / (belief.weights @ belief.weights))

    def _combine(self, beliefs: Sequence[Gaussians], weights: Array) -> Gaussians:
        return Gaussians.join(beliefs, weights)  # the next prediction selects n of them


def select_histories(weights: Array, limit: int) -> tuple[Indices, Array]:
    """Return indices and new weights of at most `limit` of K weights that sum to 1: large ones unchanged, others equal.

    Fearnhead and Clifford (2003), Journal of the Royal Statistical Society B 65, with the comb of systematic resampling at
    the middles of its steps.
    """
    positive = np.flatnonzero(weights > 0)
    if len(positive) <= limit:
        return positive, weights[positive]
    ranks = np.argsort(-weights, kind="stable")
    ordered = weights[ranks]
    sums = np.cumsum(ordered[::-1])[::-1]  # of each weight and all smaller ones
    # The threshold c: weights are large until one is at most the mean of what remains over the number of places left. That
    # holds for the last place at the latest.
    large = int(np.argmax(ordered[:limit] * np.arange(limit, 0, -1) <= sums[:limit]))
    selected = np.zeros(len(weights))
    selected[ranks[:large]] = weights[ranks[:large]]
    small = np.sort(ranks[large:])
    share = weights[small].sum() / (limit - large)
    steps = (np.arange(limit - large) + 0.5) * share
    total = np.cumsum(weights[small])
    selected[small[np.minimum(np.searchsorted(total, steps), len(small) - 1)]] = share
    indices = np.flatnonzero(selected)
    return indices, selected[indices]
