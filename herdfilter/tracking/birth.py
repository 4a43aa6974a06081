"""Where targets appear: at known places in every step, or where detections are that no track accounts for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from herdfilter._checks import Array, as_array, as_fraction, as_positive, short_repr
from herdfilter._repr import fields_in_line
from herdfilter.angles import wrap_angles
from herdfilter.filters.kalman.gaussian import observation_moments
from herdfilter.filters.kalman.rules import LINEAR_RULE
from herdfilter.filters.series import as_duration
from herdfilter.mixture import GaussianMixture
from herdfilter.models.contract import OBSERVED, Model, circular_dims, observation_circular, require
from herdfilter.models.sensors import Sensor, sensed


def as_probability(name: str, value: float, least: float = 0.0) -> float:
    """Return a number from `least` to 1."""
    return as_fraction(name, value, f"a probability from {least:g} to 1", least)


@dataclass(frozen=True, eq=False, repr=False)
class Birth:
    """A place where a target may appear.

    Parameters
    ----------
    probability : float
        That one appears, in a time of 1.
    initial : GaussianMixture
        Distribution of its state at the step at which it appears.

    Raises
    ------
    TypeError, ValueError
        If the distribution is no mixture, or the probability none.

    Examples
    --------
    A gate at the origin, through which a target comes in one of fifty steps; in ten of them, almost in one of five.

    >>> gate = hf.GaussianMixture([1.0], [[0.0, 0.0]], np.diag([1.0, 4.0]))
    >>> birth = hf.tracking.Birth(0.02, gate)
    >>> round(birth.within(10.0).probability, 4), round(1 - 0.98**10, 4)
    (0.1829, 0.1829)
    """

    probability: float
    initial: GaussianMixture

    __repr__ = fields_in_line

    def __post_init__(self) -> None:
        object.__setattr__(self, "probability", as_probability("probability", self.probability))
        if not isinstance(self.initial, GaussianMixture):
            raise TypeError(f"initial: expected a herdfilter.GaussianMixture, got {short_repr(self.initial)}")

    def within(self, dt: float) -> Birth:
        """Return the birth with the probability that a target appears in a time `dt`."""
        dt = as_duration("dt", dt)
        return self if dt == 1 else replace(self, probability=1 - (1 - self.probability) ** dt)


class Left(NamedTuple):
    """What a scan leaves to births.

    Attributes
    ----------
    sensor : Sensor or None
        What a detection is of; None for the model's own observation functions.
    z : ndarray, shape (k, m)
        The detections.
    unexplained : ndarray, shape (k,)
        Probability that each is of no track.
    """

    sensor: Sensor | None
    z: Array
    unexplained: Array


@dataclass(frozen=True, eq=False, repr=False)
class BirthFromMeasurements:
    r"""Births where detections are that no track accounts for (Reuter, Vo, Vo and Dietmayer 2014, section IV-B).

    A detection which belongs to tracks with the probability u starts a track at the next step, which exists with the
    probability :math:`\min(r_{max}, \lambda (1 - u) / \sum (1 - u))`. Its state is the posterior of `prior` given the
    detection, by an extended Kalman filter's update that is repeated about its own result (Bell and Cathey 1993); then it
    moves as all states do.

    Parameters
    ----------
    prior : GaussianMixture
        Of one component: what is known about a new target without the detection. Wide in what a detection shows; as wide
        as targets differ in what it does not show, such as velocities.
    expected : float
        Mean number lambda of births in a time of 1.
    most : float
        Largest probability of existence of a new track.
    state : callable, optional
        ``(k, m) -> (k, d)``: states that would be seen as these detections, from which the iteration starts: for radar,
        the position that range and bearing point to. The mean of the prior unless given.

    Raises
    ------
    TypeError, ValueError
        If the prior is not one Gaussian, or a number is out of range.

    Examples
    --------
    What a radar at the origin makes of a detection at 1 km due north: the place is that of the detection, to some metres; of
    the velocity, and of the turn rate, nothing is known but the prior.

    >>> model = hf.models.WithClutter(hf.models.CoordinatedTurn(), 0.9, clutter_density=1e-4)
    >>> prior = hf.GaussianMixture([1.0], [[0.0] * 5], np.diag([2000.0, 100.0, 2000.0, 100.0, 0.05]) ** 2)
    >>> def seen_there(z):
    ...     x, y = z[:, 0] * np.cos(z[:, 1]), z[:, 0] * np.sin(z[:, 1])
    ...     return np.column_stack([x, 0 * x, y, 0 * x, 0 * x])
    ...
    >>> births = hf.tracking.BirthFromMeasurements(prior, state=seen_there)
    >>> (mean,), (covariance,) = births.located(model, np.array([[1000.0, np.pi / 2]]), step=1)
    >>> np.allclose(mean[[0, 2]], [0, 1000], atol=1), np.sqrt(np.diagonal(covariance)).round(2).tolist()
    (True, [3.16, 100.0, 10.0, 100.0, 0.05])
    """

    prior: GaussianMixture
    expected: float = 0.1
    most: float = 0.1
    state: Callable[[Array], Array] | None = None

    __repr__ = fields_in_line

    def __post_init__(self) -> None:
        if not isinstance(self.prior, GaussianMixture):
            raise TypeError(f"prior: expected a herdfilter.GaussianMixture, got {short_repr(self.prior)}")
        if len(self.prior) != 1:
            raise ValueError(f"prior: expected one component, got {len(self.prior)}")
        if np.linalg.eigvalsh(self.prior.distinct_covariances[0])[0] <= 0:
            raise ValueError("prior: expected a covariance that is positive definite, got a singular one")
        object.__setattr__(self, "expected", as_positive("expected", self.expected))
        if self.state is not None and not callable(self.state):
            raise TypeError(f"state: expected a function of detections, got {short_repr(self.state)}")
        object.__setattr__(self, "most", as_probability("most", self.most))

    def born(self, model: Model, scans: Sequence[Left], step: int, dt: float) -> list[Birth]:
        """Return the births that the scans of a step lead to; in a time `dt` there are `expected` times that."""
        total = sum(scan.unexplained.sum() for scan in scans)
        births = []
        for scan in scans:
            kept = scan.unexplained > 0
            if not kept.any():  # of an empty scan, too
                continue
            rates = self.expected * dt * scan.unexplained[kept] / total
            located = self.located(sensed(model, scan.sensor), scan.z[kept], step)
            for rate, mean, covariance in zip(rates, *located, strict=True):
                place = GaussianMixture.unchecked(np.ones(1), mean[None], covariance)
                births.append(Birth(min(self.most, rate), place))
        return births

    def located(self, model: Model, z: Array, step: int) -> tuple[Array, Array]:
        """Means (k, d) and covariances (k, d, d) of the state given each detection (k, m) alone."""
        require(model, "BirthFromMeasurements", OBSERVED)
        prior, covariance = self.prior.means[0], self.prior.distinct_covariances
        about = np.tile(prior, (len(z), 1))
        if self.state is not None:
            about = as_array("state", self.state(z), about.shape)
        means, covariances = _iterated(model, z, step, prior, covariance, about)
        return wrap_angles(means, circular_dims(model)), covariances


REPEATS = 20
"""Most repetitions of an update about its own result."""

SETTLED = 1e-16
"""Squared move, in standard deviations of the prior, after which there is none."""


def _iterated(model: Model, z: Array, step: int, prior: Array, covariance: Array, about: Array) -> tuple[Array, Array]:
    """Update N(prior, covariance[0]) with each detection (k, m), LINEAR_RULE about a state (k, d), then about the result."""
    inverse, circular = np.linalg.inv(covariance[0]), observation_circular(model, z.shape[1])
    for _ in range(REPEATS):
        predicted, spread, cross = observation_moments(model, about, covariance, LINEAR_RULE, step)
        slopes = (inverse @ cross).transpose(0, 2, 1)
        gains = np.linalg.solve(spread, cross.transpose(0, 2, 1)).transpose(0, 2, 1)
        left = wrap_angles(z - predicted, circular) - (slopes @ (prior - about)[:, :, None])[:, :, 0]
        moved = prior + (gains @ left[:, :, None])[:, :, 0]
        change = np.einsum("ki,ij,kj->k", moved - about, inverse, moved - about)
        about = moved
        if change.max(initial=0.0) < SETTLED:
            break
    kept = np.eye(len(prior)) - gains @ slopes
    noises = spread - slopes @ cross
    return about, kept @ covariance @ kept.transpose(0, 2, 1) + gains @ noises @ gains.transpose(0, 2, 1)


def as_births(name: str, given: Any) -> tuple[Birth, ...]:
    """Return births as a tuple."""
    try:
        births = tuple(given)
    except TypeError:
        births = (None,)
    if not all(isinstance(one, Birth) for one in births):
        more = ", or BirthFromMeasurements(prior)" if name == "birth" else ""
        raise TypeError(
            f"{name}: expected a list of herdfilter.tracking.Birth(probability, initial){more}, got {short_repr(given)}"
        )
    return births


def birth_places(birth: Sequence[Birth] | BirthFromMeasurements) -> list[GaussianMixture]:
    """Return the distributions of states that births start from."""
    return [birth.prior] if isinstance(birth, BirthFromMeasurements) else [one.initial for one in birth]
