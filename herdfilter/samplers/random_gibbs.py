"""Random Gibbs sampling from a mixture (Geman and Geman 1984): the random counterpart of herded Gibbs sampling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from herdfilter._checks import as_generator, check_count
from herdfilter._covariances import regularised
from herdfilter.bandwidths import kernel_covariance
from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points
from herdfilter.samplers.base import check_request
from herdfilter.samplers.compiled import CALLED, INSIDE, njit
from herdfilter.samplers.gibbs.recursion import measure, update_residuals
from herdfilter.samplers.herding.frame import KernelFrame, heaviest


@dataclass(frozen=True)
class RandomGibbs:
    """A Gibbs chain: each coordinate in turn is drawn from its exact conditional, a one-dimensional mixture.

    Given the others, coordinate i of component m has the mean ``x_i - r_i / L_ii`` and the variance ``1 / L_ii``, with
    precision L and ``r = L (x - means[m])``. The coordinates are the principal axes of the average component covariance,
    relative to that of the mixture: the points of a single Gaussian are independent draws.

    **The chain hardly ever jumps between modes several standard deviations apart**, unless along one of its axes, and so
    misses components for any number of points; take `RandomSampling` there. A component without extent in some direction
    counts as up to 1e-4 of the mixture's standard deviation wide in it.

    Parameters
    ----------
    sweeps : int
        Sweeps over the coordinates per point; more of them make successive points less dependent.
    burn_in : int, optional
        Start at the mean of the heaviest component and leave out the points of so many sweeps. By default, start from a
        draw of the mixture: the chain is then in equilibrium from its first point on.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([1.0], [[5, 2]], [[[1, 0.6], [0.6, 1]]])
    >>> points = hf.RandomGibbs().sample(mixture, 400, rng=1)
    >>> print(points.mean.round(1), points.covariance[0, 1].round(1))
    [4.9 2. ] 0.7
    """

    sweeps: int = 1
    burn_in: int | None = None

    def __post_init__(self) -> None:
        check_count("sweeps", self.sweeps)
        if self.burn_in is not None:
            check_count("burn_in", self.burn_in, minimum=0)

    def sample(self, mixture: GaussianMixture, n: int, rng: np.random.Generator | int | None = None) -> Points:
        """Draw `n` successive points of a chain, with equal weights; `rng` is a Generator, a seed, or None."""
        n, rng = check_request(mixture, n, rng), as_generator(rng)
        frame = KernelFrame.of(mixture, kernel_covariance(regularised(mixture.covariance), mixture, n), turn=True)
        if self.burn_in is None:
            start = frame.forward(mixture.sample(1, rng))[0]
        else:
            start = frame.means[heaviest(np.exp(frame.log_weights))].copy()
        left_out = self.burn_in or 0
        shape = left_out + n * self.sweeps, mixture.dim
        uniform, normal = rng.random(shape), rng.standard_normal(shape)
        precision, log_det = frame.precisions(0.0)
        means, chain = np.ascontiguousarray(frame.means), np.empty(shape)
        work = np.empty(means.shape), np.empty(len(means))
        random_gibbs(frame.log_weights + 0.5 * log_det, means, precision, start, uniform, normal, *work, chain)
        return Points(frame.back(chain[left_out + self.sweeps - 1 :: self.sweeps]))


@njit(**CALLED)
def random_gibbs(log_weights, means, precision, x, uniform, normal, residual, share, chain):
    """Fill in the states of a chain (n, d) after each of n sweeps, starting from x (d,).

    Components have log-weights (M,) before the exponential, means (M, d) and precisions (M, d, d), or one
    shared (1, d, d). The draws of sweep t for coordinate i use ``uniform[t, i]``, for the component, and ``normal[t, i]``.
    `residual` (M, d) and `share` (M,) are working memory.
    """
    sweeps, d = chain.shape
    components = len(means)
    for t in range(sweeps):
        for i in range(d):
            peak = -np.inf
            if i == 0:  # afresh, against drift
                measure(means, precision, x, residual)
            for m in range(components):
                k = m if len(precision) > 1 else 0
                # log-weights of the conditional of coordinate i: the quadratic form where it is at its conditional mean
                ratio = residual[m, i] / precision[k, i, i]
                share[m] = log_weights[m] - 0.5 * np.log(precision[k, i, i])
                for j in range(d):
                    if j != i:
                        share[m] -= 0.5 * (residual[m, j] - ratio * precision[k, i, j]) * (x[j] - means[m, j])
                peak = max(peak, share[m])
            label = draw_component(share, peak, uniform[t, i])
            inverse = 1.0 / precision[label if len(precision) > 1 else 0, i, i]
            step = normal[t, i] * np.sqrt(inverse) - residual[label, i] * inverse
            x[i] += step
            update_residuals(precision, i, step, residual)
        for i in range(d):
            chain[t, i] = x[i]


@njit(**INSIDE)
def draw_component(log_share, peak, u):
    """Return the index at which the cumulative share passes u of the whole."""
    total = 0.0
    best = 0
    for m in range(len(log_share)):
        if log_share[m] == peak:
            best = m
        log_share[m] = np.exp(log_share[m] - peak)
        total += log_share[m]
    left = u * total
    for m in range(len(log_share)):
        left -= log_share[m]
        if left < 0.0:
            return m
    return best  # only rounding leads here
