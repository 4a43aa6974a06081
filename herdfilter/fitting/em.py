"""Expectation-maximisation: the mixture of a few Gaussians that maximises the likelihood of weighted particles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from herdfilter._checks import Array, as_positive, check_count, check_fields, check_flags
from herdfilter._covariances import plain_and_regular, regularised
from herdfilter.fitting.base import Fit, unwrap_particles
from herdfilter.mixture import GaussianMixture
from herdfilter.samplers.compiled import CALLED, FAST, ONCE, VECTORISE, njit

CANDIDATES = 64  # number of particles at which a component may start
# A trial of more components is given up if this many more rises like the last one would not suffice.
PATIENCE = 10


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
        check_count("max_components", self.max_components)
        if self.least is not None:
            check_fields(self, least=as_positive)
        if as_positive("floor", self.floor) > 1:
            raise ValueError(f"floor: expected a fraction of at most 1, got {self.floor!r}")
        check_fields(self, tolerance=as_positive)
        check_count("max_iterations", self.max_iterations)

    def fit(
        self,
        particles: Array,
        weights: Array | None = None,
        circular: Sequence[int] = (),
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
        # In directions without spread every component gets that of `regular`.
        widening = (
            np.zeros_like(regular)
            if regular is covariance
            else inverse @ (regular - covariance) @ inverse.T
        )
        component_weights, means, covariances = self._best(z, w, widening)
        covariances = factor @ covariances @ factor.T
        covariances = 0.5 * (covariances + np.swapaxes(covariances, 1, 2))
        covariances = np.array(
            [regularised(matrix) for matrix in covariances[: 1 if self.shared else None]]
        )
        return GaussianMixture.unchecked(component_weights, mean + means @ factor.T, covariances)

    def _best(self, z: Array, w: Array, widening: Array) -> tuple[Array, Array, Array]:
        """Return weights, means and covariances for the given or the best number of components, in whitened coordinates."""
        d = len(z)
        fewest = d + 1.0 if self.least is None else self.least
        automatic = isinstance(self.n_components, str)
        largest = self.max_components if automatic else int(self.n_components)
        # Candidates evenly spaced in weight along the sorted particles.
        quantiles = (np.arange(CANDIDATES) + 0.5) / CANDIDATES
        candidates = np.unique(np.searchsorted(np.cumsum(w), quantiles))
        limits = (self.floor, fewest, self.shared, self.tolerance, self.max_iterations)
        # Most posteriors need at most two components; further seeds are computed when a third is tried.
        seeds = spread_seeds(z, w, candidates, min(2, largest) if automatic else largest)
        first = seeds[:1] if automatic else seeds
        best: tuple[Array, Array, Array, Array] = maximise_mixture(
            z,
            w,
            first,
            widening,
            *limits,
            -np.inf,
        )
        if not automatic:
            return best[:3]
        observations = 1.0 / (w @ w)

        def penalty(components: int) -> float:
            """Return the penalty of the criterion, in units of the mean log-likelihood."""
            parameters = (
                components * (1 + d) - 1 + (1 if self.shared else components) * d * (d + 1) / 2
            )
            return float(0.5 * parameters * np.log(observations) / observations)

        score = best[3][-1] - penalty(1)
        for count in range(2, largest + 1):
            if count == 3:
                seeds = spread_seeds(z, w, candidates, largest)
            if count > len(seeds):
                break
            result = maximise_mixture(
                z,
                w,
                seeds[:count],
                widening,
                *limits,
                score + penalty(count),
            )
            rival = result[3][-1] - penalty(len(result[0]))
            if not rival > score:
                break
            best = result
            score = rival
        return best[:3]


@njit(**CALLED, fastmath=VECTORISE)
def spread_seeds(z, w, candidates, count):
    """Choose up to `count` candidates, each the one that most lowers the weighted squared distance to the nearest seed.

    The points are the columns of z (d, n), so that the inner loops run over contiguous memory. This is the greedy form of
    the initialisation of k-means++ (Arthur and Vassilvitskii 2007), without its random draws.
    """
    d, n = z.shape
    distances = np.empty((len(candidates), n))
    for c in range(len(candidates)):
        for i in range(n):
            squared = 0.0
            for a in range(d):
                squared += (z[a, i] - z[a, candidates[c]]) ** 2
            distances[c, i] = squared
    nearest = np.full(n, np.inf)  # squared distance of each point to its nearest seed
    seeds = np.empty((count, d))
    lowest = np.inf
    for k in range(count):
        best = -1
        for c in range(len(candidates)):
            total = 0.0
            for i in range(n):
                total += w[i] * min(nearest[i], distances[c, i])
            # A gain within rounding does not count, so that ties do not depend on the order of sums.
            if total < lowest * (1.0 - 1e-9):
                best = c
                lowest = total
        if best < 0:  # every candidate coincides with a seed
            return seeds[:k]
        for a in range(d):
            seeds[k, a] = z[a, candidates[best]]
        for i in range(n):
            nearest[i] = min(nearest[i], distances[best, i])
    return seeds


@njit(**CALLED, fastmath=VECTORISE)
def maximise_mixture(
    z, w, seeds, widening, floor, min_effective, shared, tolerance, max_iterations, target
):
    """Return weights, means, covariances and the log-likelihoods after each iteration since a component was last dropped.

    `widening` (d, d) is added to every covariance before its eigenvalues are raised to at least `floor`. A component with
    fewer than `min_effective` effective points is dropped. The iteration is given up if even `PATIENCE` more rises like the
    last would not reach the log-likelihood `target`.
    """
    d, n = z.shape
    count = len(seeds)
    weights = np.empty(count)
    means = np.empty((count, d))
    covariances = np.empty((count, d, d))
    factors = np.empty((count, d, d))
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
    history = np.empty(max_iterations)
    iteration = -1
    while iteration < max_iterations:
        # At first all components share one covariance, so that no group is too small to have one.
        shared_now = shared or iteration < 0
        _update_components(
            z,
            count,
            shares,
            widening,
            floor,
            shared_now,
            weights,
            means,
            covariances,
            factors,
        )
        # Drop the component with the fewest effective points if there are too few, not counting a difference by rounding.
        weakest = -1
        fewest = min_effective * (1.0 - 1e-9)
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
        likelihood = _share_out(z, w, count, weights, means, factors, shares)
        if iteration < 0 or weakest >= 0:
            # The likelihood may have fallen, and is counted from here on.
            iteration = 0
            continue
        history[iteration] = likelihood
        iteration += 1
        if iteration > 1:
            rise = history[iteration - 1] - history[iteration - 2]
            if rise < tolerance or likelihood + PATIENCE * rise < target:
                break
    return weights[:count], means[:count], covariances[:count], history[:iteration]


@njit(**ONCE)
def _update_components(
    z, count, shares, widening, floor, shared, weights, means, covariances, factors
):
    """M-step: set the weights, means and covariances of greatest likelihood, with eigenvalues of at least `floor`."""
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


@njit(**ONCE)
def _share_out(z, w, count, weights, means, factors, shares):
    """E-step: fill `shares` and return the mean log-likelihood of the points."""
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
