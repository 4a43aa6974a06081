"""The loop of kernel herding, compiled: points placed one after the other, and placed again."""

from __future__ import annotations

import numpy as np
import scipy

from herdfilter._checks import Array
from herdfilter.mixture import GaussianMixture, largest_remainders
from herdfilter.samplers import compiled
from herdfilter.samplers.compiled import exp
from herdfilter.samplers.herding.frame import KernelFrame
from herdfilter.samplers.herding.joint import fill_residuals
from herdfilter.samplers.herding.objective import climb, herding_objective

TIED_HEIGHTS = 1e-9  # share of the expected kernel by which heights count as equal
CLIMB_STEPS = 30  # of a climb, at most; few take ten
PLACING_STEPS = 2  # of a climb: the next pass rises the rest
LEAST_MOVES = 120  # in all: for few points greedy choice costs most, and moves cost least
COINCIDENCE = 1e-6  # kernel widths between points that coincide
NUDGE = 0.1  # kernel widths by which they are parted
# in units of the kernel's: components are wide enough for a nudge from here on
WIDE_VARIANCE = 0.01


@compiled.njit(**compiled.CALLED)
def place_points(objective, candidate, first, n, moves, steps):
    """Place samples from the `first` to the n-th, then move all n in turn, by climbs of at most so many `steps`.

    A new sample climbs from the candidate at which the objective is highest; one that moves climbs from where it is, and has
    no weight meanwhile. Return the expected kernel at all candidates (d, C), and the height that the last climb reached.
    """
    d, size = candidate.shape
    samples = objective.samples
    expected = np.zeros(size)
    kernels = np.zeros(size)
    exponent = np.zeros(size)
    value = np.zeros(size)
    offset = np.zeros((d, size))
    hessian = np.zeros((d, d))
    vectors = np.zeros((4, d))
    x = np.zeros(d)
    height = 0.0
    # Negative steps come first: a climb of no steps from each candidate gives the expected kernel there.
    for step in range(-size, n - first + moves):
        t = first + step
        s = t % n
        count = min(t, n)
        scale = 1.0 / min(t + 1, n)
        if step < 0:
            count = 0
            for i in range(d):
                x[i] = candidate[i, step]
        elif t < n:
            best = 0
            bar = -np.inf
            for c in range(size):
                value[c] = expected[c] - scale * kernels[c]
            for c in range(size):  # the first where the objective is highest to within rounding
                if value[c] > bar:
                    best = c
                    bar = value[c] + TIED_HEIGHTS * expected[c]
            for i in range(d):
                x[i] = candidate[i, best]
        else:
            for i in range(d):
                x[i] = samples.centre[i, s]
            for w in range(len(samples.height)):
                samples.height[w, s] = 0.0
        height = climb(objective, count, scale, x, steps if step >= 0 else 0, hessian, vectors)
        if step < 0:
            expected[step] = height
            continue
        for i in range(d):
            samples.centre[i, s] = x[i]
        # The widths count in proportion, as in the target.
        for w in range(len(samples.height)):
            samples.height[w, s] = samples.precision[w, 0, 0, 0] ** -0.5
        # The new sample's kernel at all candidates
        fill_residuals(candidate, samples.precision[0], x, offset, exponent)
        for c in range(size):
            kernels[c] += exp(exponent[c])
    return expected, height


def herd_greedily(frame: KernelFrame, n: int, steps: int = CLIMB_STEPS) -> Array:
    """Herd n points of equal weight in a frame that is turned, each by one climb from the best candidate; (n, d)."""
    objective = herding_objective(frame, n, (1.0,))
    place_points(objective, candidates(frame, n), 0, n, 0, steps)
    return objective.samples.centre.T.copy()


def place_again(frame: KernelFrame, z: Array) -> Array:
    """Move the points z (n, d) of a turned frame, one after the other, each once, and 120 times in all if they are fewer.

    A point climbs from its place to where all others leave most to represent: two steps of a quasi-Newton method on

        sum over two widths w of  w (E[k_w(x, X)]  -  1 / n  sum_{r != s} k_w(x, x_r)),

    k_w being w times as wide as the kernel: 1/2 and 3/2 for up to twenty points, growing to 1 and 2 for forty and more. No
    move raises the squared herding errors at the two widths, weighted by these: the energy distance is the squared herding
    error integrated over all kernel widths, which two, with heights in proportion, approximate. A narrow one keeps
    neighbours apart, a wide one fills the tails. Narrower ones bring the points closer to the mixture, but filters of
    several dimensions then lose their target more often.
    """
    n = len(z)
    narrow = min(max(n / 40, 0.5), 1.0)
    objective = herding_objective(frame, n, (narrow, narrow + 1.0))
    samples = objective.samples
    samples.centre[:] = _part_coincident(frame, z).T
    samples.height[:] = np.array([[narrow], [narrow + 1.0]])
    no_candidates = np.empty((z.shape[1], 0))
    place_points(objective, no_candidates, n, n, max(n, LEAST_MOVES), PLACING_STEPS)
    return samples.centre.T.copy()


def _part_coincident(frame: KernelFrame, z: Array) -> Array:
    """Move points that coincide with an earlier one a little apart, since no slope would part them.

    They move along one axis after the other, the longest first, and along none in which the components are narrow.
    """
    if np.diff(np.sort(z[:, 0])).min(initial=np.inf) > COINCIDENCE:
        return z
    variances = np.diagonal(frame.covariances, axis1=1, axis2=2)
    extent = frame.weights @ np.broadcast_to(variances, frame.means.shape)
    axes = np.argsort(-np.round(extent / max(extent.max(), WIDE_VARIANCE), 9), kind="stable")
    axes = axes[extent[axes] > WIDE_VARIANCE]
    if not len(axes):
        return z
    pairs = scipy.spatial.KDTree(z).query_pairs(COINCIDENCE, output_type="ndarray")
    rows = np.unique(pairs[:, 1])
    turns = np.arange(len(rows))
    z = z.copy()
    z[rows, axes[turns % len(axes)]] += NUDGE * (1 + turns // len(axes))
    return z


def candidates(frame: KernelFrame, n: int) -> Array:
    """Return starting points (d, C): the component means, and draws from the smoothed mixture, the same at every call."""
    d = len(frame.origin)
    smoothed = GaussianMixture.unchecked(frame.weights, frame.means, frame.covariances + np.eye(d))
    kernels = np.sqrt(np.prod(np.diagonal(smoothed.covariance)))  # volume of the mixture
    draws = int(min(max(kernels, 200, 4 * n), max(1000 if d < 8 else 400, 4 * n)))
    labels = np.repeat(np.arange(len(smoothed)), largest_remainders(frame.weights, draws))
    noise = np.random.default_rng(0).standard_normal((draws, d))
    return np.concatenate([frame.means, smoothed.place(labels, noise)]).T.copy()
