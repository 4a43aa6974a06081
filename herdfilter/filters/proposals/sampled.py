"""The parts that proposals share whose points a sampler draws."""

from __future__ import annotations

from typing import Any

import numpy as np

from herdfilter._checks import Array, as_points
from herdfilter.filters.proposals.base import BaseProposal
from herdfilter.mixture import GaussianMixture, log_sums
from herdfilter.models.contract import Model
from herdfilter.samplers.base import as_sampler, check_dim, draw_points
from herdfilter.samplers.line import log_densities
from herdfilter.samplers.quantile import QuantileSampling, quantiles


class SampledProposal(BaseProposal):
    """A proposal with a sampler, which draws the initial particles, too."""

    sampler: Any  # a Sampler; in some proposals it may be None

    def __post_init__(self) -> None:
        as_sampler("sampler", self.sampler)

    def check(self, model: Model) -> None:
        """See `Proposal`."""
        super().check(model)
        self.check_sampler("model.dim", model.dim)

    def check_sampler(self, name: str, dim: int, user: str = "") -> None:
        """Raise ValueError, naming an argument and the user of the sampler, if that serves fewer dimensions."""
        check_dim(name, self.sampler, dim, f"{user or type(self).__name__} with ")

    @property
    def initial_sampler(self) -> Any:
        """See `BaseProposal`."""
        return self.sampler

    def draw(
        self, q: GaussianMixture, n: int, rng: np.random.Generator, target: GaussianMixture | None = None
    ) -> tuple[Array, Array]:
        """Draw n points of the mixture q; return them (n, d) and their log-weights (n,), those of a target."""
        if type(self.sampler) is QuantileSampling and target is not None and target.means is q.means:
            x, log_ratios = quantiles(q, (np.arange(n) + 0.5) / n, target.weights)
            return x[:, None], log_ratios - np.log(n)
        points = draw_points(self.sampler, q, n, rng)
        if target is None:
            return points.x, points.log_weights
        return points.x, points.log_weights + log_ratio(target, q, points.x)


def log_ratio(p: GaussianMixture, q: GaussianMixture, x: Array) -> Array:
    """Return ``log p(x) - log q(x)`` at points (n, d), (n,); on a line at a price that grows with n, and not its square."""
    x = as_points("x", x, p.dim)
    if p.dim == 1:
        return log_densities(p, x) - log_densities(q, x)
    terms = p_terms = q.component_log_densities(x)
    if p.means is q.means and p.distinct_covariances is q.distinct_covariances:
        densities = np.exp(terms - terms.max(axis=1, keepdims=True)) @ np.stack([p.weights, q.weights], axis=1)
        if (densities > 0).all():  # no weight of zero hides where the highest component stands
            logs = np.log(densities)
            return np.asarray(logs[:, 0] - logs[:, 1])
    else:
        p_terms = p.component_log_densities(x)
    return log_sums(p_terms, p.weights) - log_sums(terms, q.weights)
