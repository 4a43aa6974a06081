"""Kalman's update where any of several detections, or none, may be of the state: all in one Gaussian, or one by one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from herdfilter._checks import Array
from herdfilter.angles import wrap_angles
from herdfilter.filters.kalman.core import IndefiniteCovarianceError
from herdfilter.filters.observation import Observation
from herdfilter.models.contract import observation_circular
from herdfilter.models.with_clutter import WithClutter, detection_log_densities, log_sum


def associated(
    seen: Observation, mean: Array, covariance: Array, predicted: Array, observed: Array, cross: Array
) -> tuple[Array, Array, float]:
    """Mean (d,), covariance (d, d) and log-evidence after a scan: the moments of the mixture over all hypotheses.

    That is the filter of Bar-Shalom and Tse (1975) with a gate that lets everything in: what is far away has no weight.

    Parameters
    ----------
    seen : Observation
        A scan (k, m), by a `WithClutter`.
    mean, covariance : ndarray, shapes (d,) and (d, d)
        Of the state.
    predicted, observed : ndarray, shapes (m,) and (m, m)
        Mean and covariance of the detection of the state.
    cross : ndarray, shape (d, m)
        Covariance of the state with its detection.
    """
    model: WithClutter = seen.model
    missed, detected = model.log_factors(len(seen.z), seen.step)
    if not len(seen.z):
        return mean, covariance, missed
    try:
        gain = np.linalg.solve(np.linalg.cholesky(observed), np.eye(len(observed)))
    except np.linalg.LinAlgError:
        raise IndefiniteCovarianceError(seen.step, "observation's") from None
    gain = cross @ gain.T @ gain
    densities = detection_log_densities(model, seen.z, predicted[None], observed[None], seen.step)[:, 0]
    terms = np.concatenate([[missed], detected + densities])
    evidence = float(log_sum(terms))
    if evidence == -np.inf:  # no hypothesis is left
        return mean, covariance, evidence
    shares = np.exp(terms - evidence)[1:]
    residuals = wrap_angles(seen.z - predicted, observation_circular(model, len(predicted)))
    whole = shares @ residuals
    spread = (shares * residuals.T) @ residuals - np.outer(whole, whole)
    after = covariance - shares.sum() * gain @ cross.T + gain @ spread @ gain.T
    return mean + gain @ whole, after, evidence


def branches(
    seen: Observation, means: Array, covariances: Array, predicted: Array, observed: Array, cross: Array
) -> tuple[Array, Callable[[Array, Array], tuple[Array, Array]]]:
    """Logarithms of the terms of a scan's likelihood, and what Kalman's update makes of the state for each.

    Parameters
    ----------
    seen : Observation
        A scan (k, m), by a `WithClutter`.
    means, covariances, predicted, observed, cross : ndarray
        As for `associated`, each for n states.

    Returns
    -------
    terms : ndarray, shape (1 + k, n)
        Of a miss, and of each detection.
    update : callable
        ``(i, h)`` -> means and covariances (c, d), (c, d, d) of the states with indices i (c,) by the terms h (c,).
    """
    model, scan = seen.model, seen.z
    missed, detected = model.log_factors(len(scan), seen.step)
    terms = np.full((1 + len(scan), len(means)), missed)
    if not len(scan):
        return terms, lambda i, h: (means[i], covariances[i])
    terms[1:] = detected + detection_log_densities(model, scan, predicted, observed, seen.step)
    gains = np.linalg.solve(observed, cross.transpose(0, 2, 1)).transpose(0, 2, 1)
    after = covariances - gains @ cross.transpose(0, 2, 1)
    circular = observation_circular(model, predicted.shape[1])

    def update(i: Array, h: Array) -> tuple[Array, Array]:
        residuals = wrap_angles(scan[h - 1] - predicted[i], circular)
        moved = means[i] + (gains[i] @ residuals[:, :, None])[:, :, 0]
        miss = h == 0
        return np.where(miss[:, None], means[i], moved), np.where(miss[:, None, None], covariances[i], after[i])

    return terms, update
