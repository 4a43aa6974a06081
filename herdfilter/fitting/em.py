"""Expectation-maximisation: a mixture of few Gaussians, of greatest likelihood for the weighted particles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from herdfilter._checks import Array, as_positive, as_weighted_particles, check_count, check_flags
from herdfilter._covariances import regularised
from herdfilter.angles import unwrap_angles
from herdfilter.fitting._covariance import plain_and_regular
from herdfilter.fitting._em import maximise, spread_seeds
from herdfilter.mixture import GaussianMixture

CANDIDATES = 64  # places among the particles where a component may start


@dataclass(frozen=True)
class EMFit:
    """Gaussian mixture by weighted expectation-maximisation (Dempster, Laird and Rubin 1977).

    The weighted log-likelihood ``sum_i w_i log p(x_i)`` is raised in turns: particle i belongs to component k with
    probability r_ik, and each component takes the weight, mean and covariance of the particles with weights w_i r_ik. The
    mixture therefore has the mean and the covariance of the particles, after any number of iterations. Everything happens in
    coordinates in which the particles have covariance I, so that units do not matter.

    scikit-learn's ``GaussianMixture`` takes no weights, and drawing particles in proportion to theirs first would bring back
    the random draws that a herded filter has got rid of; hence the loop here, which is compiled. It uses no random numbers:
    components start where they most lower the weighted squared distance to the nearest one (k-means++ of Arthur and
    Vassilvitskii 2007, made greedy), and the order of the particles has no influence but on rounding.

    A likelihood has no maximum where a component may shrink onto one particle. Two rules prevent it: no eigenvalue of a
    covariance falls below `floor`, where the likelihood is maximised under that constraint and still never decreases; and
    a component is dropped when its effective number of particles, ``(sum_i w_i r_ik)^2 / sum_i (w_i r_ik)^2``, falls below
    ``least``. The fit may therefore have fewer components than asked for, and has one where few particles carry weight.

    Parameters
    ----------
    n_components : int or "bic"
        Number of components; or "bic": components are added, up to `max_components`, as long as the next lowers the
        Bayesian information criterion (Schwarz 1978), ``p log n_e - 2 n_e sum_i w_i log p(x_i)`` with p free parameters.
        The number of observations is taken to be the effective sample size ``n_e = 1 / sum_i w_i^2``: uneven weights are
        as good as fewer particles. A trial is given up when, at ten times its last rise, the likelihood would still fall
        short; that makes one Gaussian, where it suffices, cheap.
    max_components : int
        Largest number tried for "bic"; without effect otherwise.
    shared : bool
        One covariance for all components.
    least : float, optional
        Effective number of particles under which a component is dropped; d + 1 unless given, as many as it takes to span
        the space.
    floor : float
        Least variance of a component in any direction, as a fraction of the variance of all particles in it.
    tolerance : float
        The iteration ends when the log-likelihood, a mean over the particles, rises by less.
    max_iterations : int
        The most iterations since a component was last dropped.

    Raises
    ------
    ValueError
        If a parameter is not as described.

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
                raise ValueError(f"n_components: expected an integer of at least 1 or 'bic', got {self.n_components!r}")
        else:
            check_count("n_components", self.n_components)
        check_count("max_components", self.max_components)
        if self.least is not None:
            object.__setattr__(self, "least", as_positive("least", self.least))
        if as_positive("floor", self.floor) > 1:
            raise ValueError(f"floor: expected a fraction of at most 1, got {self.floor!r}")
        object.__setattr__(self, "tolerance", as_positive("tolerance", self.tolerance))
        check_count("max_iterations", self.max_iterations)

    def fit(self, particles: Array, weights: Array | None = None, circular: Sequence[int] = ()) -> GaussianMixture:
        """Fit particles (n, d) with weights (n,) that sum to 1, equal ones when omitted."""
        particles, weights = as_weighted_particles(particles, weights)
        x = unwrap_angles(particles, weights, circular)
        present = weights > 0
        x, w = x[present], weights[present]
        order = np.lexsort((w, *x.T[::-1]))  # the same sums in the same order, however the particles came
        x, w = x[order], w[order]
        mean = w @ x
        centred = x - mean
        covariance, regular = plain_and_regular(x, w, centred)
        factor = np.linalg.cholesky(regular)
        inverse = np.linalg.inv(factor)
        z = np.ascontiguousarray(inverse @ centred.T)
        # Where the particles have no spread at all, every component gets that of `regular`.
        widening = np.zeros_like(regular) if regular is covariance else inverse @ (regular - covariance) @ inverse.T
        share, means, covariances = self._best(z, w, widening)
        covariances = factor @ covariances @ factor.T
        covariances = 0.5 * (covariances + np.swapaxes(covariances, 1, 2))
        covariances = np.array([regularised(matrix) for matrix in covariances[: 1 if self.shared else None]])
        return GaussianMixture.unchecked(share, mean + means @ factor.T, covariances)

    def _best(self, z: Array, w: Array, widening: Array) -> tuple[Array, Array, Array]:
        """Weights, means and covariances, of the number asked for or of the best, in whitened coordinates."""
        d = len(z)
        least = d + 1.0 if self.least is None else self.least
        automatic = isinstance(self.n_components, str)
        largest = self.max_components if automatic else int(self.n_components)
        quantiles = (np.arange(CANDIDATES) + 0.5) / CANDIDATES
        candidates = np.unique(np.searchsorted(np.cumsum(w), quantiles))
        limits = (self.floor, least, self.shared, self.tolerance, self.max_iterations)
        if not automatic:
            seeds = spread_seeds(z, w, candidates, largest)
            return maximise(z, w, seeds, widening, *limits, -np.inf)[:3]
        observations = 1.0 / (w @ w)

        def penalty(components: int) -> float:
            """Return what the mean log-likelihood must make up for."""
            parameters = components * (1 + d) - 1 + (1 if self.shared else components) * d * (d + 1) / 2
            return float(0.5 * parameters * np.log(observations) / observations)

        seeds = spread_seeds(z, w, candidates, min(2, largest))  # all that most posteriors need
        best = maximise(z, w, seeds[:1], widening, *limits, -np.inf)
        score = best[3][-1] - penalty(1)
        for count in range(2, largest + 1):
            if count == 3:
                seeds = spread_seeds(z, w, candidates, largest)
            if count > len(seeds):
                break
            result = maximise(z, w, seeds[:count], widening, *limits, score + penalty(count))
            rival = result[3][-1] - penalty(len(result[0]))
            if not rival > score:
                break
            best, score = result, rival
        return best[:3]
