"""The exact particle flow filter of Daum and Huang, without weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from herdfilter._checks import Array, as_generator, check_count, check_flags
from herdfilter.angles import moments, unwrap_angles, wrap_angles
from herdfilter.filters.flow.exact_flow import ExactFlow, pseudo_times
from herdfilter.filters.kalman.core import KalmanFilter
from herdfilter.filters.kalman.ensemble import Ensemble
from herdfilter.filters.kalman.gaussian import Gaussians
from herdfilter.filters.kalman.gaussian_filters import UnscentedKalmanFilter, keeps_one_gaussian
from herdfilter.filters.kalman.rules import MomentRule
from herdfilter.filters.observation import Observation
from herdfilter.filters.transition import Transition
from herdfilter.models import contract
from herdfilter.models.sensors import to_check


class DaumHuangFilter(KalmanFilter):
    """Particle flow filter EDH, or with ``local=True`` LEDH (Ding and Coates 2012, algorithms 1 and 2).

    Particles go through the transition with noise of their own. An observation moves them along the flow that takes a
    Gaussian prior to its posterior, with the observation linearised at their mean, or for each particle at its own
    place, anew in every step of pseudo-time. There are neither weights nor resampling. The prior's mean is that of the
    particles, its covariance that of a Kalman filter which runs beside them and takes over their mean in every step.
    The paper takes Euler's steps of pseudo-time; we solve each exactly, which is stable however sharp the likelihood.

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

    def __init__(
        self,
        model: contract.Model,
        n_particles: int = 100,
        rng: np.random.Generator | int | None = None,
        local: bool = False,
        kalman: Callable[[contract.Model], KalmanFilter] = UnscentedKalmanFilter,
        flow_steps: int = 29,
    ) -> None:
        user = "DaumHuangFilter"
        contract.check_state(model, user, "sample", "mean", "covariance")
        contract.require(model, user, contract.ADDITIVE, ("transition", "noise_dim"))
        contract.require(to_check(model), user, contract.OBSERVED)
        self.n_particles = check_count("n_particles", n_particles, minimum=2)
        self.rng = as_generator(rng)
        check_flags(local=local)
        self.local = local
        times = tuple(pseudo_times(check_count("flow_steps", flow_steps)))
        beside: Any = kalman(model) if callable(kalman) else None
        if not keeps_one_gaussian(beside):
            raise TypeError(f"kalman: expected a filter such as UnscentedKalmanFilter, got {kalman!r}")
        members = contract.sample_initial(model, self.n_particles, self.rng)
        circular = contract.circular_dims(model)
        super().__init__(model, FlowEnsemble(members, circular, self.rng, beside.belief, beside.rule, self.local, times))

    @property
    def particles(self) -> Array:
        """The particles, shape (n, d), of equal weight."""
        return self.belief.members


@dataclass(frozen=True, eq=False)
class FlowEnsemble(Ensemble):
    """Members (n, d) of equal weight, and the Gaussian beside them (a `Belief`)."""

    gaussian: Gaussians
    rule: MomentRule
    local: bool
    times: Any  # a tuple: the same all along, and no part of a state

    @property
    def _moments(self) -> tuple[Array, Array]:
        n = len(self.members)
        mean, covariance = moments(self.members, np.full(n, 1 / n), self.circular)
        return mean, covariance * n / (n - 1)

    @property
    def mean(self) -> Array:
        """See `Belief`."""
        return self._moments[0]

    @property
    def covariance(self) -> Array:
        """See `Belief`."""
        return self._moments[1]

    def predict(self, transition: Transition) -> Self:
        """Move each member with noise of its own, and the Gaussian from their mean."""
        gaussian = replace(self.gaussian, means=self.mean[None]).predict(transition, self.rule)
        return replace(super().predict(transition), gaussian=gaussian)

    def update(self, observation: Observation) -> tuple[Self, float]:
        """Move the members along the flow."""
        gaussian, log_densities = self.gaussian.update(observation, self.rule if observation.step else None)
        n = len(self.members)
        members = unwrap_angles(self.members, np.full(n, 1 / n), self.circular)
        origin = members.mean(axis=0)
        offsets = members - origin
        flow = ExactFlow(observation, self.times)
        # the map is affine without `local`, and the flow of an offset of zero is that of the mean
        movers = [(origin, offsets)]
        if not self.local:
            movers.insert(0, (origin, np.zeros((1, len(origin)))))
        moved, _ = flow.migrate(self.gaussian.covariances[0], *movers)
        members = wrap_angles(origin + moved[-1], self.circular)
        return replace(self, members=members, gaussian=gaussian), float(log_densities[0])

    def combine(self, others: Sequence[Self], weights: Array, circular: tuple[int, ...]) -> Self:
        """Combine members and Gaussians."""
        gaussian = Gaussians.join([other.gaussian for other in others], weights).merged(circular)
        return replace(super().combine(others, weights, circular), gaussian=gaussian)
