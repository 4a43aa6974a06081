"""Divisive fit: a Gaussian is split in two as long as its particles do not look like draws from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy

from herdfilter._checks import Array, as_number, check_count
from herdfilter._covariances import plain_and_regular, regularised
from herdfilter.fitting.base import Fit, unwrap_particles
from herdfilter.fitting.division import LEAST_VARIANCE, divide
from herdfilter.mixture import GaussianMixture

SPREAD_EIGENVALUE = 1e-8  # of the correlation matrix: there is no spread below it; `regularised` raises it to this
EDGES = np.linspace(-4.0, 4.0, 129)  # of the cells, in standard deviations, in which particles are counted along a line
NORMAL = scipy.special.ndtr(EDGES)


@dataclass(frozen=True)
class DivisiveFit(Fit):
    r"""Gaussian mixture by division; the number of components grows with the number of particles and their misfit.

    All particles are one component at first. A component is divided in two if both of these hold:

    - Its particles differ from as many independent draws of one Gaussian, at the level `significance`, in
      the third moment :math:`\mathrm E[|y|^2 y]` or the fourth, :math:`\mathrm E[|y|^2 y y^\top]`, of the whitened
      particles (the latter's trace is the kurtosis of Mardia 1970), or in the distribution functions along the axes of the
      fourth (Anderson and Darling 1954, for an estimated mean and variance: D'Agostino and Stephens 1986).
    - Two Gaussians would suit new particles better than one: the rise of the log-likelihood exceeds what the additional
      parameters gain by chance, by the corrected criterion of Akaike (Hurvich and Tsai 1989).

    Particles count as their effective number, :math:`1 / \sum_i w_i^2`. So few particles give one Gaussian, enough particles
    reveal any misfit, and the mixture tends to the distribution of the particles as their number grows. The clustering by
    G-means (Hamerly and Elkan 2003) divides by a test, too, into hard cells. Here a particle at the border belongs to both
    halves in part, as by expectation-maximisation, so that the halves of two overlapping Gaussians are Gaussian, and are not
    divided again. The first cut lies across an axis of the fourth moments or along the third moment, at the gap if there is
    one (Scott and Symons 1971), or splits centre from shell if tails are heavy.

    No random numbers are used; the order of the particles matters only to rounding, and affine maps of the
    particles map the mixture. It has the mean and the covariance of the particles. The time is O(n) for each division.

    Parameters
    ----------
    significance : float
        Probability, in (0, 1), with which each test takes independent draws of a Gaussian for something else. Herded
        particles are more regular than independent ones and rarely misjudged.
    max_components : int, optional
        Largest number of components; unlimited by default. The halves of a component share the remaining number in
        proportion to their weights.

    Examples
    --------
    >>> x = np.concatenate([np.linspace(-6, -4, 40), np.linspace(4, 6, 20)])[:, None]
    >>> mixture = hf.DivisiveFit().fit(x, np.full(60, 1 / 60))
    >>> print(mixture.weights.round(3), mixture.means[:, 0].round(2))
    [0.333 0.667] [ 5. -5.]
    """

    significance: float = 0.01
    max_components: int | None = None

    def __post_init__(self) -> None:
        as_number("significance", self.significance, "a number between 0 and 1", lambda share: 0 < share < 1)
        if self.max_components is not None:
            check_count("max_components", self.max_components)

    def fit(self, particles: Array, weights: Array | None = None, circular: Sequence[int] = ()) -> GaussianMixture:
        x, weights = unwrap_particles(particles, weights, circular)
        mean = weights @ x
        centred = x - mean
        covariance, regular = plain_and_regular(x, weights, centred)
        if regular is covariance:
            factor = np.linalg.cholesky(regular)
            inverse = np.linalg.inv(factor)
        else:
            # F (d, r) and its left inverse, F F' the covariance, for the r directions in which there is spread
            scale = np.sqrt(regular.diagonal())
            values, vectors = np.linalg.eigh(covariance / (scale[:, None] * scale))
            spread = values > SPREAD_EIGENVALUE
            roots, vectors = np.sqrt(values[spread]), vectors[:, spread]
            factor, inverse = scale[:, None] * vectors * roots, (vectors / roots / scale[:, None]).T
        most = len(x) if self.max_components is None else self.max_components
        rank = len(inverse)
        if rank == 0 or most == 1:
            return GaussianMixture.unchecked(np.ones(1), mean[None, :], regular)
        z = np.ascontiguousarray(inverse @ centred.T)
        limits = _critical_values(rank, self.significance)
        share, means, covariances = divide(z, weights, LEAST_VARIANCE, limits, EDGES, NORMAL, most)
        if len(share) == 1:
            return GaussianMixture.unchecked(np.ones(1), mean[None, :], regular)
        covariances = factor @ covariances @ factor.T + (regular - covariance)
        covariances = 0.5 * (covariances + np.swapaxes(covariances, 1, 2))
        covariances = np.array([regularised(matrix) for matrix in covariances])
        return GaussianMixture.unchecked(share, mean + means @ factor.T, covariances)


@lru_cache
def _critical_values(d: int, significance: float) -> Array:
    """Return the critical values of the four statistics in d dimensions at the level `significance`."""
    uneven = d * (d + 1) / 2 - 1
    # A^2 exceeds a with the probability exp(1.2937 - 5.709 a + 0.0186 a^2); d axes share the level.
    rest = 1.2937 - np.log(significance / d)
    distance = (5.709 - np.sqrt(5.709**2 - 4 * 0.0186 * rest)) / (2 * 0.0186)
    fourth = scipy.special.chdtri(uneven, significance) if uneven > 0 else np.inf
    return np.array([scipy.special.chdtri(d, significance), fourth, scipy.special.chdtri(1, significance), distance])
