"""Tracks: targets that may exist, and the formulas of their update with a scan."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.special

from herdfilter._checks import Array, as_array, short_repr
from herdfilter._repr import summary_repr
from herdfilter.angles import wrap
from herdfilter.models.with_clutter import Factor

# A detection is in a gate, at any distance, if its weight is larger than this fraction of a miss's.
SMALLEST_GATED_RATIO = 1e-6
# Without clutter: the weight of a false alarm relative to that of the detection's likeliest target.
CLUTTER_WEIGHT = 1e-12

Label = tuple[int, int]
"""Step of the birth, and number among the births of that step."""


class DetectionHistory(NamedTuple):
    """The scans that detected a track (Blackman and Popoli 1999, chapter 6).

    A scan detects a track if its detections belong to the track with a probability above 1/2.

    Attributes
    ----------
    detections : int
        Number of scans that detected the track.
    time_since_detection : float
        Time since the last of them; before the first, since the start of the track.
    confirmed : bool
        Whether M of N successive scans have detected it, with ``(M, N)`` the tracker's `confirm`.
    recent : tuple of bool
        Whether each of the last N scans detected it, the latest last.

    Examples
    --------
    >>> hf.tracking.DetectionHistory(detections=3, time_since_detection=1.0, confirmed=True).status
    'coasting'
    """

    detections: int = 0
    time_since_detection: float = 0.0
    confirmed: bool = False
    recent: tuple[bool, ...] = ()

    @property
    def status(self) -> Literal["tentative", "confirmed", "coasting"]:
        """``"tentative"`` until confirmed; then ``"coasting"`` if no scan of the present step detected it."""
        if not self.confirmed:
            return "tentative"
        return "coasting" if self.time_since_detection else "confirmed"


def add_scan(
    histories: Iterable[DetectionHistory], detected: Iterable[bool], confirm: tuple[int, int]
) -> list[DetectionHistory]:
    """Return the histories of tracks after a scan that detected, or missed, each; `confirm` is M of N."""
    updated = []
    for (detections, elapsed, confirmed, recent), hit in zip(histories, detected, strict=True):
        recent = (*recent, hit)[-confirm[1] :]
        confirmed = confirmed or sum(recent) >= confirm[0]
        elapsed = 0.0 if hit else elapsed
        updated.append(DetectionHistory(detections + hit, elapsed, confirmed, recent))
    return updated


def as_confirm(value: Any) -> tuple[int, int]:
    """Return M and N of the confirmation of a track."""
    detections, scans = as_array("confirm", value, (2,)).tolist()
    if not 1 <= detections <= scans or detections % 1 or scans % 1:
        raise ValueError(
            f"confirm: expected integers (M, N), 1 <= M <= N: M detections in N scans, got {short_repr(value)}"
        )
    return int(detections), int(scans)


@dataclass(frozen=True, eq=False, repr=False)
class Track:
    """A labelled Bernoulli component: a target that exists with some probability, and the density of its state.

    Attributes
    ----------
    label : tuple of int
        Step of the birth and number among the births of that step; never changes.
    existence : float
        Probability that the target exists.
    filter : object
        The filter of its state. The tracker replaces it at each step, and does not change it.
    history : DetectionHistory
        Its detections, and from them its status.

    Examples
    --------
    >>> walk = hf.models.ConstantVelocity(0.01, 0.5, initial_mean=[0, 1], initial_covariance=np.eye(2))
    >>> model = hf.models.WithClutter(walk, detection_probability=0.9, clutter_density=0.01)
    >>> tracker = hf.tracking.LMBTracker(model, filter="ukf", initial=[hf.tracking.Birth(0.5, walk.initial)])
    >>> tracker.predict()
    >>> record = tracker.update([[1.2]])
    >>> (track,) = tracker.tracks
    >>> track.label, round(track.existence, 2), track.filter.mean.shape
    ((0, 0), 0.96, (2,))
    """

    label: Label
    existence: float
    filter: Any
    history: DetectionHistory = field(default_factory=DetectionHistory)

    @property
    def mean(self) -> Array:
        """Mean of the state, shape (d,)."""
        return np.asarray(self.filter.mean)

    @property
    def covariance(self) -> Array:
        """Covariance of the state, shape (d, d)."""
        return np.asarray(self.filter.covariance)

    def __repr__(self) -> str:
        return summary_repr(
            self,
            label=self.label,
            existence=self.existence,
            status=self.history.status,
            filter=self.filter,
        )


def gate_detections(
    z: Array,
    means: Array,
    covariances: Array,
    circular: tuple[int, ...],
    log_odds: Array,
    probability: float,
) -> tuple[np.ndarray, Array]:
    """Return which detections z (M, m) are in the gate of each track, and their log-densities by its prediction, (T, M).

    A gate is the ellipsoid that holds the predicted detection, N(mean, covariance), with a given probability, or the larger
    one outside which a detection weighs less than `SMALLEST_GATED_RATIO` of a miss. So it costs no accuracy if predictions
    are about Gaussian. Means are (T, m), covariances (T, m, m), and `log_odds` (T,) the logarithms of the ratio of a
    detection's weight to its density, over the weight of a miss.
    """
    size = z.shape[1]
    residuals = wrap(z - means[:, None], circular)
    # N(z; m, S) with S = L L': the squared distance is |L^-1 (z - m)|^2.
    roots = np.linalg.cholesky(covariances)
    squares = ((np.linalg.inv(roots) @ residuals.mT) ** 2).sum(axis=1)
    log_roots = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
    log_peaks = -log_roots - 0.5 * size * np.log(2 * np.pi)
    log_densities = log_peaks[:, None] - 0.5 * squares
    # The squared Mahalanobis distance has a chi-squared distribution with m degrees of freedom.
    inside = squares <= 2 * scipy.special.gammainccinv(size / 2, 1 - probability)
    inside |= log_densities + log_odds[:, None] >= np.log(SMALLEST_GATED_RATIO)
    return inside, log_densities


def association_matrix(
    existence: Array,
    detected: Factor,
    log_densities: Array,
    log_clutter: Factor,
    negligible: float = 0.0,
) -> Array:
    """Return the matrix (T, 1 + M) of likelihood ratios, from logarithms, with each row up to a factor.

    A row is ``1 - r P_D`` for a target that does not exist or is missed, and ``r P_D g(z_j) / kappa`` for each detection
    (Reuter, Vo, Vo and Dietmayer 2014, "The labeled multi-Bernoulli filter"), with r from `existence` (T,), P_D `detected`,
    log g from `log_densities` (T, M), minus infinity outside the gate, and log kappa `log_clutter`. P_D is a number or (T,),
    log kappa a number or (M,). Ratios below `negligible` times a miss's are 0: no marginal changes by more than they are.
    """
    # In logarithms, as densities over clutter may differ by hundreds of orders of magnitude.
    rows = np.empty((len(existence), 1 + log_densities.shape[1]))
    with np.errstate(divide="ignore"):
        rows[:, 0] = np.log1p(-existence * detected)
        rows[:, 1:] = np.log(existence * detected)[:, None] + log_densities
    if np.all(log_clutter > -np.inf):
        rows[:, 1:] -= log_clutter
    elif len(rows):
        # The limit of little clutter: all of a detection's weights grow alike, relative to its likeliest target.
        likeliest = rows[:, 1:].max(axis=0)
        rows[:, 1:] -= np.where(likeliest > -np.inf, likeliest, 0.0)
        rows[:, 1:] -= np.log(CLUTTER_WEIGHT)
    # A row of minus infinity is that of a track that must exist and cannot be missed: the caller refuses it.
    peaks = rows.max(axis=1, keepdims=True)
    matrix = np.exp(rows - np.where(peaks > -np.inf, peaks, 0.0))
    matrix[:, 1:][matrix[:, 1:] < negligible * matrix[:, :1]] = 0.0
    return np.asarray(matrix)


def update_existence(existence: Array, detected: Factor, marginals: Array) -> tuple[Array, Array]:
    """Return the probabilities of existence (T,) after a scan, and of the hypotheses (T, 1 + M) of each existing target.

    The first hypothesis is a miss. Rows of hypotheses sum to 1, or to 0 if the target cannot exist. The arguments are the
    probabilities of existence before, of detection, a number or (T,), and the marginals of the association (T, 1 + M).
    """
    weights = marginals.copy()
    # Without a detection a target is dead or missed: only the share of r (1 - P_D) in 1 - r P_D lives on.
    undetected = 1 - existence * detected
    weights[:, 0] *= existence * (1 - detected) / np.where(undetected > 0, undetected, 1.0)
    updated = weights.sum(axis=1)
    weights /= np.where(updated > 0, updated, 1.0)[:, None]
    return np.minimum(updated, 1.0), weights
