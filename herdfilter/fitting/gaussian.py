"""One Gaussian with the particles' mean and covariance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from herdfilter._checks import Array
from herdfilter._covariances import plain_and_regular
from herdfilter.fitting.base import Fit, unwrap_particles
from herdfilter.mixture import GaussianMixture


@dataclass(frozen=True)
class GaussianFit(Fit):
    """Moment matching, as in the Gaussian particle filter (Kotecha and Djuric 2003).

    Particles that lie in a plane, or coincide, get a small width: no eigenvalue of the correlation matrix is below 1e-8.

    Examples
    --------
    >>> mixture = hf.GaussianFit().fit(np.array([[0.0], [1.0], [4.0]]), np.array([0.25, 0.5, 0.25]))
    >>> print(len(mixture), mixture.mean, mixture.covariance)
    1 [1.5] [[2.25]]
    """

    def fit(
        self, particles: Array, weights: Array | None = None, circular: Sequence[int] = ()
    ) -> GaussianMixture:
        x, weights = unwrap_particles(particles, weights, circular)
        mean = weights @ x
        # The regular one, which can be factorised.
        covariance = plain_and_regular(x, weights, x - mean)[1]
        return GaussianMixture.unchecked(np.ones(1), mean[None, :], covariance)
