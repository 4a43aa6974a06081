"""Systems after textbooks and papers of several fields, one scenario each.

A pendulum, an epidemic, a robot among landmarks that look alike, an aircraft over terrain, with and without errors of its
instruments, a ship in a current, two volatile returns, predators with their prey, and a number driven by a linear system.
Each names its source, and what is ours in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, logsumexp

from herdfilter._checks import Array, as_array, as_fraction, as_number, check_share
from herdfilter.angles import wrap_angles
from herdfilter.mixture import GaussianMixture
from herdfilter.models.parts import (
    GaussianStart,
    IndependentNoise,
    Parameters,
    UniformBox,
    acceleration_block,
    array_field,
    as_observation,
)

__all__ = [
    "AlikeLandmarks",
    "Arctangent",
    "CrossBearings",
    "Epidemic",
    "InertialTerrain",
    "Leverage",
    "Pendulum",
    "PredatorsAndPrey",
    "Terrain",
]

Rng = np.random.Generator

LOG_ROOT_TAU = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True, eq=False)
class Pendulum(IndependentNoise, GaussianStart):
    r"""Pendulum (angle rad, rate rad/s), seen from the side: only its horizontal position is observed.

    .. math::
        \omega_k &= \omega_{k-1} - g\, \Delta t \sin\theta_{k-1} + q_{\omega}, \qquad
        \theta_k = \theta_{k-1} + \Delta t\, (\omega_{k-1} - g\, \Delta t \sin\theta_{k-1}) + q_{\theta}, \\
        y_k &= \sin\theta_k + N(0, \sigma_y^2)

    The noise is white acceleration. The angle wraps: a fast pendulum goes over the top, and the observation of an angle
    :math:`\theta` is that of :math:`\pi - \theta`, until the rate tells which of the two it is.

    Parameters
    ----------
    gravity : float
        Gravity over length g, in 1/s^2.
    spectral_density : float
        Of the acceleration, in rad^2/s^3.
    position_sd : float
        Standard deviation of an observation, in lengths of the pendulum.
    initial_mean, initial_covariance : array_like, shapes (2,) and (2, 2)
        Mean and covariance of the state at step 0.

    Notes
    -----
    After Särkkä (2013), "Bayesian filtering and smoothing", Cambridge University Press: the noisy pendulum of examples 5.1
    and 7.1. Ours: all numbers but gravity, and the step of the integration, which takes the new rate for the angle.

    Examples
    --------
    >>> from herdfilter.study.data.textbook import Pendulum
    >>> Pendulum().transition_mean(np.array([[0.0, 1.0]]), 0.1, None, 1).round(2).tolist()
    [[0.1, 1.0]]
    """

    gravity: float = 9.81
    spectral_density: float = 0.5
    position_sd: float = 0.3
    initial_mean: Array = array_field(np.zeros(2))
    initial_covariance: Array = array_field(np.diag([1.0, 9.0]))

    dim = 2
    circular = (0,)
    sd_fields = ("position_sd",)
    observation_circular = ()
    partial_observations = True

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """States (n, 2) a time `dt` later, without noise."""
        rate = x[:, 1] - self.gravity * dt * np.sin(x[:, 0])
        return np.column_stack([x[:, 0] + dt * rate, rate])

    def transition_covariance(self, dt: float, step: int) -> Array:
        """Covariance of the integrated white acceleration, (2, 2)."""
        return self.spectral_density * np.array(acceleration_block(dt))

    def observation_mean(self, x: Array, step: int) -> Array:
        """Horizontal position of the bob, (n, 2) -> (n, 1)."""
        return np.sin(x[:, :1])


@dataclass(frozen=True, eq=False, repr=False)
class Epidemic(Parameters):
    r"""Counts of an epidemic (susceptible, exposed, infectious, new cases of the day, log transmission rate).

    .. math::
        \Delta_E &\sim \text{Bin}(S, 1 - e^{-\beta I \Delta t / N}), \qquad \Delta_I \sim
        \text{Bin}(E, 1 - e^{-\Delta t / \tau_E}), \qquad \Delta_R \sim \text{Bin}(I, 1 - e^{-\Delta t / \tau_I}), \\
        \log\beta_k &= \log\beta_{k-1} + N(0, \sigma_\beta^2 \Delta t), \qquad
        y_k \sim \text{NegBin}\left(\text{mean } \rho\, \Delta_I + m,\ \text{size } \kappa\right)

    The state is whole numbers but for its last entry, and can only be simulated.

    Parameters
    ----------
    population : float
        Number N of people.
    latent, infectious : float
        Mean times :math:`\tau_E` and :math:`\tau_I` in the two compartments, in days.
    volatility : float
        Standard deviation of the log transmission rate after a day.
    reported : float
        Share rho of the new cases that is reported.
    misreports : float
        Mean m of the reports in a day without a case.
    size : float
        Size kappa of the negative binomial: the variance exceeds the mean by its square over kappa.

    Notes
    -----
    After He, Ionides and King (2010), "Plug-and-play inference for disease dynamics: measles in large and small populations
    as a case study", Journal of the Royal Society Interface 7: an SEIR model in whole numbers, and overdispersed reports.
    Ours: the numbers, no births and no seasons, a transmission rate that walks, a negative binomial in place of a normal.

    Examples
    --------
    >>> from herdfilter.study.data.textbook import Epidemic
    >>> truth, z = hf.simulate(Epidemic(), steps=5, rng=1)
    >>> bool((truth[:, :4] == np.rint(truth[:, :4])).all())
    True
    """

    population: float = 20_000.0
    latent: float = 3.0
    infectious: float = 5.0
    volatility: float = 0.05
    reported: float = 0.3
    misreports: float = 0.2
    size: float = 10.0

    dim = 5

    @property
    def initial(self) -> Epidemic:
        """Distribution of the state at step 0, which has only `sample`."""
        return self

    def sample(self, n: int, rng: Rng) -> Array:
        """Draw `n` states of step 0: a few dozen infected, and a transmission rate of 0.5 per day or so."""
        exposed, infectious = np.rint(np.exp(rng.normal(np.log(30.0), 0.7, (2, n))))
        log_rate = rng.normal(np.log(0.5), 0.3, n)
        return np.column_stack(
            [self.population - exposed - infectious, exposed, infectious, 0.0 * exposed, log_rate]
        )

    def sample_transition(self, x: Array, rng: Rng, dt: float, control: Any, step: int) -> Array:
        """Draw the states (n, 5) a time `dt` later."""
        s, e, i = np.maximum(np.rint(x[:, :3].T), 0.0).astype(int)
        infected = rng.binomial(
            s, -np.expm1(-np.exp(np.minimum(x[:, 4], 5.0)) * i * dt / self.population)
        )
        onset = rng.binomial(e, -math.expm1(-dt / self.latent))
        removed = rng.binomial(i, -math.expm1(-dt / self.infectious))
        log_rate = x[:, 4] + self.volatility * math.sqrt(dt) * rng.standard_normal(len(x))
        return np.column_stack(
            [s - infected, e + infected - onset, i + onset - removed, onset, log_rate]
        )

    def log_likelihood(self, z: ArrayLike, x: Array, step: int) -> Array:
        """Log-probability of the number of reports `z`, (1,), at each state; (n, 5) -> (n,)."""
        (y,), mean, size = as_observation(z, 1), self._mean(x), self.size
        constant = gammaln(y + size) - gammaln(size) - gammaln(y + 1)
        return np.asarray(
            constant + y * np.log(mean / (mean + size)) - size * np.log1p(mean / size)
        )

    def sample_observation(self, x: Array, rng: Rng, step: int) -> Array:
        """Draw the reports at each state, (n, 5) -> (n, 1)."""
        mean = self._mean(x)[:, None]
        return rng.negative_binomial(self.size, self.size / (mean + self.size)).astype(float)

    def _mean(self, x: Array) -> Array:
        return self.reported * np.maximum(x[:, 3], 0.0) + self.misreports


@dataclass(frozen=True, eq=False, repr=False)
class AlikeLandmarks(Parameters):
    r"""Robot (x m, y m, heading rad) that may be anywhere in a field, among landmarks that look alike.

    The control is the way and the turn since the last step, (m, rad); None means no motion. The observation is range and
    relative bearing of one landmark, any with equal probability, and it does not say which:

    .. math::
        p(r, \varphi \mid x) = \frac{1}{L} \sum_{i=1}^L N(r; \|l^i - p\|, \sigma_r^2)\,
        N(\varphi; \operatorname{atan2}(l^i - p) - h, \sigma_\varphi^2)

    Only the likelihood is known: its mean over the landmarks would say little.

    Parameters
    ----------
    landmarks : array_like, shape (L, 2)
        Positions of the landmarks, in metres.
    side : float
        At step 0 the robot is anywhere in the square from 0 to `side` metres, with any heading.
    range_sd, bearing_sd : float
        Standard deviations of an observation, in metres and radians.
    position_noise, heading_noise : float
        Noise of the motion in a step, in metres and radians.

    Notes
    -----
    After Thrun, Burgard and Fox (2005), "Probabilistic robotics", MIT Press: Monte Carlo localisation (section 8.3) by range
    and bearing of landmarks (section 6.6). Ours: which landmark it is stays unknown and is summed over; the numbers, the
    landmarks and the drive.

    Examples
    --------
    A robot at the origin that looks east is as likely as one that stands farther on, by the second landmark.

    >>> from herdfilter.study.data.textbook import AlikeLandmarks
    >>> model = AlikeLandmarks(landmarks=[[3, 0], [50, 0]])
    >>> here, there = model.log_likelihood([3.0, 0.0], np.array([[0.0, 0, 0], [47, 0, 0]]), 1)
    >>> bool(np.isclose(here, there))
    True
    """

    landmarks: Array = array_field(
        [[2.0, 3], [5, 17], [9, 8], [14, 2], [16, 15], [19, 10]], (None, 2)
    )
    side: float = 20.0
    range_sd: float = 0.5
    bearing_sd: float = 0.1
    position_noise: float = 0.05
    heading_noise: float = 0.03

    dim = 3
    circular = (2,)

    @cached_property
    def initial(self) -> UniformBox:
        """Distribution of the state at step 0: flat over the square and over all headings."""
        return UniformBox(np.array([0.0, 0.0, -np.pi]), np.array([self.side, self.side, np.pi]))

    def control(self, step: int) -> Array:
        """Way and turn (2,) of the simulated drive to `step`, in bends to the left and to the right."""
        return np.array([0.4, 0.2 * math.sin(step / 8)])

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """Poses (n, 3) after the way and the turn in `control`."""
        way, turn = (0.0, 0.0) if control is None else as_array("control", control, (2,))
        heading = x[:, 2] + turn / 2
        return np.column_stack(
            [x[:, 0] + way * np.cos(heading), x[:, 1] + way * np.sin(heading), x[:, 2] + turn]
        )

    def transition_covariance(self, dt: float, step: int) -> Array:
        """Covariance of the noise of a step, (3, 3)."""
        return np.diag([self.position_noise, self.position_noise, self.heading_noise]) ** 2

    def log_likelihood(self, z: ArrayLike, x: Array, step: int) -> Array:
        """Log-density of range and bearing `z`, (2,), at each state; (n, 3) -> (n,)."""
        spread = np.array([self.range_sd, self.bearing_sd])
        scaled = wrap_angles(as_observation(z, 2) - self._views(x), [1]) / spread
        each = -0.5 * (scaled**2).sum(axis=-1)  # (n, L)
        return np.asarray(
            logsumexp(each, axis=1) - np.log(len(self.landmarks) * 2 * np.pi * spread.prod())
        )

    def sample_observation(self, x: Array, rng: Rng, step: int) -> Array:
        """Draw a landmark and its range and bearing at each state, (n, 3) -> (n, 2)."""
        seen = self._views(x)[np.arange(len(x)), rng.integers(len(self.landmarks), size=len(x))]
        return wrap_angles(
            seen + [self.range_sd, self.bearing_sd] * rng.standard_normal(seen.shape), [1]
        )

    def _views(self, x: Array) -> Array:
        """Return range and relative bearing of each landmark, (n, 3) -> (n, L, 2)."""
        offset = self.landmarks - x[:, None, :2]
        bearing = np.arctan2(offset[..., 1], offset[..., 0]) - x[:, 2:]
        return np.stack([np.hypot(offset[..., 0], offset[..., 1]), bearing], axis=-1)


@dataclass(frozen=True, eq=False)
class Terrain(IndependentNoise, GaussianStart):
    r"""Aircraft (east km, north km) that finds its place by the height of the ground below, over a map of it.

    The control is the velocity that inertial navigation shows, (km/s); None means none. The barometer has the height above
    the sea, the radar altimeter that above the ground; the observation is their difference, the height of the ground in m:

    .. math::
        p_k = p_{k-1} + \Delta t\, v_k + N(0, \sigma_v^2 \Delta t\, I), \qquad y_k = h(p_k) + N(0, \sigma_h^2)

    The map h is a sum of 25 plane waves, whose heights shrink with their lengths, from 9 km down to 1 km.

    Parameters
    ----------
    height_sd : float
        Standard deviation of an observation, in metres.
    drift_sd : float
        Drift of inertial navigation, in km / sqrt(s).
    relief : float
        Standard deviation of the height of the ground, in metres.
    initial_mean, initial_covariance : array_like, shapes (2,) and (2, 2)
        Mean and covariance of the position at step 0.

    Notes
    -----
    After Bergman, Ljung and Gustafsson (1999), "Terrain navigation using Bayesian statistics", IEEE Control Systems
    Magazine 19. The map, a formula, and all numbers are ours.

    Examples
    --------
    >>> from herdfilter.study.data.textbook import Terrain
    >>> heights = Terrain().observation_mean(np.random.default_rng(1).uniform(-50, 50, (1000, 2)), 1)
    >>> bool(80 < heights.std() < 120)
    True
    """

    height_sd: float = 15.0
    drift_sd: float = 0.01
    relief: float = 100.0
    initial_mean: Array = array_field(np.zeros(2))
    initial_covariance: Array = array_field(np.diag([9.0, 9.0]))

    dim = 2
    sd_fields = ("height_sd",)
    observation_circular = ()
    partial_observations = True

    def control(self, step: int) -> Array:
        """Velocity (2,) of the simulated flight to `step`, km/s, in a wide bend."""
        return 0.2 * np.array([math.cos(step / 60), math.sin(step / 60)])

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """Positions (n, 2) after a time `dt` at the velocity `control`."""
        return x if control is None else x + dt * as_array("control", control, (2,))

    def transition_covariance(self, dt: float, step: int) -> Array:
        """Covariance of the drift over a time `dt`, (2, 2)."""
        return self.drift_sd**2 * dt * np.eye(2)

    def observation_mean(self, x: Array, step: int) -> Array:
        """Height of the ground in metres, (n, 2) -> (n, 1)."""
        return np.asarray(self.relief * (np.sin(x @ _WAVE_NUMBERS + _PHASES) @ _HEIGHTS)[:, None])


_WAVE = np.arange(25)
_LENGTHS = 9.0 ** (1 - _WAVE / 24)  # km
_WAYS = 2.399963229728653 * _WAVE  # turned by the golden angle, so that no two run alike
_WAVE_NUMBERS = 2 * np.pi / _LENGTHS * np.array([np.cos(_WAYS), np.sin(_WAYS)])
_PHASES = 7.0 * _WAVE**2
_HEIGHTS = _LENGTHS / np.sqrt((_LENGTHS**2).sum() / 2)


@dataclass(frozen=True, eq=False)
class InertialTerrain(IndependentNoise, GaussianStart):
    r"""Aircraft over the map of `Terrain` (east km, north km, velocity errors km/s, barometer error m).

    The velocity that inertial navigation shows and the height that the barometer shows are off by errors that walk slowly:

    .. math::
        p_k &= p_{k-1} + \Delta t\, (v_k + u_{k-1}) + N(0, \sigma_p^2 \Delta t\, I), \qquad
        u_k = u_{k-1} + N(0, \sigma_u^2 \Delta t\, I), \\
        b_k &= b_{k-1} + N(0, \sigma_b^2 \Delta t), \qquad y_k = h(p_k) + b_k + N(0, \sigma_h^2)

    Given the positions the errors u and b are linear and Gaussian.

    Parameters
    ----------
    height_sd : float
        Standard deviation of an observation, in metres.
    position_noise, velocity_noise, height_noise : float
        Noise of the position, in km / sqrt(s), and of the errors, in km/s / sqrt(s) and m / sqrt(s).
    relief : float
        Standard deviation of the height of the ground, in metres.
    initial_mean, initial_covariance : array_like, shapes (5,) and (5, 5)
        Mean and covariance of the state at step 0.

    Notes
    -----
    After Schön, Gustafsson and Nordlund (2005), "Marginalized particle filters for mixed linear/nonlinear state-space
    models", IEEE Transactions on Signal Processing 53: integrated navigation over terrain, with particles for the position
    and Kalman filters for errors of the instruments. Their state has more errors; the map, a formula, and all numbers are
    ours.

    Examples
    --------
    >>> from herdfilter.study.data.textbook import InertialTerrain
    >>> InertialTerrain().transition_mean(np.array([[0.0, 0.0, 0.1, 0.0, 3.0]]), 2.0, [1.0, 0.0], 1).tolist()
    [[2.2, 0.0, 0.1, 0.0, 3.0]]
    """

    height_sd: float = 15.0
    position_noise: float = 0.02
    velocity_noise: float = 0.002
    height_noise: float = 1.0
    relief: float = 100.0
    initial_mean: Array = array_field(np.zeros(5))
    initial_covariance: Array = array_field(np.diag([0.25, 0.25, 1e-4, 1e-4, 400.0]))

    dim = 5
    linear = (2, 3, 4)
    sd_fields = ("height_sd",)
    observation_circular = ()
    partial_observations = True

    def control(self, step: int) -> Array:
        """Velocity (2,) that inertial navigation shows on the simulated flight to `step`, km/s, in a wide bend."""
        return 0.2 * np.array([math.cos(step / 60), math.sin(step / 60)])

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """States (n, 5) after a time `dt` at the velocity `control`."""
        moved = x.copy()
        moved[:, :2] += dt * (
            x[:, 2:4] + (0.0 if control is None else as_array("control", control, (2,)))
        )
        return moved

    def transition_jacobian(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """Jacobian of `transition_mean`, (n, 5, 5)."""
        return np.broadcast_to(np.eye(5) + dt * np.eye(5, k=2) * [0, 0, 1, 1, 0], (len(x), 5, 5))

    def transition_covariance(self, dt: float, step: int) -> Array:
        """Covariance of the noise over a time `dt`, (5, 5)."""
        return dt * np.diag(
            np.repeat([self.position_noise, self.velocity_noise, self.height_noise], [2, 2, 1]) ** 2
        )

    def observation_mean(self, x: Array, step: int) -> Array:
        """Height of the ground in metres, with the error of the barometer; (n, 5) -> (n, 1)."""
        return np.asarray(
            self.relief * (np.sin(x[:, :2] @ _WAVE_NUMBERS + _PHASES) @ _HEIGHTS)[:, None]
            + x[:, 4:]
        )

    def observation_jacobian(self, x: Array, step: int) -> Array:
        """Jacobian of `observation_mean`, (n, 1, 5)."""
        jacobian = np.zeros((len(x), 1, 5))
        jacobian[:, 0, :2] = (
            self.relief * (np.cos(x[:, :2] @ _WAVE_NUMBERS + _PHASES) * _HEIGHTS) @ _WAVE_NUMBERS.T
        )
        jacobian[:, 0, 4] = 1.0
        return jacobian


@dataclass(frozen=True, eq=False)
class Arctangent(IndependentNoise, GaussianStart):
    r"""One nonlinear dimension a, driven by a linear system b of three, after the authors of the marginalised filter.

    .. math::
        a_k &= \arctan a_{k-1} + b_{1,k-1} + N(0, q), \qquad
        b_k = \begin{pmatrix} 1 & 0.3 & 0 \\ 0 & 0.92 & -0.3 \\ 0 & 0.3 & 0.92 \end{pmatrix} b_{k-1} + N(0, q I), \\
        y_k &= \begin{pmatrix} 0.1\, a_k |a_k| \\ b_{1,k} - b_{2,k} + b_{3,k} \end{pmatrix} + N(0, r I)

    Parameters
    ----------
    process_variance : float
        The number q.
    observation_sd : float
        Square root of the number r.
    initial_mean, initial_covariance : array_like, shapes (4,) and (4, 4)
        Mean and covariance of the state at step 0.

    Notes
    -----
    An illustration that its authors give to Schön, Gustafsson and Nordlund (2005), as the documentation of
    LowLevelParticleFilters.jl (Bagge Carlson) has it: q = 0.01, r = 0.1, a N(0, 1), and b known to be 0.

    Examples
    --------
    >>> from herdfilter.study.data.textbook import Arctangent
    >>> Arctangent().observation_mean(np.array([[-2.0, 1.0, 0.5, 0.0]]), 1).tolist()
    [[-0.4, 0.5]]
    """

    process_variance: float = 0.01
    observation_sd: float = 0.1**0.5
    initial_mean: Array = array_field(np.zeros(4))
    initial_covariance: Array = array_field(np.diag([1.0, 0.0, 0.0, 0.0]))

    dim = 4
    linear = (1, 2, 3)
    sd_fields = ("observation_sd", "observation_sd")
    observation_circular = ()
    partial_observations = True

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """States (n, 4) one step later, without noise; `dt` and `control` are not used."""
        return np.column_stack([np.arctan(x[:, 0]) + x[:, 1], x[:, 1:] @ _DRIVE.T])

    def transition_jacobian(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """Jacobian of `transition_mean`, (n, 4, 4)."""
        jacobian = np.zeros((len(x), 4, 4))
        jacobian[:, 0, 0], jacobian[:, 0, 1], jacobian[:, 1:, 1:] = (
            1 / (1 + x[:, 0] ** 2),
            1.0,
            _DRIVE,
        )
        return jacobian

    def transition_covariance(self, dt: float, step: int) -> Array:
        """Covariance of the noise of a step, (4, 4)."""
        return self.process_variance * np.eye(4)

    def observation_mean(self, x: Array, step: int) -> Array:
        """Both observations without noise, (n, 4) -> (n, 2)."""
        return np.column_stack([0.1 * x[:, 0] * np.abs(x[:, 0]), x[:, 1:] @ _SEEN])

    def observation_jacobian(self, x: Array, step: int) -> Array:
        """Jacobian of `observation_mean`, (n, 2, 4)."""
        jacobian = np.zeros((len(x), 2, 4))
        jacobian[:, 0, 0], jacobian[:, 1, 1:] = 0.2 * np.abs(x[:, 0]), _SEEN
        return jacobian


_DRIVE = np.array([[1.0, 0.3, 0.0], [0.0, 0.92, -0.3], [0.0, 0.3, 0.92]])
_SEEN = np.array([1.0, -1.0, 1.0])


@dataclass(frozen=True, eq=False)
class CrossBearings(IndependentNoise, GaussianStart):
    r"""Ship (east m, north m, current east m/s, current north m/s, compass error rad) with bearings of beacons.

    The control is the speed through the water and the course by compass, (m/s, rad from east); None means none. The error c
    of the compass is all but constant, as is the current u. The observation is the compass bearing of each beacon:

    .. math::
        p_k &= p_{k-1} + \Delta t \left(u_{k-1} + s_k \begin{pmatrix} \cos(a_k + c_{k-1}) \\ \sin(a_k + c_{k-1})
        \end{pmatrix}\right) + N(0, \sigma_p^2 \Delta t\, I), \qquad u_k = u_{k-1} + N(0, \sigma_u^2 \Delta t\, I), \\
        c_k &= c_{k-1} + N(0, \sigma_c^2 \Delta t), \qquad
        \varphi_k^i = \operatorname{atan2}(b^i - p_k) - c_k + N(0, \sigma_\varphi^2)

    Parameters
    ----------
    beacons : array_like, shape (B, 2)
        Positions of the beacons, in metres.
    bearing_sd : float
        Standard deviation of a bearing, in radians.
    position_noise, current_noise, compass_noise : float
        Noise of the motion, in m / sqrt(s), of the current, in m/s / sqrt(s), and of the compass, in rad / sqrt(s).
    outlier_share : float
        Share of the simulated bearings that were taken badly: their standard deviation is `outlier_factor` times as large.
        Filters know nothing of it.
    outlier_factor : float
        How much larger.
    initial_mean, initial_covariance : array_like, shapes (5,) and (5, 5)
        Mean and covariance of the state at step 0.

    Notes
    -----
    After Bowditch (2002), "The American practical navigator", National Imagery and Mapping Agency: fixes by cross bearings,
    set and drift of a current, compass error. The equations with noise and all numbers are ours.

    Examples
    --------
    A compass that shows too little turns all bearings alike.

    >>> from herdfilter.study.data.textbook import CrossBearings
    >>> right, wrong = CrossBearings().observation_mean(np.array([[0, 0, 0, 0, 0.0], [0, 0, 0, 0, 0.1]]), 1)
    >>> np.allclose(right - wrong, 0.1)
    True
    """

    beacons: Array = array_field(
        [[4000.0, 6000.0], [14000.0, 5000.0], [10000.0, -4000.0]], (None, 2)
    )
    bearing_sd: float = 0.03
    position_noise: float = 3.0
    current_noise: float = 0.01
    compass_noise: float = 5e-4
    outlier_share: float = 0.0
    outlier_factor: float = 4.0
    initial_mean: Array = array_field(np.zeros(5))
    initial_covariance: Array = array_field(np.diag([500.0, 500.0, 1.0, 1.0, 0.05]) ** 2)

    dim = 5
    circular = (4,)
    partial_observations = True

    signed = ("outlier_share",)

    def __post_init__(self) -> None:
        super().__post_init__()
        as_fraction("outlier_share", self.outlier_share)

    @property
    def observation_circular(self) -> tuple[int, ...]:
        """Indices of the angle-valued entries of an observation: all."""
        return tuple(range(len(self.beacons)))

    @property
    def _observation_sd(self) -> Array:
        return np.full(len(self.beacons), self.bearing_sd)

    def control(self, step: int) -> Array:
        """Speed and course (2,) of the simulated ship to `step`: 5 m/s, to the east and then to the north-east."""
        return np.array([5.0, 0.0 if step <= 30 else 0.8])

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """States (n, 5) a time `dt` later, with speed and course in `control`."""
        speed, course = (0.0, 0.0) if control is None else as_array("control", control, (2,))
        moved, true = x.copy(), course + x[:, 4]
        moved[:, :2] += dt * (x[:, 2:4] + speed * np.column_stack([np.cos(true), np.sin(true)]))
        return moved

    def transition_covariance(self, dt: float, step: int) -> Array:
        """Covariance of the noise over a time `dt`, (5, 5)."""
        sd = [
            self.position_noise,
            self.position_noise,
            self.current_noise,
            self.current_noise,
            self.compass_noise,
        ]
        return dt * np.diag(sd) ** 2

    def observation_mean(self, x: Array, step: int) -> Array:
        """Compass bearing of each beacon, (n, 5) -> (n, B)."""
        offset = self.beacons - x[:, None, :2]
        return wrap_angles(
            np.arctan2(offset[..., 1], offset[..., 0]) - x[:, 4:], self.observation_circular
        )

    def sample_observation(self, x: Array, rng: Rng, step: int) -> Array:
        """Draw the bearings at each state, outliers among them, (n, 5) -> (n, B)."""
        mean = self.observation_mean(x, step)
        noise = self.bearing_sd * rng.standard_normal(mean.shape)
        noise[rng.random(mean.shape) < self.outlier_share] *= self.outlier_factor
        return wrap_angles(mean + noise, self.observation_circular)


@dataclass(frozen=True, eq=False, repr=False)
class Leverage(Parameters):
    r"""Two returns, whose log-variances are autoregressive and fall when the returns rise.

    .. math::
        y_k^i &= e^{h_k^i / 2} \epsilon_k^i, \qquad
        h_{k+1}^i = \mu + \phi^i (h_k^i - \mu) + \sigma^i \eta_k^i, \\
        \operatorname{corr}(\epsilon_k^1, \epsilon_k^2) &= r_\epsilon, \qquad
        \operatorname{corr}(\eta_k^1, \eta_k^2) = r_\eta, \qquad
        \operatorname{corr}(\epsilon_k^i, \eta_k^j) = \lambda\, \delta_{ij}

    The noise of a return is correlated with that of the next log-variance (leverage), so the state holds both log-variances
    twice, :math:`(h_k^1, h_k^2, h_{k+1}^1, h_{k+1}^2)`, and its noise has rank two. Only the likelihood is known, as in
    `StochasticVolatility`: the mean of a return hardly depends on the state.

    Parameters
    ----------
    mu : float
        Mean of the log-variances.
    phi, sigma : array_like, shape (2,)
        Persistence of each log-variance, above -1 and below 1, and standard deviation of its noise.
    leverage : float
        Correlation lambda of a return with the noise of its own next log-variance.
    return_correlation, volatility_correlation : float
        Correlations of the two returns and of the noise of the two log-variances.

    Notes
    -----
    After Harvey and Shephard (1996), "Estimation of an asymmetric stochastic volatility model for asset returns", Journal of
    Business and Economic Statistics 14. Ours: two series, and the numbers.

    Examples
    --------
    A loss makes a high volatility likelier than a gain of the same size, in the next step.

    >>> from herdfilter.study.data.textbook import Leverage
    >>> model = Leverage()
    >>> rises = np.array([[-1.0, -1.0, -0.5, -0.5]])
    >>> loss, gain = (model.log_likelihood([y, y], rises, 1)[0] for y in (-1.0, 1.0))
    >>> bool(loss > gain)
    True
    """

    mu: float = -1.0
    phi: Array = array_field([0.97, 0.92], (2,))
    sigma: Array = array_field([0.2, 0.35], (2,))
    leverage: float = -0.5
    return_correlation: float = 0.5
    volatility_correlation: float = 0.4

    dim = 4
    signed = ("mu", "leverage", "return_correlation", "volatility_correlation")

    def __post_init__(self) -> None:
        super().__post_init__()
        phi, sigma = self.phi.tolist(), self.sigma.tolist()
        if not -1 < min(phi) <= max(phi) < 1 or min(sigma) <= 0:
            raise ValueError(f"phi, sigma: expected |phi| < 1 and sigma > 0, got {phi} and {sigma}")
        for name in ("leverage", "return_correlation", "volatility_correlation"):
            as_number(
                name,
                getattr(self, name),
                "a number above -1 and below 1",
                lambda value: -1 < value < 1,
            )
        if not np.linalg.eigvalsh(self._noise).min() > 0:
            raise ValueError(
                f"leverage: expected less for these correlations, got {self.leverage:g}"
            )

    @cached_property
    def _noise(self) -> Array:
        """Covariance of (epsilon, eta), (4, 4)."""
        returns, volatilities = (
            [[1.0, r], [r, 1.0]] for r in (self.return_correlation, self.volatility_correlation)
        )
        across = self.leverage * np.eye(2)
        return np.block([[np.array(returns), across], [across, np.array(volatilities)]])

    @cached_property
    def _given_eta(self) -> tuple[Array, Array]:
        """Regression (2, 2) of epsilon on eta, and the Cholesky factor of what is left."""
        regression = self.leverage * np.linalg.inv(self._noise[2:, 2:])
        return regression, np.linalg.cholesky(self._noise[:2, :2] - self.leverage * regression)

    @cached_property
    def initial(self) -> GaussianMixture:
        """Distribution of the state at step 0: the stationary one."""
        one = self._volatility_noise / (1 - np.outer(self.phi, self.phi))
        return GaussianMixture(
            [1.0],
            np.full((1, 4), self.mu),
            np.block([[one, one * self.phi], [self.phi[:, None] * one, one]]),
        )

    @property
    def _volatility_noise(self) -> Array:
        return self._noise[2:, 2:] * np.outer(self.sigma, self.sigma)

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """Mean of the state given the states (n, 4) one step before."""
        return np.hstack([x[:, 2:], self.mu + self.phi * (x[:, 2:] - self.mu)])

    def transition_covariance(self, dt: float, step: int) -> Array:
        """Covariance of the transition noise, (4, 4), of rank two."""
        covariance = np.zeros((4, 4))
        covariance[2:, 2:] = self._volatility_noise
        return covariance

    def log_likelihood(self, z: ArrayLike, x: Array, step: int) -> Array:
        """Log-density of the returns `z`, (2,), at each state; (n, 4) -> (n,)."""
        _, root = self._given_eta
        epsilon = as_observation(z, 2) * np.exp(-0.5 * x[:, :2])
        white = np.linalg.solve(root, (epsilon - self._epsilon_mean(x)).T)
        return np.asarray(
            -0.5 * ((white**2).sum(axis=0) + x[:, :2].sum(axis=1))
            - np.log(np.diag(root)).sum()
            - np.log(2 * np.pi)
        )

    def sample_observation(self, x: Array, rng: Rng, step: int) -> Array:
        """Draw the returns at each state, (n, 4) -> (n, 2)."""
        epsilon = self._epsilon_mean(x) + rng.standard_normal((len(x), 2)) @ self._given_eta[1].T
        return np.asarray(np.exp(0.5 * x[:, :2]) * epsilon)

    def _epsilon_mean(self, x: Array) -> Array:
        """Mean of epsilon given both log-variances, (n, 2)."""
        eta = (x[:, 2:] - self.mu - self.phi * (x[:, :2] - self.mu)) / self.sigma
        return eta @ self._given_eta[0].T


@dataclass(frozen=True, eq=False, repr=False)
class PredatorsAndPrey(Parameters):
    r"""Prey and predators, in thousands, and the log of the prey's growth rate per year; only the prey are counted.

    .. math::
        \dot u &= (e^a - \beta v)\, u, \qquad \dot v = (\delta u - \gamma)\, v, \qquad
        a_k = \bar a + \rho (a_{k-1} - \bar a) + \sigma_a \xi_k, \\
        y_k &= u_k\, e^{\sigma_y \zeta_k}

    In every step u and v are multiplied by lognormal noise, too, of spread :math:`\sigma_u \sqrt{\Delta t}`.

    Parameters
    ----------
    growth, predation, death, conversion : float
        Rates: the median of the prey's growth (the exponential of the mean of a), beta, gamma and delta.
    persistence, growth_noise : float
        Of the log growth rate, rho and sigma_a.
    noise : float
        Spread sigma_u, per root of a year.
    count_spread : float
        Spread sigma_y of the logarithm of a count.

    Notes
    -----
    After Carpenter (2018), "Predator-prey population dynamics: the Lotka-Volterra model in Stan", a case study of hares and
    lynxes: the rates, and the lognormal spread of a count. Ours: only prey are counted, the noise of the populations, and a
    growth rate that varies, as in Jones, Parslow and Murray (2010), "A Bayesian approach to state and parameter estimation
    in a phytoplankton-zooplankton model", Australian Meteorological and Oceanographic Journal 59.

    Examples
    --------
    Without predators the prey grow.

    >>> from herdfilter.study.data.textbook import PredatorsAndPrey
    >>> later = PredatorsAndPrey().transition(np.array([[10.0, 1e-6, np.log(0.55)]]), np.zeros((1, 3)), 1.0, None, 1)
    >>> bool(np.isclose(later[0, 0], 10 * np.exp(0.55), rtol=1e-3))
    True
    """

    growth: float = 0.55
    predation: float = 0.028
    death: float = 0.80
    conversion: float = 0.024
    persistence: float = 0.9
    growth_noise: float = 0.2
    noise: float = 0.1
    count_spread: float = 0.25

    dim = 3
    noise_dim = 3
    signed = ("persistence",)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share("persistence", self.persistence)

    @property
    def initial(self) -> PredatorsAndPrey:
        """Distribution of the state at step 0, which has only `sample`."""
        return self

    def sample(self, n: int, rng: Rng) -> Array:
        """Draw `n` states of step 0: 30 thousand prey and 10 thousand predators or so, and any growth rate."""
        spread = self.growth_noise / math.sqrt(1 - self.persistence**2)
        logs = np.log([30.0, 10.0, self.growth]) + [0.5, 0.7, spread] * rng.standard_normal((n, 3))
        return np.column_stack([np.exp(logs[:, :2]), logs[:, 2]])

    def transition(self, x: Array, noise: Array, dt: float, control: Any, step: int) -> Array:
        """States (n, 3) a time `dt` later, with standard normal noise (n, 3)."""
        u, v = np.log(np.maximum(x[:, :2], 1e-6)).T
        mean = math.log(self.growth)
        a = mean + self.persistence * (x[:, 2] - mean) + self.growth_noise * noise[:, 2]
        parts = math.ceil(dt / 0.05)
        h = dt / parts
        for _ in range(parts):  # leapfrog of the logarithms
            u = u + h / 2 * (np.exp(a) - self.predation * np.exp(v))
            v = v + h * (self.conversion * np.exp(u) - self.death)
            u = u + h / 2 * (np.exp(a) - self.predation * np.exp(v))
        spread = self.noise * math.sqrt(dt)
        return np.column_stack(
            [np.exp(u + spread * noise[:, 0]), np.exp(v + spread * noise[:, 1]), a]
        )

    def log_likelihood(self, z: ArrayLike, x: Array, step: int) -> Array:
        """Log-density of the count `z`, (1,), at each state; (n, 3) -> (n,)."""
        (log_count,), spread = np.log(as_observation(z, 1)), self.count_spread
        scaled = (log_count - np.log(np.maximum(x[:, 0], 1e-6))) / spread
        return np.asarray(-0.5 * scaled**2 - math.log(spread) - LOG_ROOT_TAU - log_count)

    def observation_mean(self, x: Array, step: int) -> Array:
        """Mean count, (n, 3) -> (n, 1)."""
        return x[:, :1] * math.exp(self.count_spread**2 / 2)

    def observation_covariance(self, step: int, x: Array) -> Array:
        """Variance of the count, (n, 3) -> (n, 1, 1)."""
        return (
            math.expm1(self.count_spread**2)
            * np.maximum(self.observation_mean(x, step)[:, :, None], 1e-6) ** 2
        )

    def sample_observation(self, x: Array, rng: Rng, step: int) -> Array:
        """Draw a count at each state, (n, 3) -> (n, 1)."""
        return np.asarray(x[:, :1] * np.exp(self.count_spread * rng.standard_normal((len(x), 1))))
