"""The square-root Kalman update of many Gaussians, compiled.

A Gaussian is its mean and a factor F of its covariance F F'. Nothing is subtracted from a covariance, so that the posterior
keeps its digits however wide the prior is (Kailath, Sayed and Hassibi 2000, "Linear Estimation", chapter 12).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from herdfilter._checks import Array
from herdfilter._jit import njit
from herdfilter.angles import wrap
from herdfilter.filters.kalman.rules import Linearisation
from herdfilter.filters.observation import Observation
from herdfilter.samplers import compiled

RELATIVE_TOLERANCE = 1e-8  # negative eigenvalues down to this share of the variances are rounding, and are raised to zero
SINGULAR_SHARE = 1e-14  # a conditional variance below this share of the variance is rounding: the matrix is singular


class IndefiniteCovarianceError(RuntimeError):
    """A covariance lost its positive definiteness by more than rounding; the filter is as before the call.

    Attributes
    ----------
    step : int
        The step at which it happened.
    result : FilterResult or None
        In a batch run, the steps before.

    Examples
    --------
    The centre of the sigma points has the weight -9, and the square of the state is observed.

    >>> try:
    ...     hf.UnscentedKalmanFilter(hf.models.UNGM(), kappa=-0.9).run([[0.2], [1.5], [4.0]])
    ... except hf.IndefiniteCovarianceError as error:
    ...     print(error, len(error.result))
    ...
    step 1: the observation's covariance is not positive definite 0
    """

    def __init__(self, step: int, what: str) -> None:
        super().__init__(f"step {step}: the {what} covariance is not positive definite")
        self.step = step
        self.what = what
        self.result: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.step, self.what), {"result": self.result}


class Conditioned(NamedTuple):
    """K Gaussians x = F u given observations y = A u + e of them.

    Lower triangular S, where S S' is the covariance of y; G, where G S' is the covariance of x with y; and the lower
    triangular factor of the covariance of x given y.
    """

    roots: Array  # S, (K, k, k)
    gains: Array  # G, (K, d, k)
    after: Array  # (K, d, d)


@njit(**compiled.NO_ARRAYS)
def rotate(noise, slopes, gains, factor):
    """Rotate the columns of [noise slopes; gains factor] until the slopes (k, m) are zero, in place.

    The noise (k, k) stays lower triangular; gains are (d, k), the factor (d, m). The product of the array with its transpose
    does not change: the noise becomes S with S S' = A A' + R, the gains G with G S' = F A' (Kailath and others 2000, array
    algorithms). Givens rotations, unlike Householder reflections, keep the digits of small numbers beside large ones.
    """
    k, m = slopes.shape
    for i in range(k):
        for j in range(m):
            # hypot does not overflow; the rotation takes (noise, slope) to (length, 0)
            if slopes[i, j] != 0.0:
                length = np.hypot(noise[i, i], slopes[i, j])
                cosine = noise[i, i] / length
                sine = slopes[i, j] / length
                noise[i, i] = length
                slopes[i, j] = 0.0
                for a in range(i + 1, k):
                    first = noise[a, i]
                    second = slopes[a, j]
                    noise[a, i] = cosine * first + sine * second
                    slopes[a, j] = cosine * second - sine * first
                for a in range(len(gains)):
                    first = gains[a, i]
                    second = factor[a, j]
                    gains[a, i] = cosine * first + sine * second
                    factor[a, j] = cosine * second - sine * first


@njit(**compiled.IN_PLACE)
def condition_in_place(slopes, noises, factors, variances, rotated, result):
    """Fill in the arrays of a `Conditioned`, passed as a tuple; return False if a noise is indefinite.

    The slopes (K, k, m) are overwritten, `variances` (k,) and `rotated` (d, m) are workspace.
    """
    count, k, m = slopes.shape
    roots, gains, after = result
    for c in range(count):
        noise = noises[c if len(noises) > 1 else 0]
        before = factors[c if len(factors) > 1 else 0]
        # Variances of the observation, which tell what counts as rounding in the noise.
        for i in range(k):
            variances[i] = noise[i, i]
            for j in range(m):
                variances[i] += slopes[c, i, j] ** 2
        if not factorise_noise(noise, variances, roots[c]):
            return False
        for a in range(len(before)):
            for j in range(m):
                rotated[a, j] = before[a, j]
        rotate(roots[c], slopes[c], gains[c], rotated)
        # What is left of the factor is that of the posterior; further rotations make it lower triangular.
        rotate(after[c], rotated, rotated[:0], rotated[:0])
    return True


@njit(**compiled.IN_PLACE)
def move_in_place(roots, gains, residuals, means, log_densities):
    """Correct K means (K, d) by residuals (K, k), given S and G of `condition`; fill in log-densities (K,).

    Residuals are whitened in place; NaN is a missing entry. At the first singular S it stops: later log-densities are left
    as they were.
    """
    count, k = residuals.shape
    for c in range(count):
        # A missing entry has no slopes and unit noise: with the residual 0 it neither corrects nor adds to the density.
        present = 0
        for i in range(k):
            if np.isnan(residuals[c, i]):
                residuals[c, i] = 0.0
            else:
                present += 1
        log_density = -0.5 * present * np.log(2 * np.pi)
        for i in range(k):  # forward substitution S^-1 r, then the mean moves by G S^-1 r
            if not 0.0 < roots[c, i, i] < np.inf:
                return
            for j in range(i):
                residuals[c, i] -= roots[c, i, j] * residuals[c, j]
            residuals[c, i] /= roots[c, i, i]
            log_density -= np.log(roots[c, i, i]) + 0.5 * residuals[c, i] ** 2
            for a in range(means.shape[1]):
                means[c, a] += gains[c, a, i] * residuals[c, i]
        log_densities[c] = log_density


@njit(**compiled.IN_PLACE)
def factorise(matrix, factor):
    """Write the Cholesky factor of a matrix, which may be the same array; return False if it does not exist."""
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


@njit(**compiled.NO_ARRAYS)
def factorise_noise(matrix, variances, root):
    """Write the Cholesky factor of a covariance that may be singular; return False if it is indefinite.

    Entries up to `RELATIVE_TOLERANCE` of the variances (k,) of the observation, to which this noise contributes, count as
    rounding.
    """
    for i in range(len(matrix)):
        for j in range(i + 1):
            remainder = matrix[i, j]
            for k in range(j):
                remainder -= root[i, k] * root[j, k]
            # A pivot that vanishes makes its column zero: the noise is singular there, but not yet indefinite.
            if i == j and remainder > SINGULAR_SHARE * matrix[i, i]:
                root[i, i] = np.sqrt(remainder)
            elif j < i and root[j, j] > 0.0:
                root[i, j] = remainder / root[j, j]
            elif (i == j and remainder > 0.0) or abs(remainder) <= RELATIVE_TOLERANCE * np.sqrt(
                variances[i] * variances[j]
            ):
                root[i, j] = 0.0
            else:
                return False
    return True


def condition(slopes: Array, noises: Array, factors: Array, step: int, what: str) -> Conditioned:
    """Condition K Gaussians on linear functions of them.

    With u ~ N(0, I), of m entries, a state is x = F u, and y = A u + e is observed, with e independent of u.

    Parameters
    ----------
    slopes : ndarray, shape (K, k, m)
        The matrices A.
    noises : ndarray, shape (K or 1, k, k)
        Covariances of e, which negative weights of a moment rule may make indefinite.
    factors : ndarray, shape (K or 1, d, m)
        The matrices F; with d = 0 only S is computed.
    step, what : int, str
        For the text of IndefiniteCovarianceError, which names `what` if the covariance of y is indefinite. If only the
        noise e is, the covariance of x given y may be indefinite too, and the error names the updated covariance.
    """
    result = _try_condition(slopes, noises, factors)
    if result is None:
        # An indefinite e does no harm where only S is needed, as long as A A' + R is positive definite.
        result = _try_condition(slopes[:, :, :0], slopes @ slopes.mT + noises, factors[:, :0, :0])
        if result is None or factors.size:
            raise IndefiniteCovarianceError(step, what if result is None else "updated")
    return result


def _try_condition(slopes: Array, noises: Array, factors: Array) -> Conditioned | None:
    count, k, m = slopes.shape
    d = factors.shape[1]
    result = (np.zeros((count, k, k)), np.zeros((count, d, k)), np.zeros((count, d, d)))
    definite = condition_in_place(
        np.array(slopes, order="C"),
        np.ascontiguousarray(noises),
        np.ascontiguousarray(factors),
        np.empty(k),
        np.empty((d, m)),
        result,
    )
    return Conditioned(*result) if definite else None


def triangular(factors: Array, noises: Array | None = None, step: int = 0, what: str = "") -> Array:
    """Return lower triangular factors (K, d, d) of the same covariances as factors (K, d, m), plus those of noises."""
    d = factors.shape[1]
    noises = np.zeros((1, d, d)) if noises is None else noises
    return condition(factors, noises, factors[:, :0], step, what).roots


def correct_gaussians(
    means: Array,
    factors: Array,
    residuals: Array,
    slopes: Array,
    noises: Array,
    step: int,
) -> tuple[Array, Array, Array]:
    """Update each Gaussian with its residual (K, k); residuals, slopes and noises are those of `observed_part`.

    Return means (K, d), factors (K, d, d), and log-densities (K,) of the residuals.
    """
    conditioned = condition(slopes, noises, factors, step, "observation's")
    corrected = means.copy()
    log_densities = np.full(len(means), np.nan)
    move_in_place(
        conditioned.roots,
        conditioned.gains,
        np.array(residuals, order="C"),
        corrected,
        log_densities,
    )
    # the update stops at the first singular S, without a log-density
    if np.isnan(log_densities).any():
        raise IndefiniteCovarianceError(step, "observation's")
    return corrected, conditioned.after, log_densities


def observed_part(observation: Observation, linear: Linearisation) -> tuple[Array, Array, Array]:
    """Return residuals (K, k), NaN where missing, and slopes and noises that make missing entries uninformative.

    An observation must have the shape of its prediction (K, k). Missing entries get zero slopes and independent unit noise:
    all Gaussians then keep arrays of the same shape, whichever entries each of them lacks.
    """
    observation.expect(linear.means.shape[1:], "observation_mean")
    residuals = wrap(observation.vector - linear.means, observation.circular)
    missing = np.isnan(residuals)
    if not missing.any():
        return residuals, linear.slopes, linear.rests
    slopes = np.where(missing[:, :, None], 0.0, linear.slopes)
    noises = np.where(
        missing[:, :, None] | missing[:, None], np.eye(missing.shape[1]), linear.rests
    )
    return residuals, slopes, noises


def inverse_factor(covariance: Array, step: int) -> Array:
    """Return the inverse of L, with L L' the covariance (..., k, k) of the observation at `step`."""
    try:
        return np.linalg.inv(np.linalg.cholesky(covariance))
    except np.linalg.LinAlgError:
        raise IndefiniteCovarianceError(step, "observation's") from None
