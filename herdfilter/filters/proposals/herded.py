"""Proposals whose points a sampler draws: what they share, and herding from the predictive mixture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter.filters.observation import Observation
from herdfilter.filters.proposals.base import BaseProposal, Uses
from herdfilter.filters.state import Particles
from herdfilter.mixture import GaussianMixture, log_sums
from herdfilter.models import contract
from herdfilter.models.resolved import Transition
from herdfilter.samplers import base
from herdfilter.samplers.line import log_densities


class SampledProposal(BaseProposal):
    """A proposal with a sampler, which draws the initial particles, too."""

    sampler: Any  # a Sampler; in some proposals it may be None

    def __post_init__(self) -> None:
        _checks.check_methods("sampler", self.sampler, "sample")

    def check(self, model: contract.Model) -> None:
        """See `Proposal`."""
        super().check(model)
        self.check_sampler("model.dim", model.dim)

    def check_sampler(self, name: str, dim: int, user: str = "") -> None:
        """Raise ValueError, naming an argument and the user of the sampler, if that serves fewer dimensions."""
        base.check_dim(name, self.sampler, dim, f"{user or type(self).__name__} with ")

    @property
    def initial_sampler(self) -> Any:
        """See `BaseProposal`."""
        return self.sampler

    def draw(
        self,
        q: GaussianMixture,
        n: int,
        rng: np.random.Generator,
        target: GaussianMixture | None = None,
    ) -> tuple[Array, Array]:
        """Draw n points of the mixture q; return them (n, d) and their log-weights (n,), those of a target."""
        if (
            target is not None
            and target.means is q.means
            and q.shared
            and isinstance(self.sampler, base.RatioSampler)
            and self.sampler.weighs
        ):
            x, log_ratios = self.sampler.draw_weighted(q, n, target.weights)
            return x, log_ratios - np.log(n)
        if isinstance(self.sampler, base.MixtureSampler) and self.sampler.draws:  # nothing to check
            x, weights = self.sampler.draw(q, n, rng)
            with np.errstate(divide="ignore"):
                log_weights = np.log(weights)
        else:
            points = base.draw_points(self.sampler, q, n, rng)
            x = _checks.as_points("x", points.x, q.dim)
            log_weights = points.log_weights
        return x, log_weights if target is None else log_weights + log_ratio(target, q, x)


@dataclass(frozen=True)
class HerdedProposal(SampledProposal):
    r"""Draws from :math:`\sum_i w_i N(f(x_i), Q)`, the predictive density of additive Gaussian transition noise.

    With a herding sampler this is sequential kernel herding (Lacoste-Julien, Lindsten and Bach 2015). The weights enter the
    mixture, so that no resampling takes place.

    A mode of weight below 1/n would get no deterministic point, ever, and the filter could not find back to it. Points are
    therefore drawn from the mixture with weights :math:`(1 - a) w_i + a / n` (a defensive mixture, Hesterberg 1995) and
    given the exact importance weights, which are at most :math:`1 / (1 - a)`.

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

    sampler: base.Sampler
    defensive_share: float = 0.3
    uses = Uses(weights=True)
    transitions = (contract.ADDITIVE,)

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.check_share("defensive_share", self.defensive_share)

    def propose(
        self,
        transition: Transition,
        particles: Particles,
        rng: np.random.Generator,
        observation: Observation | None = None,
    ) -> Particles:
        """See `Proposal`."""
        target = transition.predictive(particles.x, particles.weights)
        share = self.defensive_share if transition.has_density else 0.0
        defended = (1 - share) * target.weights + share / len(target)
        q = GaussianMixture.unchecked(defended, target.means, target.distinct_covariances)
        x, log_weights = self.draw(q, particles.n_next, rng, target if share else None)
        predicted, _ = Particles.unchecked(transition.wrapped(x), log_weights).normalised()
        return predicted if observation is None else observation.weigh(predicted)


def log_ratio(p: GaussianMixture, q: GaussianMixture, x: Array) -> Array:
    """Return ``log p(x) - log q(x)`` at points (n, d), (n,); on a line at a price that grows with n, and not its square."""
    if x.shape[1] == 1:
        return log_densities(p, x) - log_densities(q, x)
    if p.means is q.means and p.distinct_covariances is q.distinct_covariances:
        terms = q.log_terms(x)
        terms -= terms.max(axis=1, keepdims=True)
        densities = np.exp(terms, out=terms) @ np.stack([p.weights, q.weights], axis=1)
        if (densities > 0).all():  # no weight of zero hides where the highest component stands
            logs = np.log(densities)
            return np.asarray(logs[:, 0] - logs[:, 1])
    return log_sums(p.log_terms(x), p.weights) - log_sums(q.log_terms(x), q.weights)
