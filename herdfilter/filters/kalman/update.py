"""Kalman's update in numbers: of many Gaussians by one observation, and by a scan of detections."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from herdfilter._checks import Array
from herdfilter.angles import wrap_angles
from herdfilter.filters.kalman.core import IndefiniteCovarianceError
from herdfilter.filters.kalman.rules import Moments
from herdfilter.filters.observation import Observation
from herdfilter.models.contract import observation_circular
from herdfilter.models.with_clutter import Factor, detection_log_densities, log_sum
from herdfilter.samplers.compiled import IN_PLACE


@njit(**IN_PLACE)
def update_in_place(covariances, residuals, observed, cross, moved, shrunk, log_densities, factor, half):
    """Update K Gaussians, each with its residual; return False if a covariance is not positive definite.

    The arguments are covariances (K or 1, d, d) of the state, residuals (K, k), covariances S of the observation (K, k, k)
    and of the state with it (K, d, k). `moved`, the means (K, d), is changed; `shrunk` (K, d, d) and `log_densities` (K,)
    are filled. A log-density stays as it was from the first S on that is not positive definite. `factor` and `half` are
    buffers of shapes (max(k, d), max(k, d)) and (k, d + 1).
    """
    count, d, k = cross.shape
    regular = True
    for m in range(count):
        if not factorise(observed[m], factor):
            return False
        log_density = -0.5 * k * np.log(2 * np.pi)
        for i in range(k):  # by L^-1, with S = L L': the rows of cross', and the residual beside them
            scale = 1.0 / factor[i, i]
            for a in range(d + 1):
                entry = cross[m, a, i] if a < d else residuals[m, i]
                for j in range(i):
                    entry -= factor[i, j] * half[j, a]
                half[i, a] = entry * scale
            log_density += np.log(scale) - 0.5 * half[i, d] ** 2
        log_densities[m] = log_density
        before = min(m, len(covariances) - 1)
        for a in range(d):
            for i in range(k):
                moved[m, a] += half[i, a] * half[i, d]
            for b in range(a + 1):
                entry = 0.5 * (covariances[before, a, b] + covariances[before, b, a])
                for i in range(k):
                    entry -= half[i, a] * half[i, b]
                shrunk[m, a, b] = shrunk[m, b, a] = entry
        regular = factorise(shrunk[m], factor) and regular
    return regular


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


def finite_part(observation: Observation, predicted: Array, observed: Array, cross: Array) -> tuple[Array, Array]:
    """Return covariances of the finite entries of an observation (K, k, k), and of the state with them (K, d, k).

    The observation must have the shape of its prediction (K, k).
    """
    observation.expect(predicted.shape[1:], "observation_mean")
    if len(observation.observed_entries) == len(observation.vector):
        return observed, cross
    return observation.part(observed), cross[:, :, observation.observed_entries]


def inverse_factor(covariance: Array, step: int) -> Array:
    """Return the inverse of L, with L L' the covariance (..., k, k) of the observation at `step`."""
    try:
        return np.linalg.inv(np.linalg.cholesky(covariance))
    except np.linalg.LinAlgError:
        raise IndefiniteCovarianceError(step, "observation's") from None


def data_association(
    observation: Observation, mean: Array, covariance: Array, moments: Moments, detected: Factor
) -> tuple[Array, Array, float]:
    """Update N(mean, covariance) by a scan; return mean, covariance and log-evidence of the mixture over all hypotheses.

    This is the probabilistic data association of Bar-Shalom and Tse (1975) without a gate: a detection far away has no
    weight. The moments are those of a detection, as by `observation_moments`; `detected` is P_D, a number or (1,).
    """
    model, (predicted, observed, cross) = observation.model, (part[0] for part in moments)
    missed, found = (np.ravel(part) for part in model.log_factors(detected, observation.z, observation.step))
    if not len(observation.z):
        return mean, covariance, float(missed[0])
    whitening = inverse_factor(observed, observation.step)
    gain = cross @ whitening.T @ whitening
    densities = detection_log_densities(model, observation.z, predicted[None], observed[None], observation.step)[:, 0]
    terms = np.concatenate([missed, found + densities])
    evidence = float(log_sum(terms))
    if evidence == -np.inf:  # no hypothesis is left
        return mean, covariance, evidence
    shares = np.exp(terms - evidence)[1:]
    residuals = wrap_angles(observation.z - predicted, observation_circular(model, len(predicted)))
    whole = shares @ residuals
    spread = (shares * residuals.T) @ residuals - np.outer(whole, whole)
    after = covariance - shares.sum() * gain @ cross.T + gain @ spread @ gain.T
    return mean + gain @ whole, after, evidence


def scan_hypotheses(
    observation: Observation, means: Array, covariances: Array, moments: Moments, detected: Factor
) -> tuple[Array, Callable[[Array, Array], tuple[Array, Array]]]:
    """Return the log-likelihood terms of a scan of k detections, (1 + k, n), and the update by each of them.

    The first term is that of a miss. The update takes indices of states (c,) and of terms (c,) to the updated means (c, d)
    and covariances (c, d, d). The arguments are those of `data_association`, each for n states.
    """
    model, scan, (predicted, observed, cross) = observation.model, observation.z, moments
    missed, found = model.log_factors(detected, scan, observation.step)
    terms = np.full((1 + len(scan), len(means)), missed)
    if not len(scan):
        return terms, lambda i, h: (means[i], covariances[i])
    terms[1:] = found + detection_log_densities(model, scan, predicted, observed, observation.step)
    gains = np.linalg.solve(observed, cross.transpose(0, 2, 1)).transpose(0, 2, 1)
    after = covariances - gains @ cross.transpose(0, 2, 1)
    circular = observation_circular(model, predicted.shape[1])

    def update(i: Array, h: Array) -> tuple[Array, Array]:
        residuals = wrap_angles(scan[h - 1] - predicted[i], circular)
        moved = means[i] + (gains[i] @ residuals[:, :, None])[:, :, 0]
        miss = h == 0
        return np.where(miss[:, None], means[i], moved), np.where(miss[:, None, None], covariances[i], after[i])

    return terms, update
