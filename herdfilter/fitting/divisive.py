"""Division of the particles into as many Gaussians as they show."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy

from herdfilter._checks import Array
from herdfilter.angles import unwrap_angles
from herdfilter.fitting._covariance import plain_and_regular
from herdfilter.fitting._division import divide
from herdfilter.fitting.base import checked
from herdfilter.mixture import GaussianMixture, floored

EDGES = np.linspace(-4.0, 4.0, 129)
NORMAL = scipy.special.ndtr(EDGES)


@lru_cache
def _limits(d, significance):
    third = scipy.special.chdtri(d, significance)
    freedom = d * (d + 1) / 2 - 1
    uneven = scipy.special.chdtri(freedom, significance) if freedom else np.inf
    excess = scipy.special.chdtri(1, significance)
    ad = (5.709 - np.sqrt(5.709**2 - 4 * 0.0186 * (1.2937 - np.log(significance / d)))) / (2 * 0.0186)
    return np.array([third, uneven, excess, ad])


@dataclass(frozen=True)
class DivisiveFit:
    """Gaussian mixture by division: a component is divided as long as its particles can be told from a Gaussian."""

    significance: float = 0.01

    def fit(self, particles: Array, weights: Array, circular: Sequence[int] = ()) -> GaussianMixture:
        particles, weights = checked(particles, weights)
        x = unwrap_angles(particles, weights, circular)
        mean = weights @ x
        centred = x - mean
        covariance, regular = plain_and_regular(x, weights, centred)
        factor = np.linalg.cholesky(regular)
        z = np.ascontiguousarray(np.linalg.inv(factor) @ centred.T)
        share, means, covariances = divide(z, weights, 1e-6, _limits(x.shape[1], self.significance), EDGES, NORMAL, len(x))
        if len(share) == 1:
            return GaussianMixture.trusted(np.ones(1), mean[None, :], regular)
        covariances = factor @ covariances @ factor.T
        covariances = 0.5 * (covariances + np.swapaxes(covariances, 1, 2))
        covariances = np.array([floored(matrix) for matrix in covariances])
        return GaussianMixture.trusted(share, mean + means @ factor.T, covariances)
