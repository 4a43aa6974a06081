"""The update of labelled Bernoulli components: the matrix that association is asked about, and what follows from that."""

from __future__ import annotations

import numpy as np

from herdfilter._checks import Array

FREE_OF_CLUTTER = 1e-12
"""Where there is no clutter: weight of a detection that is of no target, beside that of the likeliest target."""


def ratios(existence: Array, detected: float, log_densities: Array, log_clutter: float) -> Array:
    """Rows of an association matrix (T, 1 + M), each up to a factor.

    The first entry is for a target that is not there or not detected, ``1 - r P_D``; the others are
    ``r P_D g(z_j) / kappa`` (Reuter, Vo, Vo and Dietmayer 2014, "The labeled multi-Bernoulli filter").

    Parameters
    ----------
    existence : ndarray, shape (T,)
        Probabilities r that the targets are there.
    detected : float
        Probability P_D of detection.
    log_densities : ndarray, shape (T, M)
        Of each detection as each track predicts it; minus infinity where it is out of the gate.
    log_clutter : float
        Logarithm of kappa; minus infinity where there is no clutter.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(existence * detected)[:, None] + log_densities
        missed = np.log1p(-existence * detected)
    if log_clutter > -np.inf:
        logs = logs - log_clutter
    elif logs.size:  # as the limit of little clutter
        likeliest = logs.max(axis=0, initial=-np.inf)
        logs = logs - np.where(likeliest > -np.inf, likeliest, 0.0) - np.log(FREE_OF_CLUTTER)
    rows = np.column_stack([missed, logs])
    peaks = rows.max(axis=1, keepdims=True)
    return np.exp(rows - np.where(peaks > -np.inf, peaks, 0.0))


def updated(existence: Array, detected: float, marginals: Array) -> tuple[Array, Array]:
    """Probabilities r (T,) after a scan, and those of the hypotheses (T, 1 + M) of each target, if it is there.

    The first hypothesis is that it was missed. Rows of hypotheses sum to 1, but where r is 0.

    Parameters
    ----------
    existence : ndarray, shape (T,)
        Probabilities before.
    detected : float
        Probability of detection.
    marginals : ndarray, shape (T, 1 + M)
        Probabilities that the target is dead or missed, or has given rise to each detection.
    """
    weights = marginals.copy()
    unseen = 1 - existence * detected
    weights[:, 0] *= existence * (1 - detected) / np.where(unseen > 0, unseen, 1.0)
    after = weights.sum(axis=1)
    weights /= np.where(after > 0, after, 1.0)[:, None]
    return np.minimum(after, 1.0), weights
