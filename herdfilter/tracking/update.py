"""The parts of a tracker's update with a scan: the scan's model, gates, the association matrix, and existence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy.special

from herdfilter._checks import Array, short_repr
from herdfilter.angles import wrap_angles
from herdfilter.models.contract import Model, observation_circular
from herdfilter.models.sensors import Sensor, sensed
from herdfilter.models.with_clutter import WithClutter

SMALLEST_GATED_RATIO = 1e-6
"""A detection is in a gate, at any distance, if its weight is larger than this fraction of a miss's."""

CLUTTER_WEIGHT = 1e-12
"""Without clutter: weight of a false alarm relative to that of the detection's likeliest target."""


def scan_model(model: WithClutter, sensor: Sensor | None) -> tuple[WithClutter, Sensor | None]:
    """Return the model with the sensor of a scan, and the sensor of a single detection."""
    if sensor is None:
        return model, None
    scanning = sensed(model.model, sensor)
    if not isinstance(scanning, WithClutter):
        raise ValueError(
            "sensor: expected one that gives scans, with detection_probability and clutter_density, got "
            f"{short_repr(sensor)}"
        )
    return scanning, replace(sensor, detection_probability=None, clutter_density=None, region=None)


def gate_detections(
    model: Model,
    moments: Sequence[tuple[Array, Array] | None],
    z: Array,
    missed: Array,
    log_factors: Array,
    probability: float,
) -> np.ndarray:
    """Return True for each detection z (k, m) in the gate of each track, (T, k).

    A gate is the ellipsoid that holds a Gaussian with a given probability (1 for no gate), or the larger one outside which a
    detection weighs less than `SMALLEST_GATED_RATIO` of a miss. So it costs no accuracy if predictions are about Gaussian.
    `moments` are mean (m,) and covariance (m, m) of the detection that each track predicts, None for no gate; `missed` (T,)
    the weights of misses, `log_factors` (T,) the logarithms of the ratio of a detection's weight to its density.
    """
    inside = np.ones((len(moments), len(z)), dtype=bool)
    known = np.array([one is not None for one in moments], dtype=bool)
    if not known.any() or not len(z) or probability == 1:
        return inside
    means, covariances = (np.array(part) for part in zip(*(one for one in moments if one is not None), strict=True))
    size = means.shape[1]
    residuals = wrap_angles(z - means[:, None], observation_circular(model, size))
    roots = np.linalg.cholesky(covariances)
    white = np.linalg.solve(roots, residuals.transpose(0, 2, 1))
    with np.errstate(divide="ignore"):
        log_roots = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
        log_peaks = log_factors[known] - log_roots - 0.5 * size * np.log(2 * np.pi)
        counts = 2 * (log_peaks - np.log(missed[known]) - np.log(SMALLEST_GATED_RATIO))
    radii = np.maximum(2 * scipy.special.gammainccinv(size / 2, 1 - probability), counts)
    inside[known] = (white**2).sum(axis=1) <= radii[:, None]
    return inside


def association_matrix(existence: Array, detected: float, log_densities: Array, log_clutter: float) -> Array:
    """Return the matrix (T, 1 + M) of likelihood ratios, from logarithms, with each row up to a factor.

    A row is ``1 - r P_D`` for a target that does not exist or is missed, and ``r P_D g(z_j) / kappa`` for each detection
    (Reuter, Vo, Vo and Dietmayer 2014, "The labeled multi-Bernoulli filter"), with r from `existence` (T,), P_D `detected`,
    log g from `log_densities` (T, M), minus infinity outside the gate, and log kappa `log_clutter`.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(existence * detected)[:, None] + log_densities
        missed = np.log1p(-existence * detected)
    if log_clutter > -np.inf:
        logs = logs - log_clutter
    elif logs.size:  # the limit of little clutter
        likeliest = logs.max(axis=0, initial=-np.inf)
        logs = logs - np.where(likeliest > -np.inf, likeliest, 0.0) - np.log(CLUTTER_WEIGHT)
    rows = np.column_stack([missed, logs])
    peaks = rows.max(axis=1, keepdims=True)
    matrix: Array = np.exp(rows - np.where(peaks > -np.inf, peaks, 0.0))
    return matrix


def update_existence(existence: Array, detected: float, marginals: Array) -> tuple[Array, Array]:
    """Return the probabilities of existence (T,) after a scan, and of the hypotheses (T, 1 + M) of each existing target.

    The first hypothesis is a miss. Rows of hypotheses sum to 1, or to 0 if the target cannot exist. The arguments are the
    probabilities of existence before, of detection, and the marginals of the association (T, 1 + M).
    """
    weights = marginals.copy()
    missed = 1 - existence * detected
    weights[:, 0] *= existence * (1 - detected) / np.where(missed > 0, missed, 1.0)
    after = weights.sum(axis=1)
    weights /= np.where(after > 0, after, 1.0)[:, None]
    return np.minimum(after, 1.0), weights
