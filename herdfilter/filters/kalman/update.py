"""Kalman's update in numbers: of many Gaussians by one observation, and by a scan of detections, in square roots.

A Gaussian is its mean and a factor F of its covariance F F'. Nothing is subtracted from a covariance, so that the posterior
keeps its digits however wide the prior is (Kailath, Sayed and Hassibi 2000, "Linear Estimation", chapter 12).
"""

from __future__ import annotations

import numpy as np

from herdfilter._checks import Array
from herdfilter._jit import njit
from herdfilter.angles import wrap
from herdfilter.filters.kalman.core import IndefiniteCovarianceError
from herdfilter.filters.kalman.rules import Linearisation
from herdfilter.filters.observation import Observation
from herdfilter.samplers.compiled import IN_PLACE, PLAIN

RELATIVE_TOLERANCE = 1e-8  # negative eigenvalues down to this share of the variances are rounding, and are raised to zero
SINGULAR_SHARE = 1e-14  # of a variance: what is left of it beside other entries is rounding, if the matrix is singular


@njit(**PLAIN)
def rotate(noise, slopes, gains, factor):
    """Turn columns into each other until the slopes (k, m) vanish into the noise (k, k), which stays lower triangular.

    Gains (d, k) and a factor (d, m) below them take part. Givens rotations keep digits of small numbers beside large ones.
    """
    k, m = slopes.shape
    for i in range(k):
        for j in range(m):
            if slopes[i, j] != 0.0:
                length = np.hypot(noise[i, i], slopes[i, j])
                cosine, sine = noise[i, i] / length, slopes[i, j] / length
                noise[i, i], slopes[i, j] = length, 0.0
                for a in range(i + 1, k):
                    above, below = noise[a, i], slopes[a, j]
                    noise[a, i], slopes[a, j] = cosine * above + sine * below, cosine * below - sine * above
                for a in range(len(gains)):
                    above, below = gains[a, i], factor[a, j]
                    gains[a, i], factor[a, j] = cosine * above + sine * below, cosine * below - sine * above


@njit(**IN_PLACE)
def condition_in_place(slopes, noises, factors, variances, left, roots, gains, after):
    """Fill in what `condition` returns; return False where a noise is indefinite.

    The slopes (K, k, m) are used up, `variances` (k,) and `left` (d, m) are room.
    """
    count, k, m = slopes.shape
    for c in range(count):
        noise, before = noises[c if len(noises) > 1 else 0], factors[c if len(factors) > 1 else 0]
        for i in range(k):
            variances[i] = noise[i, i]
            for j in range(m):
                variances[i] += slopes[c, i, j] ** 2
        if not factorise_noise(noise, variances, roots[c]):
            return False
        for a in range(len(before)):
            for j in range(m):
                left[a, j] = before[a, j]
        rotate(roots[c], slopes[c], gains[c], left)
        rotate(after[c], left, left[:0], left[:0])
    return True


@njit(**IN_PLACE)
def move_in_place(roots, gains, residuals, means, log_densities):
    """Move K means (K, d) by residuals (K, k), given S and G of `condition`; fill in log-densities (K,).

    Residuals are whitened in place; NaN is a missing entry. A log-density stays as it was from the first singular S on.
    """
    count, k = residuals.shape
    for c in range(count):
        present = 0
        for i in range(k):
            if np.isnan(residuals[c, i]):
                residuals[c, i] = 0.0
            else:
                present += 1
        log_density = -0.5 * present * np.log(2 * np.pi)
        for i in range(k):
            if not 0.0 < roots[c, i, i] < np.inf:
                return
            for j in range(i):
                residuals[c, i] -= roots[c, i, j] * residuals[c, j]
            residuals[c, i] /= roots[c, i, i]
            log_density -= np.log(roots[c, i, i]) + 0.5 * residuals[c, i] ** 2
            for a in range(means.shape[1]):
                means[c, a] += gains[c, a, i] * residuals[c, i]
        log_densities[c] = log_density


@njit(**IN_PLACE)
def factorise(matrix, factor):
    """Write the Cholesky factor of a matrix, which may lie in the same place; return False if it does not exist."""
    for i in range(len(matrix)):
        for j in range(i + 1):
            entry = matrix[i, j]
            for k in range(j):
                entry -= factor[i, k] * factor[j, k]
            if j < i:
                factor[i, j] = entry / factor[j, j]
            elif 0.0 < entry < np.inf:
                factor[i, i] = np.sqrt(entry)
            else:
                return False
    return True


@njit(**PLAIN)
def factorise_noise(matrix, variances, root):
    """Write the Cholesky factor of a covariance that may be singular; return False if it is indefinite.

    It is indefinite if that is more than `RELATIVE_TOLERANCE` of the variances (k,), of which the noise is a part.
    """
    for i in range(len(matrix)):
        for j in range(i + 1):
            rest = matrix[i, j]
            for k in range(j):
                rest -= root[i, k] * root[j, k]
            if i == j and rest > SINGULAR_SHARE * matrix[i, i]:
                root[i, i] = np.sqrt(rest)
            elif j < i and root[j, j] > 0.0:
                root[i, j] = rest / root[j, j]
            elif (i == j and rest > 0.0) or abs(rest) <= RELATIVE_TOLERANCE * np.sqrt(variances[i] * variances[j]):
                root[i, j] = 0.0
            else:
                return False
    return True


def condition(slopes: Array, noises: Array, factors: Array, step: int, what: str) -> tuple[Array, Array, Array]:
    """Condition K Gaussians on linear functions of them.

    With u ~ N(0, I), of m entries, a state is x = F u, and y = A u + e with independent e is known of it.

    Parameters
    ----------
    slopes : ndarray, shape (K, k, m)
        The matrices A.
    noises : ndarray, shape (K or 1, k, k)
        Covariances of e, which negative weights of a moment rule may make indefinite.
    factors : ndarray, shape (K or 1, d, m)
        The matrices F; with d = 0, only S is asked for.
    step, what : int, str
        What IndefiniteCovarianceError names, if the covariance of y is indefinite; that of x given y is, if that of e is.

    Returns
    -------
    roots, gains, after : ndarray, shapes (K, k, k), (K, d, k) and (K, d, d)
        Lower triangular S, where S S' is the covariance of y; G, where G S' is the covariance of x with y; and the lower
        triangular factor of the covariance of x given y.
    """
    found = _conditioned(slopes, noises, factors)
    if found is None:
        found = _conditioned(slopes[:, :, :0], slopes @ slopes.mT + noises, factors[:, :0, :0])
        if found is None or factors.size:
            raise IndefiniteCovarianceError(step, what if found is None else "updated")
    return found


def _conditioned(slopes: Array, noises: Array, factors: Array) -> tuple[Array, Array, Array] | None:
    (count, k, m), d, contiguous = slopes.shape, factors.shape[1], np.ascontiguousarray
    found = np.zeros((count, k, k)), np.zeros((count, d, k)), np.zeros((count, d, d))
    given = np.array(slopes, order="C"), contiguous(noises), contiguous(factors), np.empty(k), np.empty((d, m))
    return found if condition_in_place(*given, *found) else None


def triangular(factors: Array) -> Array:
    """Return lower triangular factors (K, d, d) of the covariances that factors (K, d, m) have."""
    d = factors.shape[1]
    return condition(factors, np.zeros((1, d, d)), factors[:, :0], 0, "")[0]


def correct_gaussians(
    means: Array, factors: Array, residuals: Array, slopes: Array, noises: Array, step: int
) -> tuple[Array, Array, Array]:
    """Update each Gaussian with its residual (K, k), NaN where missing; slopes and noises are those of `linear_observation`.

    Return means (K, d), factors (K, d, d), and log-densities (K,) of the residuals.
    """
    roots, gains, after = condition(slopes, noises, factors, step, "observation's")
    moved, log_densities = means.copy(), np.full(len(means), np.nan)
    move_in_place(roots, gains, np.array(residuals, order="C"), moved, log_densities)
    if np.isnan(log_densities).any():
        raise IndefiniteCovarianceError(step, "observation's")
    return moved, after, log_densities


def observed_part(observation: Observation, linear: Linearisation) -> tuple[Array, Array, Array]:
    """Return residuals (K, k), NaN where missing, and slopes and noises by which missing entries say nothing.

    An observation must have the shape of its prediction (K, k).
    """
    observation.expect(linear.means.shape[1:], "observation_mean")
    residuals = wrap(observation.vector - linear.means, observation.circular)
    missing = np.isnan(residuals)
    if not missing.any():
        return residuals, linear.slopes, linear.rests
    slopes = np.where(missing[:, :, None], 0.0, linear.slopes)
    noises = np.where(missing[:, :, None] | missing[:, None], np.eye(missing.shape[1]), linear.rests)
    return residuals, slopes, noises


def inverse_factor(covariance: Array, step: int) -> Array:
    """Return the inverse of L, with L L' the covariance (..., k, k) of the observation at `step`."""
    try:
        return np.linalg.inv(np.linalg.cholesky(covariance))
    except np.linalg.LinAlgError:
        raise IndefiniteCovarianceError(step, "observation's") from None
