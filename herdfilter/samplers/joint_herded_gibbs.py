"""Joint herded Gibbs: the conditionals of continuous herded Gibbs sampling, for points that already lie well."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from herdfilter import _checks
from herdfilter.samplers import compiled
from herdfilter.samplers.compiled import exp
from herdfilter.samplers.herding.joint import JointSampler, JointStart, fill_residuals

LONGEST_MOVE = 0.7  # kernel widths, of a coordinate
LEAST_SUM = 1e-200  # conditionals of less weight say nothing


@dataclass(frozen=True)
class JointHerdedGibbs(JointSampler):
    r"""Deterministic Gibbs sampling of all points together: each coordinate goes where the conditional lacks samples.

    `ContinuousHerdedGibbs` places one point after the other and searches a whole line for each coordinate. Here the points
    begin as those of `JointHerding`, so that a Newton step along each coordinate will do. A sweep visits all points; the
    coordinates of a point move at once, each up the slope of the objective of `ContinuousHerdedGibbs`

    .. math:: \frac{t_e + 1}{t_e} \mathrm E[k(x_i, X_i) \mid x_{-i}] - \frac{1}{c} \sum_s w_s k(x_i, x_i^s) , \qquad
        w_s = k(x_{-i}, x_{-i}^s) , \quad c = \sum_s w_s , \quad t_e = c^2 / \sum_s w_s^2 ,

    where s runs over all other points and the density that is conditioned on is the mixture smoothed by the kernel.

    Parameters
    ----------
    smoothing, block
        As of `JointHerding`.
    sweeps : int, optional
        Number of sweeps; by default two in two dimensions, else and in blocks one.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([0.5, 0.5], [[-1, 0], [3, 2]], np.eye(2))
    >>> points = hf.JointHerdedGibbs(sweeps=10).sample(mixture, 50)
    >>> hf.energy_distance(points, mixture) < 0.25 * hf.expected_energy_distance(mixture, 50)
    True
    """

    sweeps: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sweeps is not None:
            _checks.check_count("sweeps", self.sweeps)

    def move(self, start: JointStart) -> None:
        """See `JointSampler`."""
        in_plane = start.z.shape[1] == 2 and len(start.counts) == 1
        sweeps = self.sweeps or (2 if in_plane else 1)
        sweep_points(start.z, start.counts, start.centre, *start.smoothed(1.0), sweeps)


@compiled.njit(**compiled.CALLED)
def sweep_points(z, counts, centre, height, precision, sweeps):
    """Move all coordinates of points (K, d, B), block by block and one point after the other, by a Newton step each."""
    _, d, size = z.shape
    components = centre.shape[2]
    vectors = np.zeros((2, d))
    residual = np.zeros((d, components))
    terms = np.zeros((2, components))
    offset = np.zeros((d, size))
    pairs = np.zeros((2, size))
    for block in range(len(z)):
        k = min(block, len(precision) - 1)
        attraction = (height[block], precision[k], residual, terms[0], terms[1])
        repulsion = (offset, pairs[0], pairs[1], counts[block])
        for _ in range(sweeps):
            _sweep_block(z[block], centre[block], attraction, repulsion, vectors)


@compiled.njit(**compiled.NO_ARRAYS)
def _sweep_block(z, centre, attraction, repulsion, vectors):
    """Move all coordinates of the points of a block, (d, B), once."""
    height, precision, residual, exponent, term = attraction
    x = vectors[0]
    step = vectors[1]
    d = len(z)
    for s in range(repulsion[3]):
        for i in range(d):
            x[i] = z[i, s]
        fill_residuals(centre, precision, x, residual, exponent)
        for m in range(len(term)):
            term[m] = height[m] * exp(exponent[m])
        _fill_pairs(z, x, s, repulsion)
        for i in range(d):
            step[i] = _newton_step(i, attraction, repulsion)
        for i in range(d):
            z[i, s] = x[i] + step[i]


@compiled.njit(**compiled.QUICK)
def _fill_pairs(z, x, s, repulsion):
    """Fill in the offsets of all points from x, and their kernels at it; point s itself has none."""
    offset, exponent, pair, n = repulsion
    d = len(z)
    for r in range(n):
        exponent[r] = 0.0
    for i in range(d):
        for r in range(n):
            offset[i, r] = z[i, r] - x[i]
        for r in range(n):
            exponent[r] -= 0.5 * offset[i, r] ** 2
    for r in range(n):
        pair[r] = exp(exponent[r])
    pair[s] = 0.0


@compiled.njit(**compiled.QUICK)
def _newton_step(i, attraction, repulsion):
    """Return the step of coordinate i that maximises the conditional objective, to second order."""
    height, precision, residual, exponent, term = attraction
    offset, pair_exponent, pair, n = repulsion
    shared = precision.shape[2] == 1
    # The conditional weight of component m is its height integrated along x_i: without the part of the exponent that x_i
    # has in it, r_i^2 / P_ii for the residual r = P (x - c), and over the root of P_ii.
    mass = value = slope = bend = 0.0
    for m in range(len(term)):
        p = precision[i, 0, 0] if shared else precision[i, i, m]
        r = residual[i, m]
        mass += height[m] * exp(exponent[m] + 0.5 * r * r / p) / np.sqrt(p)
        value += term[m] * p
        slope -= term[m] * r
        bend += term[m] * r * r
    # c and the sum of w_s^2 of the other points
    count = squares = pair_value = pair_slope = pair_bend = 0.0
    for r in range(n):
        u = offset[i, r]
        weight = exp(pair_exponent[r] + 0.5 * u * u)
        count += weight
        squares += weight * weight
        pair_value += pair[r]
        pair_slope += pair[r] * u
        pair_bend += pair[r] * u * u
    # point s is not among the others, and its own weight is 1
    count -= 1.0
    squares -= 1.0
    if not (mass > LEAST_SUM and count > 1e-12 and squares > LEAST_SUM):
        return 0.0
    gain = (1.0 + squares / count**2) / mass
    rise = gain * slope - pair_slope / count
    fall = gain * (value - bend) - (pair_value - pair_bend) / count
    # where the objective is not concave, half of what bounds its curvature
    bound = 0.5 * (gain * value + pair_value / count)
    return min(max(rise / max(fall, bound), -LONGEST_MOVE), LONGEST_MOVE)
