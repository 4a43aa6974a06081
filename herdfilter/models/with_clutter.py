"""Missed detections and clutter: an observation is a scan of detections, and at most one of them is of the state."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from herdfilter import _checks
from herdfilter._checks import Array, UserFunction
from herdfilter._repr import fields_in_line
from herdfilter.angles import wrap_angles
from herdfilter.mixture import log_sum
from herdfilter.models import contract
from herdfilter.models.from_functions import PicklesFunctions
from herdfilter.models.parts import assign
from herdfilter.models.resolved import Measurement
from herdfilter.models.returned import read_numbers

# approximate size of the grid over the region on which the bound of a clutter density is found
GRID_POINTS = 10_000

Factor = float | Array


@dataclass(frozen=True, eq=False, repr=False)
class WithClutter(contract.Wrapper):
    r"""A model with missed detections and false alarms (clutter).

    The state moves as in `model`. An observation is a scan: k >= 0 detections in any order, (k, m). With probability
    :math:`P_D` one of them is an observation of the state by `model`, with density g. All others are clutter: their number
    is Poisson, their positions are independent, and :math:`\kappa` of them are expected in a unit of the volume of
    observations. Relative to clutter alone, the likelihood of a scan Z is (Bar-Shalom and Li 1995, section 3.4)

    .. math:: 1 - P_D + \frac{P_D}{\kappa} \sum_{z \in Z} g(z \mid x).

    Without clutter a scan has at most one detection: the likelihood is :math:`P_D\, g(z \mid x)`, or :math:`1 - P_D` of an
    empty scan. If also :math:`P_D = 1`, filters do the same as with `model` alone, to the last bit.

    If :math:`P_D` depends on the state, filters of Gaussians take its expectation over each Gaussian, by their own rule for
    moments.

    Mean and covariance of an observation are those of the detection of the state. A ``log_likelihood`` of `model` must be a
    density of z with all its constants: a constant left out would count as clutter.

    Parameters
    ----------
    model : object
        A state-space model with a likelihood, or with mean and covariance of an observation.
    detection_probability : float or callable
        :math:`P_D`, above 0, at most 1; or a function of states, (n, d) -> (n,), from 0 to 1.
    clutter_density : float or callable
        :math:`\kappa`, at least 0: false detections expected in a unit of the volume of observations, such as metre times
        radian. Or a function of detections, (k, m) -> (k,), above 0.
    region : array_like, shape (m, 2), optional
        Lowest and highest value of every entry of an observation; used only to simulate clutter.

    Examples
    --------
    A radar that misses one detection in ten and reports false ones:

    >>> region = [[0, 3000], [-np.pi, np.pi]]
    >>> model = hf.models.WithClutter(hf.models.CoordinatedTurn(), 0.9, clutter_density=1e-4, region=region)
    >>> truth, scans = hf.simulate(model, steps=20, rng=1)
    >>> means = hf.UnscentedKalmanFilter(model).run(scans).means
    >>> bool(np.median(np.hypot(*(means - truth)[:, [0, 2]].T)) < 30)
    True
    """

    model: contract.Model
    detection_probability: float | UserFunction
    clutter_density: float | UserFunction
    region: ArrayLike | None = None

    scans = True
    partial_observations = False

    __repr__ = fields_in_line
    __reduce__ = PicklesFunctions.__reduce__

    def __post_init__(self) -> None:
        contract.require_likelihood(self.model, "WithClutter")
        for name, expected, fits in (
            ("detection_probability", "a number above 0, up to 1", lambda p: 0 < p <= 1),
            ("clutter_density", "a finite number of at least 0", lambda y: 0 <= y < np.inf),
        ):
            value = getattr(self, name)
            if not callable(value):
                value = _checks.as_number(name, value, f"{expected}, or a function", fits)
                assign(self, **{name: value})
        if self.region is None:
            return
        assign(self, region=_checks.as_bounds("region", self.region, None, finite=True))
        # Raises an error if the region has another length than an observation. A covariance that depends on the state is
        # left alone, as the model's functions are not called before a filter needs them.
        if self._detection.has_moments and not self._detection.takes_state:
            self._bounds(self.detection_size(step=1))  # type: ignore[arg-type]

    def __copy__(self) -> WithClutter:
        return replace(self, model=copy.copy(self.model))

    @cached_property
    def _detection(self) -> Measurement:
        """The observation functions of a detection, in the first mode if there are several."""
        return Measurement(contract.in_mode(self.model, 0))

    def log_likelihood(self, z: ArrayLike, x: Array, step: int) -> Array:
        """Log-likelihood of a scan z (k, m) relative to clutter alone; (n, d) -> (n,)."""
        scan = np.zeros((0, 1)) if z is None else self.as_scan(z, step)
        missed, detected = self.log_factors(self.detection_probabilities(x, step), scan, step)
        # the equation of the class: one term for a missed state, and one for each detection that may be of the state
        terms = np.full((1 + len(scan), len(x)), missed)
        terms[1:] = detected + self.detection_log_likelihoods(scan, x, step)
        return log_sum(terms)

    def detection_size(self, step: int, x: Array | None = None) -> int | None:
        """Return m, the length of a detection; None if the model has only a likelihood, and no region.

        It is read from ``observation_covariance``; if that depends on the state, from ``observation_mean`` at states `x`,
        (n, d), or at the mean of the initial distribution; else from `region`.
        """
        detection = self._detection
        if detection.has_moments:
            if not detection.takes_state:
                return len(np.atleast_1d(detection.model.observation_covariance(step)))
            mean = getattr(getattr(detection.model, "initial", None), "mean", None)
            x = np.atleast_2d(mean) if x is None and mean is not None else x
            if x is not None:
                return len(detection.mean(x, step)[0])
        return None if self.region is None else len(self.region)  # type: ignore[arg-type]

    def as_scan(self, z: Any, step: int, x: Array | None = None) -> Array:
        """Read detections, (k, m), with m as of `detection_size`; if m is 1, a flat list holds a detection in each number.

        Raises ValueError if they have another length, are not real numbers, or some are NaN, infinite or too large.
        """
        size = self.detection_size(step, x)
        m = "m" if size is None else str(size)
        expected = f"z: expected a scan, detections (k, {m})"
        try:
            scan = _checks.as_numbers("z", z, (None, size), missing=True)
        except ValueError:
            raise ValueError(f"{expected}, got {_checks.short_repr(z)} at step {step}") from None
        if scan.shape == (0,):
            return np.zeros((0, size or 0))
        if scan.ndim == 1 and size == 1:
            scan = scan[:, None]
        if scan.ndim != 2 or (len(scan) and scan.shape[1] != (size or max(1, scan.shape[1]))):
            raise ValueError(
                f"{expected}, a list of detections of {m} numbers each, got shape {scan.shape} at step {step}"
            )
        # a comparison with NaN is False
        wrong = np.flatnonzero(~(np.abs(scan) <= _checks.LARGEST).all(axis=1))
        if len(wrong):
            raise ValueError(
                f"{expected} of finite numbers, got {scan[wrong[0]].tolist()} at step {step}; leave that detection out, or "
                "give None if there was no scan"
            )
        return scan

    def detection_probabilities(self, x: Array, step: int) -> Factor:
        """Return P_D of states (n, d), (n,), checked; or a number if it is constant."""
        expected = "probabilities from 0 to 1"
        return self._values("detection_probability", x, step, expected, lambda p: 0 <= p <= 1)

    def clutter_densities(self, scan: Array, step: int) -> Factor:
        """Return the density of clutter at detections (k, m), (k,), checked; or a number if it is constant."""
        expected = "finite densities above 0"
        return self._values("clutter_density", scan, step, expected, lambda y: 0 < y < np.inf)

    def _values(
        self, name: str, rows: Array, step: int, expected: str, fits: Callable[[float], bool]
    ) -> Factor:
        """Return a number, or the values of a user's function at rows (n, k), (n,), if the extreme ones fit."""
        function = getattr(self, name)
        if not callable(function):
            return function
        try:
            values = function(_checks.read_only(rows)) if len(rows) else np.empty(0)
        except Exception as error:
            raise ValueError(
                f"{name}: expected {expected} for rows {rows.shape}, got {_checks.short_repr(error)} at step {step}"
            ) from error
        array = read_numbers(name, values, (len(rows),), step)
        for extreme in (array.min(), array.max()) if len(rows) else ():
            if not fits(extreme):
                raise ValueError(f"{name}: expected {expected}, got {extreme} at step {step}")
        return array

    def log_factors(self, detected: Factor, scan: Array, step: int) -> tuple[Factor, Factor]:
        """Return the logs of 1 - P_D, the term of a missed state, and of P_D / kappa, the factor of a detection's density.

        P_D is `detected`, a number or (n,). The logs are numbers, or arrays that broadcast to (n,) and, with k detections,
        to (k, n). Raises ValueError if there are several detections although there is no clutter.
        """
        density = self.clutter_densities(scan, step)
        # -inf is meant: the state is detected for certain, or never
        with np.errstate(divide="ignore"):
            log_missed = np.log1p(-detected)
            log_detected = np.log(detected)
        if isinstance(density, np.ndarray):
            return log_missed, log_detected - np.log(density)[:, None]
        if density > 0:
            return log_missed, log_detected - np.log(density)
        if len(scan) > 1:
            raise ValueError(
                f"z: expected at most one detection, as clutter_density is 0, got {len(scan)} at step {step}; give the "
                "clutter a density above 0"
            )
        # without clutter a detection is certainly of the state, and it was not missed
        return (-math.inf if len(scan) else log_missed), log_detected

    def detection_log_likelihoods(self, scan: Array, x: Array, step: int) -> Array:
        """Return the log-density of every detection (k, m) as one of the state; (n, d) -> (k, n)."""
        if not len(scan):
            return np.empty((0, len(x)))
        measurement = Measurement(self.model)
        # all detections in one call, unless the model's own likelihood takes one at a time
        if measurement.has_likelihood or len(scan) == 1:
            return np.array([measurement.log_likelihood(z, x, step) for z in scan])
        return detection_log_densities(self.model, scan, *measurement.moments(x, step), step)

    def sample_observation(self, x: Array, rng: Generator, step: int) -> list[Array]:
        """Draw a scan of each state, in the region: a list of n arrays (k, m).

        Raises ValueError if there is clutter but no region.
        """
        detections = np.asarray(Measurement(self.model).sample(x, rng, step))
        draw_clutter = self.clutter_sampler(detections.shape[1], rng, step)
        probabilities = np.broadcast_to(self.detection_probabilities(x, step), len(x))
        scans = []
        for detection, probability in zip(detections, probabilities, strict=True):
            detected = rng.random() < probability
            # shuffled, so that the order of a scan does not reveal the detection of the state
            scan = np.vstack([detection[None][: int(detected)], draw_clutter()])
            scans.append(rng.permutation(scan))
        return scans

    def clutter_sampler(self, m: int, rng: Generator, step: int) -> Callable[[], Array]:
        """Return a function that draws the false detections (k, m) of a scan, in the region.

        If the density varies, a uniform Poisson process is thinned, whose density is twice the largest on a grid. Raises
        ValueError at a point with more clutter than that, and if there is too much clutter for the memory.
        """
        low, high = self._bounds(m).T
        highest = self.clutter_density
        if callable(highest):
            # equally many points along each entry of a detection
            axes = np.linspace(low, high, max(2, round(GRID_POINTS ** (1 / m)))).T
            grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, m)
            highest = 2 * float(np.max(self.clutter_densities(grid, step)))
        # mean number of points of the process: density times volume
        expected = highest * float(np.prod(high - low))
        if expected > _checks.MOST:
            raise ValueError(
                f"clutter_density, region: expected up to {_checks.MOST} false detections in a scan, got {expected}"
            )

        def draw() -> Array:
            points = rng.uniform(low, high, (rng.poisson(expected), m))
            densities = self.clutter_densities(points, step)
            if isinstance(densities, float):
                return points
            if densities.max(initial=0.0) > highest:
                raise ValueError(
                    f"clutter_density: expected up to {highest}, twice the largest on a grid over the region, got "
                    f"{densities.max()} at {points[densities.argmax()].tolist()} at step {step}; take a smoother function"
                )
            # thinning: a point stays with the probability density / highest
            return points[rng.random(len(points)) * highest < densities]

        return draw

    def _bounds(self, m: int) -> Array:
        if self.region is None:
            if callable(self.clutter_density) or self.clutter_density > 0:
                raise ValueError(
                    f"region: expected bounds ({m}, 2) in which clutter is simulated, got None; give "
                    "WithClutter(..., region=[[lowest, highest], ...])"
                )
            return np.zeros((m, 2))
        region = np.asarray(self.region)
        if len(region) != m:
            raise ValueError(f"region: expected bounds of shape ({m}, 2), got {region.shape}")
        return region


def detection_log_densities(
    model: contract.Model, scan: Array, means: Array, covariances: Array, step: int
) -> Array:
    """Return the log-density of every detection (k, m) under each N(means[i], covariances[i]), angles wrapped; (k, n).

    Means are (n, m) and covariances (n, m, m), or (1, m, m) shared by all.
    """
    k, size = scan.shape
    n, m = means.shape
    if size != m:
        raise ValueError(
            f"z: expected detections of length {m}, as observation_mean has, got {size} at step {step}"
        )
    circular = Measurement(model).circular(m)
    residuals = wrap_angles((scan[:, None] - means).reshape(-1, m), circular)
    if len(covariances) > 1:
        # one for each pair of detection and state, in the order of the residuals
        covariances = np.tile(covariances, (k, 1, 1))
    return contract.gaussian_log_density(residuals, covariances, step).reshape(k, n)


def read_scan(model: WithClutter, z: Any, step: int) -> tuple[contract.Model, Array] | None:
    """Return a scan and the model whose likelihood it has; None if `z` is None, which stands for no scan at all.

    A detection that is certainly of the state is an observation of the model without clutter.
    """
    if z is None:
        return None
    scan = model.as_scan(z, step)
    model.log_factors(1.0, scan, step)  # raises an error if there are too many detections
    if len(scan) == 1 and model.clutter_density == 0 and model.detection_probability == 1:
        return model.model, scan[0]
    return model, scan
