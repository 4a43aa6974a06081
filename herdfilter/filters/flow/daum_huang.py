"""The exact particle flow filter of Daum and Huang, without weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from herdfilter import _checks, angles
from herdfilter._checks import Array
from herdfilter.filters.flow.exact_flow import exact_flow, pseudo_times
from herdfilter.filters.kalman.core import KalmanFilter
from herdfilter.filters.kalman.ensemble import Ensemble, EnsembleKalmanFilter
from herdfilter.filters.kalman.gaussian import Gaussians
from herdfilter.filters.kalman.gaussian_filters import ONE_GAUSSIAN, UnscentedKalmanFilter
from herdfilter.filters.observation import Observation
from herdfilter.models import contract, resolved


class DaumHuangFilter(EnsembleKalmanFilter):
    """Particle flow filter EDH, or with ``local=True`` LEDH (Ding and Coates 2012, algorithms 1 and 2).

    Particles go through the transition with independent noise. An observation moves them along the flow that takes a
    Gaussian prior to its posterior. The observation is linearised at their mean, or (`local`) at each particle, anew in
    every step of pseudo-time. There are neither weights nor resampling. The prior's mean is that of the particles, its
    covariance that of a Kalman filter which runs beside them and takes over their mean in every step. The paper takes
    Euler steps of pseudo-time; we solve each step exactly, which is stable however sharp the likelihood.

    The particles follow the posterior only if the model is linear and Gaussian. The weights of `FlowProposal` correct the
    error of the flow. `log_likelihood` is that of the Kalman filter, started in every step from the particles' mean; like
    that of any Kalman filter it does not tend to the true evidence with n.

    Parameters
    ----------
    model : object
        As for `ExtendedKalmanFilter`; ``initial`` has ``sample``, too, and ``observation_covariance`` is positive definite.
    n_particles : int
        Number of particles n, at least 2.
    rng : numpy.random.Generator or int, optional
        Source of every random draw.
    local : bool
        Linearise the observation at each particle.
    kalman : callable
        Takes the model to the Kalman filter that runs beside, one that keeps a Gaussian.
    flow_steps : int
        Steps of pseudo-time, each 1.2 times as long as the one before; 29 in the literature.

    Examples
    --------
    On a linear Gaussian model 400 particles have the moments of the posterior up to chance.

    >>> model = hf.models.linear_chain(2)
    >>> truth, z = hf.simulate(model, steps=10, rng=1)
    >>> flow = hf.DaumHuangFilter(model, n_particles=400, rng=0)
    >>> result, kalman = flow.run(z), hf.ExtendedKalmanFilter(model).run(z)
    >>> flow.particles.shape, np.allclose(result.means, kalman.means, atol=0.3)
    ((400, 2), True)
    >>> np.allclose(result.covariances, kalman.covariances, atol=0.3)
    True
    """

    belief: FlowEnsemble
    _initial_needs = ("sample", "mean", "covariance")
    _transitions = (contract.ADDITIVE, contract.FROM_NOISE)
    _settings = ("rule", "local", "flow_steps")

    @_checks.known_keywords
    def __init__(
        self,
        model: contract.Model,
        n_particles: int = 100,
        rng: np.random.Generator | int | None = None,
        local: bool = False,
        kalman: Callable[[contract.Model], KalmanFilter] = UnscentedKalmanFilter,
        flow_steps: int = 29,
    ) -> None:
        self._check_model(model)
        _checks.check_flags(local=local)
        self.local = local
        self.flow_steps = _checks.check_count("flow_steps", flow_steps)
        beside = kalman(model) if callable(kalman) else None
        if not isinstance(beside, ONE_GAUSSIAN):
            raise TypeError(
                f"kalman: expected a filter such as UnscentedKalmanFilter, got {kalman!r}"
            )
        # the Gaussian is kept in the belief: of that filter only rule and prior are used
        self.rule = beside.rule
        self._initial_gaussian = beside.belief
        super().__init__(model, n_particles, rng)

    def _initial(self) -> FlowEnsemble:
        return FlowEnsemble(super()._initial().members, self._initial_gaussian)

    def _predict(self, transition: resolved.Transition) -> FlowEnsemble:
        """Move each member with independent noise; the Gaussian starts from their mean."""
        # the Kalman filter takes over the particles' mean
        before = replace(self.belief.gaussian, means=self.mean[None])
        members = super()._predict(transition).members
        return FlowEnsemble(members, before.predict(transition, self.rule))

    def _update(self, observation: Observation) -> tuple[FlowEnsemble, float]:
        """Move the members along the flow."""
        prior = self.belief.gaussian
        # A prior at step 0 may be wide: the update is iterated (rule None).
        posterior, log_densities = prior.update(
            observation, self.rule if observation.step else None
        )
        circular = self._circular
        n = self.n_particles
        members = angles.unwrap(self.particles, np.full(n, 1 / n), circular)
        origin = members.mean(axis=0)
        offsets = members - origin
        # the map is affine without `local`, and the flow of an offset of zero is that of the mean
        movers = [(origin, offsets)]
        if not self.local:
            movers.insert(0, (origin, np.zeros((1, len(origin)))))
        times = pseudo_times(self.flow_steps)
        migrated, _ = exact_flow(observation, times, prior.covariances[0], *movers)
        belief = FlowEnsemble(angles.wrap(origin + migrated[-1], circular), posterior)
        return belief, float(log_densities[0])

    def _combine(self, beliefs: Sequence[Any], weights: Array) -> FlowEnsemble:
        gaussian = Gaussians.join([belief.gaussian for belief in beliefs], weights)
        members = super()._combine(beliefs, weights).members
        return FlowEnsemble(members, gaussian.merged(self._circular))


@dataclass(frozen=True, eq=False)
class FlowEnsemble(Ensemble):
    """Members (n, d) of equal weight, and the Gaussian beside them."""

    gaussian: Gaussians
