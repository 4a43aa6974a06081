"""The update of tracks with a scan: the gate, the hypotheses, their association, and the tracks that follow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.special
from numpy.typing import ArrayLike

from herdfilter._checks import Array, short_repr
from herdfilter.angles import wrap_angles
from herdfilter.association import associate
from herdfilter.models.contract import Model, observation_circular
from herdfilter.models.sensors import Sensor, sensed
from herdfilter.models.with_clutter import WithClutter
from herdfilter.tracking.track import Hypothesis, Track, combined, supposed

BESIDE_MISSED = 1e-6
"""A detection is let into a gate, however far it is, if it is likelier than this beside the hypothesis of a miss."""


class Detecting(NamedTuple):
    """How detections come about.

    Attributes
    ----------
    sensor : Sensor or None
        What one detection is of; None for the model's own observation functions.
    probability : float
        P_D, that a target is detected.
    clutter_density : float
        Kappa: mean number of false alarms per unit of volume of the observation.
    scans : WithClutter
        How a scan is read.
    """

    sensor: Sensor | None
    probability: float
    clutter_density: float
    scans: WithClutter

    @classmethod
    def by(cls, model: WithClutter, sensor: Sensor | None) -> Detecting:
        """Read what the model says, or a sensor."""
        if sensor is None:
            return cls(None, model.detection_probability, model.clutter_density, model)
        scanning = sensed(model.model, sensor)
        if not isinstance(scanning, WithClutter):
            raise ValueError(
                f"sensor: expected one that gives scans, with detection_probability and clutter_density, "
                f"got {short_repr(sensor)}"
            )
        one = replace(sensor, detection_probability=None, clutter_density=None, region=None)
        return cls(one, scanning.detection_probability, scanning.clutter_density, scanning)


def detections(scan: ArrayLike, by: Detecting, place: Array | None, step: int) -> Array:
    """Return a scan as an array (k, m), where m is the length of what is seen at a state, `place` (1, d)."""
    try:
        return by.scans.as_scan(scan, step, place)
    except ValueError as error:
        raise ValueError(f"scan: {str(error).removeprefix('z: ')}") from None


class Gate:
    """Which detections are compared with which tracks: those that lie near enough to where the track predicts one.

    Near enough is within the ellipsoid that holds a Gaussian with a given probability, and within the larger one, if it is
    larger, outside of which a detection would weigh less than a millionth of a miss. So a gate costs no accuracy where
    predictions are about Gaussian.

    Parameters
    ----------
    moments : list
        Mean (m,) and covariance (m, m) of the observation as each track predicts it; None where there is none, and
        no gate.
    """

    def __init__(self, model: Model, sensor: Sensor | None, moments: list[tuple[Array, Array] | None]) -> None:
        self.model, self.sensor = model, sensor
        self.known = np.array([one is not None for one in moments], dtype=bool)
        given = [one for one in moments if one is not None]
        self.size = len(given[0][0]) if given else None
        self.means = np.array([mean for mean, _ in given])
        self.covariances = np.array([covariance for _, covariance in given])

    def open(self, z: Array, missed: Array, log_factors: Array, probability: float) -> np.ndarray:
        """Return whether each detection (k, m) is in the gate of each track, (T, k).

        Parameters
        ----------
        missed : ndarray, shape (T,)
            Weight of a miss of each track.
        log_factors : ndarray, shape (T,)
            Logarithm of what the density of a detection is multiplied by, in the weight of that.
        probability : float
            That the gate of a Gaussian holds a detection; 1 for no gate.
        """
        inside = np.ones((len(self.known), len(z)), dtype=bool)
        if self.size is None or not len(z) or probability == 1:
            return inside
        circular = observation_circular(sensed(self.model, self.sensor), self.size)
        residuals = wrap_angles(z - self.means[:, None], circular)
        roots = np.linalg.cholesky(self.covariances)
        white = np.linalg.solve(roots, residuals.transpose(0, 2, 1))
        with np.errstate(divide="ignore"):
            log_peaks = (
                log_factors[self.known]
                - np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
                - 0.5 * self.size * np.log(2 * np.pi)
            )
            counts = 2 * (log_peaks - np.log(missed[self.known]) - np.log(BESIDE_MISSED))
        radii = np.maximum(2 * scipy.special.gammainccinv(self.size / 2, 1 - probability), counts)
        inside[self.known] = (white**2).sum(axis=1) <= radii[:, None]
        return inside


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


UNEXPLAINED = 0.5
"""Expected number of detections without a track up to which there is none, where there is no clutter: it is an integer, but
for what an approximate association gets wrong."""


class Update(NamedTuple):
    """Tracks after a scan.

    Attributes
    ----------
    tracks : list of Track
    z : ndarray, shape (k, m)
        The detections.
    unexplained : ndarray, shape (k,)
        Probability that each is of no track.
    """

    tracks: list[Track]
    z: Array
    unexplained: Array


class Rules(NamedTuple):
    """What a tracker does with a scan; see `LMBTracker`."""

    association: Any
    gate_probability: float
    prune: float
    explained: bool  # whether all detections are of tracks where there is no clutter


def scanned(tracks: list[Track], model: Model, z: Array, by: Detecting, rules: Rules, rng: Any, step: int) -> Update:
    """Update tracks with detections (k, m), of which they stand at the prediction.

    Raises
    ------
    ValueError
        If a target that is detected for certain is not, or a detection belongs to no target where there is no clutter.
    """
    gate = Gate(model, by.sensor, [track.filter.predicted_observation(by.sensor) for track in tracks])
    existence = np.array([track.existence for track in tracks])
    log_clutter = np.log(by.clutter_density) if by.clutter_density > 0 else -np.inf
    missed = 1 - existence * by.probability
    with np.errstate(divide="ignore"):
        log_factors = np.log(existence * by.probability) - log_clutter
    inside = gate.open(z, missed, log_factors, rules.gate_probability)
    # the miss comes first: its particles are those at which the gate has looked
    unseen = [supposed(track.filter, None, by.sensor) for track in tracks]
    seen = [
        {int(j): supposed(track.filter, z[j], by.sensor) for j in np.flatnonzero(row)}
        for track, row in zip(tracks, inside, strict=True)
    ]
    log_densities = np.full(inside.shape, -np.inf)
    for i, own in enumerate(seen):
        for j, hypothesis in own.items():
            log_densities[i, j] = hypothesis.log_evidence
    matrix = ratios(existence, by.probability, log_densities, log_clutter)
    if rules.gate_probability < 1:  # what changes no marginal by more than that ties no tracks together
        matrix[:, 1:][matrix[:, 1:] < BESIDE_MISSED * matrix[:, :1]] = 0.0
    _check_detected(matrix, tracks, step)
    marginals = associate(matrix, rules.association, rng).marginals
    left = 1 - marginals[:, 1:].sum(axis=0)
    if by.clutter_density == 0 and rules.explained and left.sum() > UNEXPLAINED:
        j = int(np.argmax(left))
        raise ValueError(
            f"scan: expected detections of tracks alone, as the clutter density is zero, got {z[j]} as detection {j} at "
            f"step {step}, which is of no track; give a clutter density, or births where targets may appear"
        )
    after, weights = updated(existence, by.probability, marginals)
    kept = [
        Track(track.label, float(r), _combined(missing, own, shares))
        for track, r, missing, own, shares in zip(tracks, after, unseen, seen, weights, strict=True)
        if r >= rules.prune
    ]
    return Update(kept, z, np.clip(left, 0.0, 1.0))


def _combined(missing: Hypothesis, own: dict[int, Hypothesis], shares: Array) -> Any:
    """Return one filter for a track that was missed, or has given rise to one of the detections in its gate."""
    filters = [missing.filter, *(hypothesis.filter for hypothesis in own.values())]
    return combined(filters, shares[[0, *(1 + j for j in own)]])


def _check_detected(matrix: Array, tracks: list[Track], step: int) -> None:
    lost = ~(matrix > 0).any(axis=1)
    if lost.any():
        label = tracks[int(np.argmax(lost))].label
        raise ValueError(
            f"scan: expected a detection of track {label}, which exists and is detected for certain, got none that it may "
            f"have at step {step}; give a detection or a survival probability below 1"
        )
