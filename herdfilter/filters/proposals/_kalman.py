"""What the proposals share that Kalman filters guide."""

from __future__ import annotations

import numpy as np

from herdfilter._checks import Array
from herdfilter._covariances import regularised
from herdfilter.mixture import GaussianMixture

WIDENING = 1e-9
"""Part of the variances before an update that is added after it: where the observation is sharp, or the fit nearly
singular, rounding may leave a covariance without a density. The weights know of it."""

ALIKE = 1e-6
"""Difference of covariances, relative to the variances, up to which they are taken for one."""


def defended(posterior: GaussianMixture, prior: GaussianMixture, share: float) -> GaussianMixture:
    """Components of the posterior, made regular, with weights ``(1 - share) posterior.weights + share prior.weights``.

    Where the observation is linear they have one covariance but for rounding, and get one: samplers are faster then.
    """
    before = np.diagonal(prior.distinct_covariances, axis1=1, axis2=2)
    covariances = posterior.distinct_covariances + WIDENING * before[:, None, :] * np.eye(prior.dim)
    spread = np.sqrt(np.diagonal(covariances[0]))
    if (np.ptp(covariances, axis=0) <= ALIKE * np.outer(spread, spread)).all():
        covariances = covariances[:1]
    weights = (1 - share) * posterior.weights + share * prior.weights
    return GaussianMixture.unchecked(weights, posterior.means, covariances)


def joined(first: GaussianMixture, second: GaussianMixture, share: float) -> GaussianMixture:
    """Components of both mixtures, those of the second with this share of the weight."""
    covariances = [np.broadcast_to(part.distinct_covariances, (len(part), part.dim, part.dim)) for part in (first, second)]
    return GaussianMixture.unchecked(
        np.concatenate([(1 - share) * first.weights, share * second.weights]),
        np.concatenate([first.means, second.means]),
        np.concatenate(covariances),
    )


def regular(noise: Array, user: str, step: int) -> Array:
    """Return a transition covariance if it has a density, else raise ValueError."""
    if regularised(noise) is not noise:
        raise ValueError(
            f"transition_covariance: {user} weighs points by transition densities and expected a positive definite "
            f"matrix, got {noise.tolist()} at step {step}"
        )
    return noise
