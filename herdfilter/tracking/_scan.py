"""A scan as a tracker takes it: detections of one sensor, how it comes by them, and which track each may belong to."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.special
from numpy.typing import ArrayLike

from herdfilter._checks import Array, short_repr
from herdfilter.angles import wrap_angles
from herdfilter.models.contract import Model, observation_circular
from herdfilter.models.sensors import Sensor, sensed
from herdfilter.models.with_clutter import WithClutter

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
