"""Densities that points are weighed by."""

from __future__ import annotations

from herdfilter._checks import Array, as_points
from herdfilter.mixture import GaussianMixture, log_sums
from herdfilter.samplers.line.densities import log_densities


def log_ratio(p: GaussianMixture, q: GaussianMixture, x: Array) -> Array:
    """Return ``log p(x) - log q(x)`` at points (n, d), (n,); on a line at a price that grows with n, and not its square."""
    x = as_points("x", x, p.dim)
    if p.dim == 1:
        return log_densities(p, x) - log_densities(q, x)
    if p.means is q.means and p.distinct_covariances is q.distinct_covariances:
        terms = p.component_log_densities(x)
        return log_sums(terms, p.weights) - log_sums(terms, q.weights)
    return p.log_density(x) - q.log_density(x)
