"""Kernel herding one coordinate at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import as_count
from herdfilter.bandwidths import Bandwidth, check_bandwidth
from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points
from herdfilter.samplers.herded_gibbs import Axes, Scan, check_search, herd_coordinates


@dataclass(frozen=True)
class CoordinateHerding:
    """Kernel herding (Chen, Welling and Smola 2010) by coordinate ascent: a peer of `ContinuousHerdedGibbs`.

    Coordinate i of the next point, after t of them, maximises the joint herding objective over x_i with the others held,

        E[k(x, X)]  -  1 / (t + 1)  sum_s k(x, x_s),

    each one-dimensional maximum exactly. Every point starts at the latest point of a component chosen by herding on the
    mixture weights (its mean at first). Coordinate ascent may end at a maximum along every axis that is not the
    highest: in eight dimensions and more the points are no better than those of the other herding samplers.

    Parameters
    ----------
    bandwidth : "auto", float or array_like of shape (d, d)
        Kernel width sigma_k in state units, kernel covariance, or the whitened rule `herdfilter.kernels.scale_rule`.
    sweeps : int
        Sweeps over the coordinates a point.
    scan : {"forward", "alternating", "random"}
    axes : {None, "state", "principal"}
        Order and directions of the coordinates, as in `ContinuousHerdedGibbs`.

    Raises
    ------
    ValueError
        If an argument is not of the stated kind.
    """

    bandwidth: Bandwidth = "auto"
    sweeps: int = 2
    scan: Scan = "forward"
    axes: Axes | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "bandwidth", check_bandwidth(self.bandwidth))
        object.__setattr__(self, "sweeps", as_count("sweeps", self.sweeps))
        check_search(self.scan, self.axes, None)

    def sample(
        self,
        mixture: GaussianMixture,
        n: int,
        rng: np.random.Generator | None = None,
        start: ArrayLike | None = None,
    ) -> Points:
        """Herd `n` points with equal weights from `mixture`; `rng` is not used, `start` (d,) gives the first point."""
        return herd_coordinates(
            mixture,
            n,
            start,
            bandwidth=self.bandwidth,
            smoothed=True,
            effective_count=False,
            component_herding=True,
            sweeps=self.sweeps,
            scan=self.scan,
            axes=self.axes,
            starts=None,
            joint=True,
        )
