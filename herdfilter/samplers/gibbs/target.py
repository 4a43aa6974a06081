"""What the recursion of continuous herded Gibbs sampling is given: the target's conditionals, and room to work in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from herdfilter._checks import Array
from herdfilter.samplers.gibbs.bumps import NARROWNESS, WIDTH, empty_bumps
from herdfilter.samplers.gibbs.maximum import Search, empty_search
from herdfilter.samplers.herding.frame import KernelFrame

LONG = 1e7  # squared distances above which their differences lose digits that matter

# Rows of what is known beforehand of the conditional bump of every coordinate and component; two more are those of bumps
LOG_WEIGHT, INVERSE, FACTOR = 0, 1, 4


class Target(NamedTuple):
    """The density that is conditioned on: M components in d dimensions.

    The rows of ``bumps`` (5, d, M) are the log weight where the other coordinates are at their means, the factor from weight
    to height, one over the squared width, the width, and one over the diagonal entry of the precision. ``means`` has shape
    (M, d), ``precision`` (M, d, d), or (1, d, d) where it is shared.
    """

    bumps: Array
    means: Array
    precision: Array


class Room(NamedTuple):
    """What the recursion works in."""

    x: Array
    residual: Array
    score: Array
    closeness: Array
    kept: NDArray[np.int64]
    weight: Array
    bumps: Array
    search: Search


def target_of(frame: KernelFrame, before: float, after: float) -> Target:
    """Tabulate the conditionals of a mixture, of variances added before and after conditioning."""
    precision, log_det = frame.precisions(before)
    inverse = 1.0 / np.diagonal(precision, axis1=1, axis2=2)
    width = np.sqrt(inverse + after)
    bumps = np.empty((5, *frame.means.T.shape))
    bumps[LOG_WEIGHT] = (frame.log_weights[:, None] + 0.5 * (log_det[:, None] + np.log(inverse))).T
    for row, values in ((FACTOR, 1.0 / width), (NARROWNESS, width**-2.0), (WIDTH, width), (INVERSE, inverse)):
        bumps[row] = values.T
    return Target(bumps, np.ascontiguousarray(frame.means), np.ascontiguousarray(precision))


def room_for(target: Target, n: int) -> Room:
    """Allocate what the recursion of n points works in."""
    components, d = target.means.shape
    most = components + n
    return Room(
        np.zeros(d),
        np.zeros((components, d)),
        np.zeros(components),
        np.zeros(n),
        np.zeros(most + 1, np.int64),
        np.zeros(most + 1),
        empty_bumps(most),
        empty_search(most),
    )


def is_wide(target: Target, first: Array) -> bool:
    """Whether squared distances between components, or to the first point, get so long that they must be taken afresh."""
    extent = np.ptp(np.vstack((target.means, first)), axis=0)
    sharpest = np.maximum(np.diagonal(target.precision, axis1=1, axis2=2).max(axis=0), 1.0)
    return bool(extent**2 @ sharpest > LONG)


def origins(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the sweeps of every point start: at the latest point of its component, at first the component's mean."""
    origin = -1 - labels
    for label in np.unique(labels):
        of_label = np.flatnonzero(labels == label)
        origin[of_label[1:]] = of_label[:-1]
    return origin
