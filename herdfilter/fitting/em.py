"""Expectation-maximisation: the mixture of a few Gaussians that maximises the likelihood of weighted particles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy

from herdfilter._checks import Array, as_positive, check_count, check_fields, check_flags
from herdfilter._covariances import plain_and_regular, regularised
from herdfilter.fitting.base import Fit, unwrap_particles
from herdfilter.mixture import GaussianMixture
from herdfilter.samplers.compiled import CALLED, FAST, VECTORISE, njit

SEED_CANDIDATES = 64  # number of particles at which a component may start
FEWEST_RISES = 10  # a trial of more components is given up if so many more rises like the last one would not suffice


@dataclass(frozen=True)
class EMFit(Fit):
    r"""Gaussian mixture by weighted expectation-maximisation (Dempster, Laird and Rubin 1977).

    The weighted log-likelihood :math:`\sum_i w_i \log p(x_i)` is raised in turns: particle i belongs to component k with
    probability r_ik, and each component takes the weight, mean and covariance of the particles with weights w_i r_ik. The
    mixture therefore has the mean and the covariance of the particles, after any number of iterations. The fit works in
    coordinates in which the particles have covariance I, so that units do not matter.

    The loop is compiled, since scikit-learn's ``GaussianMixture`` takes no weights, and uses no random numbers: components
    start where they most lower the weighted squared distance to the nearest one (k-means++ of Arthur and Vassilvitskii 2007,
    made greedy), and the order of the particles matters only to rounding.

    A likelihood has no maximum if a component may shrink onto one particle. Two rules prevent it: no eigenvalue of a
    covariance falls below `floor`, and the likelihood, maximised under that constraint, still never decreases; and a
    component is dropped when its effective number of particles, :math:`(\sum_i w_i r_{ik})^2 / \sum_i (w_i r_{ik})^2`,
    falls below ``least``. The fit may therefore have fewer components than asked for, and has one if few particles carry
    weight.

    Parameters
    ----------
    n_components : int or "bic"
        Number of components; or "bic": components are added, up to `max_components`, as long as the next lowers the
        Bayesian information criterion (Schwarz 1978), :math:`p \log n_e - 2 n_e \sum_i w_i \log p(x_i)` with p free
        parameters and the effective sample size :math:`n_e = 1 / \sum_i w_i^2` for the number of observations. A trial is
        given up when, at ten times its last rise, the likelihood would still fall short; so one Gaussian, if it suffices,
        is cheap.
    max_components : int
        Largest number tried for "bic"; without effect otherwise.
    shared : bool
        One covariance for all components.
    least : float, optional
        Effective number of particles below which a component is dropped; by default d + 1, enough to span the space.
    floor : float
        Least variance of a component in any direction, as a fraction of the variance of all particles in it.
    tolerance : float
        The iteration ends when the log-likelihood, a mean over the particles, rises by less.
    max_iterations : int
        The most iterations since a component was last dropped.

    Examples
    --------
    >>> x = np.concatenate([np.linspace(-6, -4, 40), np.linspace(4, 6, 20)])[:, None]
    >>> mixture = hf.EMFit(n_components=2).fit(x, np.full(60, 1 / 60))
    >>> print(np.sort(mixture.weights).round(3), np.sort(mixture.means[:, 0]).round(2))
    [0.333 0.667] [-5.  5.]
    """

    n_components: int | str
    max_components: int = 4
    shared: bool = False
    least: float | None = None
    floor: float = 1e-6
    tolerance: float = 1e-3
    max_iterations: int = 100

    def __post_init__(self) -> None:
        check_flags(shared=self.shared)
        if isinstance(self.n_components, str):
            if self.n_components != "bic":
                raise ValueError(
                    f"n_components: expected an integer of at least 1 or 'bic', got {self.n_components!r}"
                )
        else:
            check_count("n_components", self.n_components)
        if self.least is not None:
            check_fields(self, least=as_positive)
        check_fields(
            self,
            max_components=check_count,
            floor=as_positive,
            tolerance=as_positive,
            max_iterations=check_count,
        )
        if self.floor > 1:
            raise ValueError(f"floor: expected a fraction of at most 1, got {self.floor!r}")

    def fit(
        self, particles: Array, weights: Array | None = None, circular: Sequence[int] = ()
    ) -> GaussianMixture:
        x, w = unwrap_particles(particles, weights, circular)
        x = x[w > 0]
        w = w[w > 0]
        # Sorted, so that the order of the particles does not change the rounding of sums.
        order = np.lexsort((w, *x.T[::-1]))
        x = x[order]
        w = w[order]
        mean = w @ x
        centred = x - mean
        covariance, regular = plain_and_regular(x, w, centred)
        # Whitened coordinates z (d, n), in which the particles have covariance I.
        factor = np.linalg.cholesky(regular)
        inverse = np.linalg.inv(factor)
        z = np.ascontiguousarray(inverse @ centred.T)
        # Particles in a plane or on a line: across it every component gets the small spread of `regular`.
        widening = (
            np.zeros_like(regular)
            if regular is covariance
            else inverse @ (regular - covariance) @ inverse.T
        )
        fitted = self._best(z, w, widening)
        covariances = factor @ fitted.covariances @ factor.T
        covariances = 0.5 * (covariances + np.swapaxes(covariances, 1, 2))
        covariances = np.array(
            [regularised(matrix) for matrix in covariances[: 1 if self.shared else None]]
        )
        means = mean + fitted.means @ factor.T
        return GaussianMixture.unchecked(fitted.weights, means, covariances)

    def _best(self, z: Array, w: Array, widening: Array) -> Any:
        """Return the `Components` for the given or the best number of them, in whitened coordinates."""
        d = len(z)
        fewest = d + 1.0 if self.least is None else self.least
        limits = Limits(self.floor, fewest, self.shared, self.tolerance, self.max_iterations)
        # Candidates evenly spaced in weight along the sorted particles.
        quantiles = (np.arange(SEED_CANDIDATES) + 0.5) / SEED_CANDIDATES
        candidates = z.T[np.unique(np.searchsorted(np.cumsum(w), quantiles))]
        observations = 1.0 / (w @ w)

        def penalty(components: int) -> float:
            """Return the penalty of the criterion, in units of the mean log-likelihood."""
            matrices = 1 if self.shared else components
            parameters = components * (1 + d) - 1 + matrices * d * (d + 1) / 2
            return float(0.5 * parameters * np.log(observations) / observations)

        # For the criterion one seed more is searched for each trial, else all at once.
        seed_count = (
            self.max_components if isinstance(self.n_components, str) else self.n_components
        )
        seeds = spread_seeds(z, w, candidates, seed_count)
        best: Any = None
        score = -np.inf
        seed_indices: list[int] = []
        for batch in ([seed] for seed in seeds) if self.n_components == "bic" else [list(seeds)]:
            seed_indices += batch
            target = score + penalty(len(seed_indices))
            rival, likelihood = maximise_mixture(
                z, w, candidates[seed_indices], widening, limits, target
            )
            rival_score = likelihood - penalty(len(rival.weights))
            if best is not None and not rival_score > score:
                break
            best = rival
            score = rival_score
        return best


class Limits(NamedTuple):
    """The constraints of a fit: least variance and effective number of points of a component; when the iteration ends."""

    floor: float
    fewest: float
    shared: bool
    tolerance: float
    max_iterations: int


class Components(NamedTuple):
    """Weights (K,), means (K, d), covariances (K, d, d), and their Cholesky factors with the diagonals inverted."""

    weights: Array
    means: Array
    covariances: Array
    factors: Array


def spread_seeds(z: Array, w: Array, candidates: Array, count: int) -> Iterator[int]:
    """Yield the indices of up to `count` candidates to start components from.

    Each is the one that most lowers the weighted squared distance of the points, the columns of z (d, n), to the nearest
    seed. This is the greedy form of the initialisation of k-means++ (Arthur and Vassilvitskii 2007), without random draws.
    """
    distances = scipy.spatial.distance.cdist(candidates, z.T, "sqeuclidean")
    nearest = np.full(len(w), np.inf)  # squared distance of each point to its nearest seed
    lowest = np.inf
    for _ in range(count):
        totals = np.minimum(nearest, distances) @ w
        # A gain within rounding does not count, so that ties do not depend on the order of sums.
        if not totals.min() < lowest * (1.0 - 1e-9):  # every candidate coincides with a seed
            break
        seed = int(np.argmax(totals * (1.0 - 1e-9) <= totals.min()))
        yield seed
        lowest = totals[seed]
        nearest = np.minimum(nearest, distances[seed])


@njit(**CALLED, fastmath=VECTORISE)
def maximise_mixture(z, w, seeds, widening, limits, target):
    """Return the components of greatest likelihood, and that.

    The points are the columns of z (d, n), so that the inner loops run over contiguous memory. `widening` (d, d) is added to
    every covariance before its eigenvalues are raised to at least the floor. A component with too few effective points is
    dropped. The iteration is given up if even `FEWEST_RISES` more rises like the last would not reach the log-likelihood
    `target`.
    """
    d, n = z.shape
    count = len(seeds)
    matrices = np.empty((count, d, d))
    components = Components(
        np.empty(count), np.empty((count, d)), matrices, np.empty((count, d, d))
    )
    weights, means, covariances, factors = components
    # w_i r_ik: weight of point i times the probability that it belongs to component k.
    shares = np.zeros((count, n))
    # At first a point belongs to its nearest seed.
    for i in range(n):
        nearest = 0
        best = np.inf
        for k in range(count):
            squared = 0.0
            for a in range(d):
                squared += (z[a, i] - seeds[k, a]) ** 2
            if squared < best:
                nearest = k
                best = squared
        shares[nearest, i] = w[i]
    likelihood = -np.inf
    iteration = -1  # until the seeds' groups have given the first components
    while iteration < limits.max_iterations:
        # At first all components share one covariance, so that no group is too small to have one.
        shared = limits.shared or iteration < 0
        _update_components(z, count, shares, widening, limits.floor, shared, components)
        # Drop the component with the fewest effective points if there are too few, not counting a difference by rounding.
        weakest = -1
        fewest = limits.fewest * (1.0 - 1e-9)
        for k in range(count if iteration >= 0 and count > 1 else 0):
            total = 0.0
            squares = 0.0
            for i in range(n):
                total += shares[k, i]
                squares += shares[k, i] ** 2
            effective = total * total / squares if squares > 0.0 else 0.0  # Kish's number
            if effective < fewest:
                weakest = k
                fewest = effective
        if weakest >= 0:
            count -= 1
            for k in range(weakest, count):  # close the gap
                weights[k] = weights[k + 1]
                for a in range(d):
                    means[k, a] = means[k + 1, a]
                    for b in range(a + 1):
                        factors[k, a, b] = factors[k + 1, a, b]
        previous = likelihood
        likelihood = _share_out(z, w, count, components, shares)
        if iteration < 0 or weakest >= 0:
            # The likelihood may have fallen, and is counted from here on.
            iteration = 0
            continue
        iteration += 1
        if iteration > 1:
            rise = likelihood - previous
            if rise < limits.tolerance or likelihood + FEWEST_RISES * rise < target:
                break
    return (
        Components(weights[:count], means[:count], covariances[:count], factors[:count]),
        likelihood,
    )


@njit(**FAST, inline="always")
def _update_components(z, count, shares, widening, floor, shared, components):
    """M-step: set the weights, means and covariances of greatest likelihood, with eigenvalues of at least `floor`."""
    weights, means, covariances, factors = components
    d, n = z.shape
    matrices = 1 if shared else count
    for k in range(matrices):
        for a in range(d):
            for b in range(d):
                covariances[k, a, b] = 0.0
    for k in range(count):
        # W_k = sum_i w_i r_ik
        total = 0.0
        for i in range(n):
            total += shares[k, i]
        weights[k] = total
        # A component without points is about to be dropped.
        scale = 1.0 / max(total, 1e-300)
        # m_k = sum_i w_i r_ik z_i / W_k
        for a in range(d):
            moment = 0.0
            for i in range(n):
                moment += shares[k, i] * z[a, i]
            means[k, a] = moment * scale
        # P_k = sum_i w_i r_ik (z_i - m_k) (z_i - m_k)' / W_k; a shared one is the sum over k without the division.
        m = 0 if shared else k
        for a in range(d):
            for b in range(a + 1):
                moment = 0.0
                for i in range(n):
                    moment += shares[k, i] * (z[a, i] - means[k, a]) * (z[b, i] - means[k, b])
                covariances[m, a, b] += moment if shared else moment * scale
    for m in range(matrices):
        for a in range(d):
            for b in range(a + 1):
                covariances[m, a, b] += widening[a, b]
                covariances[m, b, a] = covariances[m, a, b]
        # Eigenvalues are computed only if one is below the floor: then P - floor I has no Cholesky factor.
        if not _factorise(covariances[m], floor, factors[m]):
            values, vectors = np.linalg.eigh(covariances[m])
            for a in range(d):
                for b in range(d):
                    covariances[m, a, b] = 0.0
                    for c in range(d):
                        covariances[m, a, b] += (
                            vectors[a, c] * max(values[c], floor) * vectors[b, c]
                        )
        _factorise(covariances[m], 0.0, factors[m])
    for k in range(matrices, count):
        for a in range(d):
            for b in range(d):
                covariances[k, a, b] = covariances[0, a, b]
                factors[k, a, b] = factors[0, a, b]


@njit(**FAST, inline="always")
def _share_out(z, w, count, components, shares):
    """E-step: fill `shares` and return the mean log-likelihood of the points."""
    weights, means, _, factors = components
    d, n = z.shape
    y = np.empty((d, n))
    total_weight = 0.0  # 1, unless a component has just been dropped
    for k in range(count):
        total_weight += weights[k]
    for k in range(count):
        # Here `shares` holds log W_k + log N(z_i; m_k, P_k) without the constant, with y = L^-1 (z_i - m_k), L L' = P_k.
        log_peak = np.log(weights[k] / total_weight) if weights[k] > 0.0 else -np.inf
        for a in range(d):
            log_peak += np.log(factors[k, a, a])
        for i in range(n):
            shares[k, i] = log_peak
        for a in range(d):
            for i in range(n):
                y[a, i] = z[a, i] - means[k, a]
            for b in range(a):
                for i in range(n):
                    y[a, i] -= factors[k, a, b] * y[b, i]
            for i in range(n):
                y[a, i] *= factors[k, a, a]
                shares[k, i] -= 0.5 * y[a, i] ** 2
    # r_ik by log-sum-exp; the weights sum to 1, so that the constant enters the mean log-likelihood once.
    likelihood = -0.5 * d * np.log(2.0 * np.pi)
    for i in range(n):
        peak = shares[0, i]
        for k in range(1, count):
            peak = max(peak, shares[k, i])
        total = 0.0
        for k in range(count):
            shares[k, i] = np.exp(shares[k, i] - peak)
            total += shares[k, i]
        likelihood += w[i] * (peak + np.log(total))
        for k in range(count):
            shares[k, i] *= w[i] / total
    return likelihood


@njit(**FAST)
def _factorise(matrix, shift, factor):
    """Write the Cholesky factor of ``matrix - shift I``, with its diagonal INVERTED; return False if it is not definite."""
    d = len(matrix)
    for a in range(d):
        for b in range(a + 1):
            residual = matrix[a, b]
            for c in range(b):
                residual -= factor[a, c] * factor[b, c]
            if a > b:
                factor[a, b] = residual * factor[b, b]
            else:
                residual -= shift
                if not residual > 0.0:  # NaN, too
                    return False
                factor[a, a] = 1.0 / np.sqrt(residual)
    return True
