"""A robot that casts rays on a map of its building: a model whose every evaluation is dear, in plain NumPy."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array, as_array
from herdfilter.models import parts

__all__ = ["LidarRobot", "cast_rays", "floor_plan"]

CELL = 0.1
"""Side of a cell of the map, in metres."""


def floor_plan() -> np.ndarray:
    """Return which cells (200, 200) of the map are occupied, by x and y: a hall with pillars and doors, rooms around it.

    Examples
    --------
    >>> from herdfilter.study.data.lidar import floor_plan
    >>> floor_plan().shape
    (200, 200)
    """
    occupied = np.zeros((200, 200), bool)
    occupied[[0, -1]] = True
    occupied[:, [0, -1]] = True
    occupied[40:161, [40, 160]] = True
    occupied[[40, 160], 40:161] = True
    for door in np.s_[85:97, 40], np.s_[120:132, 160], np.s_[40, 60:72], np.s_[160, 100:112]:
        occupied[door] = False
    for wall in np.s_[:40, 100], np.s_[100, 160:]:
        occupied[wall] = True
    for x, y in (64, 66), (130, 62), (66, 132), (128, 134), (97, 99):
        occupied[x : x + 5, y : y + 5] = True
    for cupboard in np.s_[145:160, 100:108], np.s_[75:95, 41:47]:
        occupied[cupboard] = True
    return occupied


def cast_rays(occupied: np.ndarray, x: Array, bearings: Array, max_range: float) -> Array:
    """Return the range in metres from poses (n, 3) to the first occupied cell along each of B bearings, (n, B).

    All rays walk from cell to cell at once (Amanatides and Woo 1987, "A fast voxel traversal algorithm for ray tracing",
    Eurographics).

    Parameters
    ----------
    occupied : ndarray of bool, shape (X, Y)
        Cells of the map, whose border is occupied.
    x : array_like, shape (n, 3)
        Poses (x m, y m, heading rad); the range of one in an occupied cell, or off the map, is 0.
    bearings : array_like, shape (B,)
        Bearings of the rays, relative to the heading, in radians.
    max_range : float
        The largest range, in metres.

    Examples
    --------
    >>> from herdfilter.study.data.lidar import cast_rays
    >>> room = np.pad(np.zeros((8, 8), bool), 1, constant_values=True)
    >>> cast_rays(room, np.array([[0.35, 0.25, 0.0]]), np.array([0.0, np.pi]), 12.0).round(2).tolist()
    [[0.55, 0.25]]
    """
    angle = (x[:, 2:] + bearings).ravel()
    # a direction of 0 would divide by it
    direction_x = np.where(np.cos(angle) == 0, 1e-300, np.cos(angle))
    direction_y = np.where(np.sin(angle) == 0, 1e-300, np.sin(angle))
    step_x = np.where(direction_x < 0, -1, 1)
    step_y = np.where(direction_y < 0, -1, 1)
    start_x, start_y = np.repeat(x[:, :2] / CELL, len(bearings), axis=0).T
    cell_x = np.clip(start_x, 0, len(occupied) - 1).astype(int)
    cell_y = np.clip(start_y, 0, len(occupied.T) - 1).astype(int)
    # ways, in cells, from one grid line to the next, and to the first
    way_x = 1 / np.abs(direction_x)
    way_y = 1 / np.abs(direction_y)
    next_x = (cell_x + (step_x > 0) - start_x) / direction_x
    next_y = (cell_y + (step_y > 0) - start_y) / direction_y
    ranges = np.zeros(len(angle))
    active = ~occupied[cell_x, cell_y]
    while active.any():
        is_x = next_x < next_y
        ranges = np.where(active, np.where(is_x, next_x, next_y), ranges)
        cell_x = cell_x + step_x * (active & is_x)
        cell_y = cell_y + step_y * (active & ~is_x)
        next_x = next_x + way_x * is_x
        next_y = next_y + way_y * ~is_x
        active = active & ~occupied[cell_x, cell_y] & (ranges * CELL < max_range)
    return np.minimum(ranges * CELL, max_range).reshape(len(x), -1)


@parts.frozen
class LidarRobot(parts.PlanarRobot, parts.GaussianStart):
    r"""Robot (x m, y m, heading rad) that finds its place by a lidar on the map of its building.

    The control is :math:`(v, \omega)`, in m/s and rad/s; None means standing still. The observation is the range along
    each of B bearings :math:`\varphi_i`, evenly all round. A range is that of the map, with noise, or a random one:

    .. math::
        x_k &= x_{k-1} + v\, \Delta t \cos h', \qquad y_k = y_{k-1} + v\, \Delta t \sin h', \qquad
        h_k = h_{k-1} + \omega\, \Delta t, \qquad h' = h_{k-1} + \tfrac12 \omega\, \Delta t, \\
        p(z^i \mid x) &= (1 - a)\, N\left(z^i; r(x, \varphi_i), \sigma^2\right) + a / r_{\max}

    with noise :math:`N(0, \Delta t \operatorname{diag}(\sigma_p^2, \sigma_p^2, \sigma_h^2))` added to the pose. The range r
    is found by `cast_rays`, at 60 us for each pose. Simulated, the robot drives round the pillar in the middle of the hall.

    Parameters
    ----------
    beams : int
        Number B of rays.
    max_range : float
        Largest range, in metres.
    range_sd : float
        Standard deviation sigma of a range, in metres; errors of the map included.
    random_share : float
        Share a of random ranges, as of people who walk by.
    position_noise, heading_noise : float
        Noise of the odometry, in m / sqrt(s) and rad / sqrt(s).
    initial_mean, initial_covariance : array_like, shapes (3,) and (3, 3)
        Mean and covariance of the pose at step 0, by default that of a robot which leaves its dock.
    speed, turn_rate : float
        Speed and turn rate of the simulated drive, in m/s and rad/s.

    Notes
    -----
    Thrun, Burgard and Fox (2005), "Probabilistic robotics": beam model of range finders, section 6.3, of which it has the
    hits and the random measurements; velocity motion model, section 5.3, with noise added to the pose. Map and numbers are
    ours.

    Examples
    --------
    >>> from herdfilter.study.data.lidar import LidarRobot
    >>> LidarRobot(beams=4).observation_mean(np.array([[10.02, 7.5, 0.0]]), 1).round(1).tolist()
    [[6.0, 2.4, 5.9, 3.4]]
    """

    beams: int = 36
    max_range: float = 12.0
    range_sd: float = 0.2
    random_share: float = 0.05
    position_noise: float = 0.03
    heading_noise: float = 0.02
    initial_mean: Array = parts.array_field([10.0, 7.5, 0.0])
    initial_covariance: Array = parts.array_field(np.diag([0.01, 0.01, 0.0025]))
    speed: float = 0.5
    turn_rate: float = 0.2

    partial_observations = True

    @cached_property
    def occupied(self) -> np.ndarray:
        """Occupied cells of the map, (200, 200)."""
        return floor_plan()

    @cached_property
    def bearings(self) -> Array:
        """Bearings of the rays, (B,)."""
        return np.arange(self.beams) * (2 * np.pi / self.beams)

    def control(self, step: int) -> Array:
        """Speed and turn rate (2,) of the simulated drive."""
        return np.array([self.speed, self.turn_rate])

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """Poses (n, 3) after driving with `control`, speed and turn rate, for a time `dt`."""
        speed, rate = (0.0, 0.0) if control is None else as_array("control", control, (2,))
        heading = x[:, 2] + rate * dt / 2
        way = speed * dt * np.column_stack([np.cos(heading), np.sin(heading)])
        return np.column_stack([x[:, :2] + way, x[:, 2] + rate * dt])

    def observation_mean(self, x: Array, step: int) -> Array:
        """Ranges of the map, (n, 3) -> (n, B)."""
        return cast_rays(self.occupied, x, self.bearings, self.max_range)

    def observation_covariance(self, step: int) -> Array:
        """Covariance of the ranges, (B, B), random ones as about the middle of the range."""
        variance = self.range_sd**2 + self.random_share * self.max_range**2 / 12
        return variance * np.eye(self.beams)

    def log_likelihood(self, z: ArrayLike, x: Array, step: int) -> Array:
        """Log-density of the ranges `z`, (B,), at each pose, without those that are NaN; (n, 3) -> (n,)."""
        residual = parts.as_observation(z, self.beams, missing=True) - self.observation_mean(
            x, step
        )
        peak = (1 - self.random_share) / (self.range_sd * math.sqrt(2 * math.pi))
        hits = peak * np.exp(-0.5 * (residual / self.range_sd) ** 2)
        return np.asarray(np.nansum(np.log(hits + self.random_share / self.max_range), axis=1))

    def sample_observation(self, x: Array, rng: np.random.Generator, step: int) -> Array:
        """Draw ranges at each pose, (n, 3) -> (n, B)."""
        hits = rng.normal(self.observation_mean(x, step), self.range_sd)
        is_random = rng.random(hits.shape) < self.random_share
        return np.where(is_random, rng.uniform(0, self.max_range, hits.shape), hits)
