"""Herded prediction: points drawn from the predictive mixture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from herdfilter._checks import Array, as_points, check_share
from herdfilter._covariances import regularised
from herdfilter.filters.observation import Observation
from herdfilter.filters.particles import Particles
from herdfilter.filters.proposals.base import Uses, initial_points
from herdfilter.filters.transition import Transition
from herdfilter.mixture import GaussianMixture, log_sums
from herdfilter.models.contract import Model, require
from herdfilter.samplers.base import Sampler, as_sampler, check_dim, draw_points
from herdfilter.samplers.line import log_densities


@dataclass(frozen=True)
class HerdedProposal:
    """Draws from ``sum_i w_i N(f(x_i), Q)``, the predictive density of additive Gaussian transition noise.

    With a herding sampler this is sequential kernel herding (Lacoste-Julien, Lindsten and Bach 2015). The weights enter the
    mixture, so that no resampling takes place.

    A mode of weight below 1/n would get no deterministic point, ever, and the filter could not find back to it. Points are
    therefore drawn from the mixture with weights ``(1 - a) w_i + a / n`` (a defensive mixture, Hesterberg 1995) and given
    the exact importance weights, which are at most ``1 / (1 - a)``.

    Parameters
    ----------
    sampler : Sampler
        Mixture to points.
    defensive_share : float
        The share a, from 0 (points from the predictive density itself) to below 1. Not used where Q is rank-deficient:
        there the components have no densities to weigh, and the herding samplers work on the mixture smoothed by their
        kernel, whose covariance is floored in the whitened frame (`herdfilter._covariances.regularised`).

    Raises
    ------
    TypeError, ValueError
        If `sampler` has no method ``sample``, or the share is out of range.

    Examples
    --------
    The root mean square error of the posterior means of a linear Gaussian model, against Kalman's: 64 herded points come
    closer than as many random ones.

    >>> model = hf.models.linear_chain(2)
    >>> truth, z = hf.simulate(model, steps=20, rng=1)
    >>> def error(proposal):
    ...     result = hf.ParticleFilter(model, n_particles=64, proposal=proposal, rng=0).run(z)
    ...     return np.sqrt(np.mean((result.means - hf.ExtendedKalmanFilter(model).run(z).means) ** 2))
    ...
    >>> bool(error(hf.HerdedProposal(hf.KernelHerding())) < 0.7 * error(hf.BootstrapProposal()))
    True
    """

    sampler: Sampler
    defensive_share: float = 0.3
    uses: ClassVar[Uses] = Uses(weights=True)

    def __post_init__(self) -> None:
        as_sampler("sampler", self.sampler)
        check_share("defensive_share", self.defensive_share)

    def check(self, model: Model) -> None:
        """See `Proposal`."""
        require(model, "HerdedProposal", ("transition_mean", "transition_covariance"))
        check_dim("model.dim", self.sampler, model.dim, "HerdedProposal with ")

    def initial(self, model: Model, n: int, rng: np.random.Generator) -> Particles:
        """See `Proposal`."""
        return initial_points(model, n, rng, self.sampler)

    def propose(
        self, transition: Transition, particles: Particles, rng: np.random.Generator, observation: Observation | None = None
    ) -> Particles:
        """See `Proposal`."""
        target = transition.predictive(particles.x, particles.weights)
        n, noise = particles.n_next, target.distinct_covariances[0]
        share = self.defensive_share if regularised(noise) is noise else 0.0
        drawn_from = GaussianMixture.unchecked(
            (1 - share) * target.weights + share / len(target), target.means, target.distinct_covariances
        )
        points = draw_points(self.sampler, drawn_from, n, rng)
        new_weights = points.log_weights
        if share:
            new_weights = new_weights + log_ratio(target, drawn_from, points.x)
        moved = Particles(transition.wrapped(points.x), new_weights - np.logaddexp.reduce(new_weights))
        return moved if observation is None else observation.weigh(moved)


def log_ratio(p: GaussianMixture, q: GaussianMixture, x: Array) -> Array:
    """Return ``log p(x) - log q(x)`` at points (n, d), (n,); on a line at a price that grows with n, and not its square."""
    x = as_points("x", x, p.dim)
    if p.dim == 1:
        return log_densities(p, x) - log_densities(q, x)
    if p.means is q.means and p.distinct_covariances is q.distinct_covariances:
        terms = p.component_log_densities(x)
        return log_sums(terms, p.weights) - log_sums(terms, q.weights)
    return p.log_density(x) - q.log_density(x)
