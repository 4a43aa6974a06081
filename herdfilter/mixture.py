"""Gaussian mixtures: the target of every sampler and the result of every fit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter._covariances import covariance_factor
from herdfilter._repr import html_repr
from herdfilter.angles import mean_and_covariance

DENSITIES_AT_ONCE = 2**21  # numbers of an intermediate array, which limits the memory of a call


class GaussianMixture:
    r"""A finite mixture of Gaussians, :math:`\sum_m w_m N(\mu_m, \Sigma_m)`.

    Parameters
    ----------
    weights : array_like, shape (M,)
        Non-negative component weights; normalised to sum to 1.
    means : array_like, shape (M, d)
        Component means, in state units.
    covariances : array_like, shape (M, d, d), (d, d), (M, d) or (M,)
        Symmetric positive semi-definite matrices, one for each component or one (d, d) for all; or the variances (M, d) of
        diagonal ones, or the variance (M,) of spherical ones. If M equals d, shape (d, d) is the shared matrix: for diagonal
        ones pass ``variances[:, None] * np.eye(d)``.

    Raises
    ------
    ValueError
        If a shape does not fit, a weight is negative or not finite, a covariance is not positive semi-definite, or a
        variance lies between 0 and 1e-280 and so loses digits.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([0.75, 0.25], means=[[0, 0], [4, 0]], covariances=np.eye(2))
    >>> print(mixture.mean, mixture.covariance.tolist())
    [1. 0.] [[4.0, 0.0], [0.0, 1.0]]
    >>> print(mixture.log_density([[0, 0], [4, 0]]).round(2))
    [-2.13 -3.22]
    >>> mixture.marginal([0])
    GaussianMixture(components=2, dim=1, shared)
    >>> print(mixture.conditional([0], [4.0]).weights.round(4))  # given that the first coordinate is 4
    [0.001 0.999]
    """

    weights: Array
    means: Array
    distinct_covariances: Array
    """Covariances, shape (M, d, d), or (1, d, d) if all components share one."""

    def __init__(self, weights: ArrayLike, means: ArrayLike, covariances: ArrayLike) -> None:
        self.weights = _checks.as_weights("weights", weights)
        # A copy, as the caller may use the array for something else.
        self.means = _checks.as_array("means", means, (len(self.weights), None)).copy()
        m, d = self.means.shape
        if d == 0:
            raise ValueError("means: expected at least one dimension, got shape (M, 0)")
        self.distinct_covariances = as_component_covariances(covariances, m, d)

    @classmethod
    def from_sklearn(cls, gmm: Any) -> GaussianMixture:
        """Convert a fitted ``GaussianMixture`` or ``BayesianGaussianMixture`` of scikit-learn, of any covariance type.

        A Bayesian one gives its ``weights_``, ``means_`` and ``covariances_``, without their uncertainty. TypeError if `gmm`
        is something else, or not fitted.
        """
        try:
            covariances = gmm.covariances_
            # Two components in two dimensions: the shape alone does not tell diagonal from shared covariances.
            if gmm.covariance_type in ("diag", "spherical"):
                covariances = diagonal(covariances, np.shape(gmm.means_)[1])
            return cls(gmm.weights_, gmm.means_, covariances)
        except AttributeError:
            raise TypeError(
                f"gmm: expected a fitted GaussianMixture or BayesianGaussianMixture of scikit-learn, got "
                f"{_checks.short_repr(gmm)}"
            ) from None

    @classmethod
    def from_kde(cls, kde: Any) -> GaussianMixture:
        """Convert a ``scipy.stats.gaussian_kde``: one component per data point; TypeError for other objects."""
        try:
            return cls(kde.weights, kde.dataset.T, kde.covariance)
        except AttributeError:
            raise TypeError(
                f"kde: expected a scipy.stats.gaussian_kde, got {_checks.short_repr(kde)}"
            ) from None

    @classmethod
    def unchecked(cls, weights: Array, means: Array, covariances: Array) -> GaussianMixture:
        """Build a mixture from arrays that are valid by construction (weights sum to 1)."""
        self = object.__new__(cls)
        self.weights = weights
        self.means = means
        self.distinct_covariances = covariances if covariances.ndim == 3 else covariances[None]
        return self

    def __repr__(self) -> str:
        return f"GaussianMixture(components={len(self)}, dim={self.dim}{', shared' if self.shared else ''})"

    _repr_html_ = html_repr

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def dim(self) -> int:
        """Dimension d of the state."""
        return int(self.means.shape[1])

    @property
    def shared(self) -> bool:
        """True if all components have the same covariance."""
        return len(self.distinct_covariances) == 1

    @property
    def covariances(self) -> Array:
        """Component covariances, shape (M, d, d); a read-only view when shared."""
        return np.broadcast_to(self.distinct_covariances, (len(self), self.dim, self.dim))

    @cached_property
    def mean(self) -> Array:
        """Mean of the mixture, shape (d,)."""
        return self.weights @ self.means

    @cached_property
    def covariance(self) -> Array:
        """Covariance of the mixture, within plus between components, shape (d, d)."""
        # the law of total covariance
        return self.average_covariance + mean_and_covariance(self.means, self.weights)[1]

    @cached_property
    def average_covariance(self) -> Array:
        """Weighted average of the component covariances, shape (d, d)."""
        cov = self.distinct_covariances
        return cov[0] if self.shared else np.asarray(np.tensordot(self.weights, cov, axes=1))

    @cached_property
    def factors(self) -> Array:
        """Matrices F with ``F @ F.T`` the distinct covariances, (M, d, d) or (1, d, d); singular ones are allowed."""
        return covariance_factor(self.distinct_covariances)

    def component_log_densities(self, x: ArrayLike) -> Array:
        """Return the log-density of every component, without its weight, at every point; (n, d) -> (n, M)."""
        return self.log_terms(_checks.as_points("x", x, self.dim))

    def log_terms(self, x: Array) -> Array:
        """Do as `component_log_densities`, unchecked."""
        inverse, log_det = self._inverse_factors
        if self.shared:
            # Every point is whitened once, relative to the first mean: far from the origin digits would cancel.
            white = (x - self.means[0]) @ inverse[0].T
            squares: Array = scipy.spatial.distance.cdist(
                white, (self.means - self.means[0]) @ inverse[0].T, "sqeuclidean"
            )
        else:
            squares = np.empty((len(x), len(self)))
            # Whitening all points for all components at once would take n M d numbers.
            rows = max(1, DENSITIES_AT_ONCE // self.means.size)
            for start in range(0, len(x), rows):
                white = inverse @ (x[start : start + rows].T - self.means[:, :, None])
                squares[start : start + rows] = np.einsum("min,min->nm", white, white)
        squares += log_det + self.dim * float(np.log(2 * np.pi))
        squares *= -0.5
        return squares

    @cached_property
    def _inverse_factors(self) -> tuple[Array, Array]:
        """Inverse Cholesky factors and log-determinants of the distinct covariances."""
        try:
            chol = np.linalg.cholesky(self.distinct_covariances)
        except np.linalg.LinAlgError:
            raise ValueError(
                "covariances: expected positive definite ones for a density, got a singular one"
            ) from None
        return np.linalg.inv(chol), 2 * np.log(np.diagonal(chol, axis1=-2, axis2=-1)).sum(-1)

    def log_density(self, x: ArrayLike) -> Array:
        """Return the log-density, (n, d) -> (n,); ValueError if `x` has another shape or a covariance is singular."""
        x = _checks.as_points("x", x, self.dim)
        if len(self) > 1:
            return log_sums(self.log_terms(x), self.weights)
        try:
            chol = np.linalg.cholesky(self.distinct_covariances[0])
        except np.linalg.LinAlgError:
            return self.log_terms(x)[:, 0]
        # For one component, solving with the factor is cheaper than inverting it first.
        white = scipy.linalg.lapack.dtrtrs(chol, (x - self.means[0]).T, lower=1)[0]
        log_det = 2 * np.log(chol.diagonal()).sum() + self.dim * np.log(2 * np.pi)
        return np.asarray(-0.5 * (log_det + np.einsum("in,in->n", white, white)))

    def marginal(self, dims: int | Sequence[int] | np.ndarray) -> GaussianMixture:
        """Return the marginal distribution of the named dimensions, in the order given."""
        index = self._dims(dims)
        cov = self.distinct_covariances[:, index[:, None], index]
        return GaussianMixture.unchecked(self.weights, self.means[:, index], cov)

    def conditional(self, dims: int | Sequence[int], values: ArrayLike) -> GaussianMixture:
        """Return the distribution of the other dimensions, in ascending order, given ``x[dims] = values``, shape (k,).

        ValueError if `dims` names all dimensions or one that does not exist, or the covariance of `dims` is singular.
        """
        fixed = self._dims(dims)
        free = np.setdiff1d(np.arange(self.dim), fixed)
        if free.size == 0:
            raise ValueError("dims: expected to leave at least one dimension free, got all")
        values = np.atleast_1d(_checks.as_numbers("values", values, (len(fixed),)))
        values = _checks.as_array("values", values, (len(fixed),), largest=_checks.LARGEST)
        marginal = self.marginal(fixed)
        with np.errstate(divide="ignore"):
            log_w = np.log(self.weights) + marginal.component_log_densities(values[None, :])[0]
        # Far from all components every density underflows, but not their ratios to the largest.
        weights = np.exp(log_w - log_w.max())
        # As in Kalman's update: the gain G = S_12 S_22^-1, for the mean m_1 + G (v - m_2) and the covariance S_11 - G S_21
        cov = self.distinct_covariances
        cross = cov[:, fixed[:, None], free]  # S_21
        gain = np.linalg.solve(marginal.distinct_covariances, cross).swapaxes(1, 2)
        means = self.means[:, free] + (gain @ (values - marginal.means)[:, :, None])[:, :, 0]
        covs = cov[:, free[:, None], free] - gain @ cross
        # Rounding leaves a difference of products asymmetric.
        covs = 0.5 * (covs + covs.swapaxes(1, 2))
        return GaussianMixture.unchecked(weights / weights.sum(), means, covs)

    def convolve(self, covariance: ArrayLike) -> GaussianMixture:
        """Return the distribution of the sum with independent Gaussian noise of the given covariance (d, d)."""
        added = _checks.as_covariance("covariance", covariance, self.dim)
        return GaussianMixture.unchecked(
            self.weights, self.means, self.distinct_covariances + added
        )

    def sample(self, n: int, rng: _checks.SeedLike = None) -> Array:
        """Draw `n` independent points, shape (n, d)."""
        n = _checks.check_count("n", n)
        rng = _checks.as_generator(rng)
        labels = rng.choice(len(self), size=n, p=self.weights)
        return self.place(labels, rng.standard_normal((n, self.dim)))

    def place(self, labels: np.ndarray, noise: Array) -> Array:
        """Return ``means[m] + F_m z`` for labels m (n,) and standard normal z (n, d), with the `factors` F; shape (n, d)."""
        scaled = (
            noise @ self.factors[0].T
            if self.shared
            else np.einsum("nij,nj->ni", self.factors[labels], noise)
        )
        return np.asarray(self.means[labels] + scaled)

    def _dims(self, dims: int | Sequence[int] | np.ndarray) -> np.ndarray:
        index = _checks.as_dims(
            "dims", [dims] if isinstance(dims, int | np.integer) else dims, self.dim
        )
        if not index or len(set(index)) < len(index):
            raise ValueError(
                f"dims: expected distinct indices, at least one, got {_checks.short_repr(dims)}"
            )
        return np.array(index)


def as_mixture(name: str, value: Any) -> GaussianMixture:
    """Return `value` if it is a mixture; else raise a TypeError that says how to make a mixture of it."""
    if isinstance(value, GaussianMixture):
        return value
    numbers = isinstance(value, np.ndarray | list | tuple)
    advice = "; GaussianFit().fit(points, weights) makes a mixture of points" if numbers else ""
    raise TypeError(f"{name}: expected a GaussianMixture, got {_checks.short_repr(value)}{advice}")


def log_sums(terms: Array, weights: Array) -> Array:
    """Return ``log(sum_m weights[m] exp(terms[i, m]))`` for each i, (n, M) and (M,) -> (n,)."""
    with np.errstate(divide="ignore"):
        return log_sum(terms + np.log(weights), axis=1)


def log_sum(terms: Array, axis: int = 0) -> Array:
    """Return the log of the sum of exponentials along an axis; minus infinity if all terms are."""
    peak = terms.max(axis=axis, keepdims=True)
    np.copyto(peak, 0.0, where=peak == -np.inf)  # -inf - (-inf) would be NaN
    with np.errstate(divide="ignore"):
        # without the peak all exponentials may underflow
        return np.asarray(np.log(np.exp(terms - peak).sum(axis=axis)) + peak.squeeze(axis))


def equal_weights(n: int) -> Array:
    """Return n weights that sum to 1."""
    return np.full(n, 1.0 / n)


def largest_remainders(weights: Array, n: int) -> np.ndarray:
    """Return whole shares that sum to `n`, each within one of ``n * weights``; ties go to the earlier component."""
    exact = n * weights
    shares = np.floor(exact).astype(np.int64)
    # Rounded, so that the last bit of a product decides no tie.
    order = np.argsort(np.round(shares - exact, 9), kind="stable")
    shares[order[: n - shares.sum()]] += 1
    return shares


def as_component_covariances(value: ArrayLike, m: int, d: int) -> Array:
    """Return covariances of m components, full, shared, diagonal or spherical by their shape, as (m, d, d) or (1, d, d)."""
    array = _checks.as_numbers("covariances", value, (d, d))
    if array.shape in ((m, d, d), (d, d)):
        return _checks.as_covariance("covariances", value, d).reshape(-1, d, d)
    if array.shape not in ((m, d), (m,)):
        by_axis = f", ({m}, {d}) for diagonal" if m != d else ""
        raise ValueError(
            f"covariances: expected shape ({m}, {d}, {d}) or ({d}, {d}){by_axis} or ({m},) for spherical ones, "
            f"got {array.shape}"
        )
    return _checks.as_covariance("covariances", diagonal(array, d), d)


def diagonal(variances: Array, d: int) -> Array:
    """Return diagonal covariances (m, d, d) of variances (m, d), or of (m,), one for all dimensions of a component."""
    return variances.reshape(len(variances), 1, -1) * np.eye(d)
