"""Missed detections and clutter: a model whose observation is a scan of detections, of which at most one is of the state."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import LARGEST, MOST, Array, as_array, as_numbers, short_repr
from herdfilter._repr import fields_in_line
from herdfilter.angles import wrap_angles
from herdfilter.models import contract
from herdfilter.models.contract import gaussian_log_density


@dataclass(frozen=True, eq=False, repr=False)
class WithClutter:
    r"""A model seen by a sensor that may miss it, and that detects other things, too.

    The state moves as that of `model`. An observation is a scan: k >= 0 detections in any order, (k, m). With the
    probability :math:`P_D` one of them is an observation of the state by `model`, whose density is g; all others are
    clutter, whose number is Poisson and whose places are independent, :math:`\kappa` of them in a unit of the volume of
    observations. Beside that of clutter alone the likelihood of a scan Z is (Bar-Shalom and Li 1995, section 3.4)

    .. math:: 1 - P_D + \frac{P_D}{\kappa} \sum_{z \in Z} g(z \mid x).

    Without clutter a scan has one detection at most: then the likelihood is :math:`P_D\, g(z \mid x)`, or :math:`1 - P_D`
    of an empty scan. With :math:`P_D = 1`, too, filters do what they do with `model` alone, to the last bit.

    What filters ask about observations besides, mean and covariance, is about the detection of the state. Where `model` has
    a ``log_likelihood`` of its own it has to be a density of z: a constant left out would count as clutter.

    Parameters
    ----------
    model : object
        A state-space model; see `herdfilter.models.contract`.
    detection_probability : float
        :math:`P_D`, above 0, at most 1.
    clutter_density : float
        :math:`\kappa`, at least 0: false detections expected in a unit of the volume of observations, such as metre times
        radian.
    region : array_like, shape (m, 2), optional
        Lowest and highest value of every entry of an observation: where clutter is simulated, and used for nothing else.

    Raises
    ------
    TypeError
        If the model has neither a likelihood nor mean and covariance of an observation.
    ValueError
        If a number is out of range, or the region is none.

    Examples
    --------
    A radar that misses one of ten, with false detections: a scan may hold any number, of which the filter makes what it can.

    >>> region = [[0, 3000], [-np.pi, np.pi]]
    >>> model = hf.models.WithClutter(hf.models.CoordinatedTurn(), 0.9, clutter_density=1e-4, region=region)
    >>> truth, scans = hf.simulate(model, steps=20, rng=1)
    >>> len(scans), {scan.shape[1] for scan in scans}, len({len(scan) for scan in scans}) > 1
    (20, {2}, True)
    >>> means = hf.UnscentedKalmanFilter(model).run(scans).means
    >>> bool(np.median(np.hypot(*(means - truth)[:, [0, 2]].T)) < 30)
    True
    """

    model: contract.Model
    detection_probability: float
    clutter_density: float
    region: ArrayLike | None = None

    scans = True
    partial_observations = False
    _learned = None  # length of a detection, where only a scan tells

    __repr__ = fields_in_line

    def __post_init__(self) -> None:
        contract.require_likelihood(self.model, "WithClutter")
        p = as_array("detection_probability", self.detection_probability, (), finite=False)
        if not 0 < p <= 1:
            raise ValueError(f"detection_probability: expected a number above 0, up to 1, got {float(p):g}")
        density = as_array("clutter_density", self.clutter_density, (), finite=False)
        if not 0 <= density < np.inf:
            raise ValueError(f"clutter_density: expected a finite number of at least 0, got {float(density):g}")
        object.__setattr__(self, "detection_probability", float(p))
        object.__setattr__(self, "clutter_density", float(density))
        if self.region is not None:
            region = as_array("region", self.region, (None, 2))
            if not (region[:, 0] < region[:, 1]).all():
                raise ValueError(
                    f"region: expected rows (lowest, highest), the first below the second, got {region.tolist()}"
                )
            object.__setattr__(self, "region", region)
            one = contract.in_mode(self.model, 0) if contract.jumps(self.model) else self.model
            if contract.has(one, contract.OBSERVED) and not contract.takes_state(one):
                self._bounds(len(np.atleast_1d(one.observation_covariance(1))))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "model":  # while it is copied or unpickled
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.model, name)

    def __copy__(self) -> WithClutter:
        return WithClutter(copy.copy(self.model), self.detection_probability, self.clutter_density, self.region)

    @property
    def kind_in_errors(self) -> str:
        """Name of the class that lacks what is missing."""
        return contract.kind(self.model)

    def log_likelihood(self, z: ArrayLike, x: Array, step: int) -> Array:
        """Log-likelihood of a scan z (k, m) beside that of clutter alone; (n, d) -> (n,)."""
        scan = np.zeros((0, 1)) if z is None else self.as_scan(z, step)
        missed, detected = self.log_factors(len(scan), step)
        terms = np.full((1 + len(scan), len(x)), missed)
        terms[1:] = detected + self.detection_log_likelihoods(scan, x, step)
        return log_sum(terms)

    def detection_size(self, step: int, x: Array | None = None) -> int | None:
        """Return m, the entries of a detection; None where the model has a likelihood alone, and no scan was taken up yet.

        It is that of ``observation_covariance``; where that depends on the state, of ``observation_mean`` at states `x`,
        (n, d), or at the mean of the initial distribution. Else it is that of `region`, or of the first scan.
        """
        model = contract.in_mode(self.model, 0) if contract.jumps(self.model) else self.model
        if contract.has(model, contract.OBSERVED):
            if not contract.takes_state(model):
                return np.atleast_2d(np.asarray(model.observation_covariance(step))).shape[-1]
            mean = getattr(getattr(model, "initial", None), "mean", None)
            x = np.atleast_2d(mean) if x is None and mean is not None else x
            if x is not None:
                return contract.observation_mean(model, x, step).shape[1]
        return self._learned if self.region is None else len(np.asarray(self.region))

    def learn_size(self, scan: Array) -> None:
        """Keep the length of the detections (k, m) of a scan that has been taken up, for `detection_size`."""
        if self._learned is None and len(scan):
            object.__setattr__(self, "_learned", scan.shape[1])

    def as_scan(self, z: Any, step: int, x: Array | None = None) -> Array:
        """Read detections, (k, m), with m as of `detection_size`; where it is 1, of a flat list each number is one.

        Raises
        ------
        ValueError
            If they have another length, are no real numbers, or some are NaN, infinite or too large.
        """
        size = self.detection_size(step, x)
        m = "m" if size is None else str(size)
        expected = f"z: expected a scan, detections (k, {m})"
        try:
            scan = as_numbers("z", z, (None, size), missing=True)
        except ValueError:
            lengths = sorted({np.size(one) for one in z}) if isinstance(z, list | tuple) else []
            found = f"lengths {', '.join(map(str, lengths))}" if len(lengths) > 1 else short_repr(z)
            raise ValueError(f"{expected}, got {found} at step {step}") from None
        if scan.shape == (0,):
            return np.zeros((0, size or 0))
        if scan.ndim == 1 and size == 1:
            scan = scan[:, None]
        if scan.ndim != 2 or (len(scan) and scan.shape[1] != (size or max(1, scan.shape[1]))):
            raise ValueError(f"{expected}, a list of detections of {m} numbers each, got shape {scan.shape} at step {step}")
        wrong = np.flatnonzero(~(np.abs(scan) <= LARGEST).all(axis=1))
        if len(wrong):
            raise ValueError(
                f"{expected} of finite numbers, got {scan[wrong[0]].tolist()} at step {step}; leave that detection out, or "
                "give None if there was no scan"
            )
        return scan

    def log_factors(self, detections: int, step: int) -> tuple[float, float]:
        """Logarithms of the factors of the likelihood: of no detection, and of the density of one, in a scan of so many.

        Raises
        ------
        ValueError
            If there are several detections, and there is no clutter.
        """
        p, density = self.detection_probability, self.clutter_density
        missed = math.log1p(-p) if p < 1 else -math.inf
        if density > 0:
            return missed, math.log(p) - math.log(density)
        if detections > 1:
            raise ValueError(
                f"z: expected at most one detection, as clutter_density is 0, got {detections} at step {step}; give the "
                "clutter a density above 0"
            )
        return (missed if detections == 0 else -math.inf), math.log(p)

    def detection_log_likelihoods(self, scan: Array, x: Array, step: int) -> Array:
        """Log-density of every detection (k, m) as one of the state; (n, d) -> (k, n)."""
        if not len(scan):
            return np.empty((0, len(x)))
        inner = self.model
        if hasattr(inner, "log_likelihood") or len(scan) == 1:
            values = np.array([contract.log_likelihood(inner, z, x, step) for z in scan])
            self.learn_size(scan)
            return values
        means = contract.observation_mean(inner, x, step)
        noises = contract.observation_covariances(inner, x, means.shape[1], step)
        return detection_log_densities(inner, scan, means, noises, step)

    def sample_observation(self, x: Array, rng: np.random.Generator, step: int) -> list[Array]:
        """Draw a scan of each state, in the region: a list of n arrays (k, m).

        Raises
        ------
        ValueError
            If there is clutter, and no region.
        """
        detections = np.asarray(contract.sample_observation(self.model, x, rng, step))
        m = detections.shape[1]
        bounds = self._bounds(m)
        expected = self.clutter_density * float(np.prod(bounds[:, 1] - bounds[:, 0]))
        if expected > MOST:
            raise ValueError(f"clutter_density, region: expected up to {MOST} false detections in a scan, got {expected:g}")
        scans = []
        for detection in detections:
            seen = rng.random() < self.detection_probability
            clutter = rng.uniform(bounds[:, 0], bounds[:, 1], (rng.poisson(expected), m))
            scans.append(rng.permutation(np.vstack([detection[None][: int(seen)], clutter])))
        return scans

    def _bounds(self, m: int) -> Array:
        if self.region is None:
            if self.clutter_density > 0:
                raise ValueError(
                    f"region: expected bounds ({m}, 2) in which clutter is simulated, got None; give "
                    "WithClutter(..., region=[[lowest, highest], ...])"
                )
            return np.zeros((m, 2))
        region = np.asarray(self.region)
        if len(region) != m:
            raise ValueError(f"region: expected bounds of shape ({m}, 2), got {region.shape}")
        return region


def detection_log_densities(model: contract.Model, scan: Array, means: Array, covariances: Array, step: int) -> Array:
    """Log-density of every detection (k, m) by each N(means[i], covariances[i]), angles wrapped; (k, n).

    Means are (n, m) and covariances (n, m, m), or (1, m, m) for all.
    """
    (k, _), (n, m) = scan.shape, means.shape
    if scan.shape[1] != m:
        raise ValueError(f"z: expected detections of length {m}, as of observation_mean, got {scan.shape[1]} at step {step}")
    circular = contract.observation_circular(model, m)
    residuals = wrap_angles((scan[:, None] - means).reshape(-1, m), circular)
    if len(covariances) > 1:
        covariances = np.tile(covariances, (k, 1, 1))
    return gaussian_log_density(residuals, covariances, step).reshape(k, n)


def log_sum(terms: Array) -> Array:
    """Logarithm of the sum of exponentials along the first axis; minus infinity where all are."""
    peak = terms.max(axis=0)
    peak = np.where(peak == -np.inf, 0.0, peak)
    with np.errstate(divide="ignore"):
        return np.asarray(peak + np.log(np.exp(terms - peak).sum(axis=0)))


def read_scan(model: WithClutter, z: Any, step: int) -> tuple[contract.Model, Array] | None:
    """Return the model with which a scan is to be read, and what is read; None of None, which is no scan at all.

    A detection that is sure to be of the state is an observation by the model without clutter.
    """
    if z is None:
        return None
    scan = model.as_scan(z, step)
    model.log_factors(len(scan), step)  # names detections for which there is no room
    if len(scan) == 1 and model.clutter_density == 0 and model.detection_probability == 1:
        return model.model, scan[0]
    return model, scan
