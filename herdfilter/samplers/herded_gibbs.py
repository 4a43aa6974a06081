"""Continuous herded Gibbs sampling (Wolf and Baum, "Continuous Herded Gibbs Sampling", arXiv:2106.06430)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdfilter._checks import Array, as_array, as_count, one_of
from herdfilter.bandwidths import Bandwidth, check_bandwidth
from herdfilter.discrete._herding import herded_labels
from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points
from herdfilter.samplers._herded_gibbs import herded_gibbs, mode
from herdfilter.samplers._passes import passes_meant, place_again
from herdfilter.samplers.herding.frame import KernelFrame

Scan = Literal["forward", "alternating", "random"]
Axes = Literal["state", "principal"]
CROWD = 64.0  # nodes a sample; see `herdfilter.samplers._nodes`


@dataclass(frozen=True)
class ContinuousHerdedGibbs:
    """Deterministic Gibbs sampling: coordinate by coordinate, each point goes where the conditional lacks samples most.

    Coordinate i of the next point maximises, over x_i with the others held,

        (t + 1) / t  E[k(x_i, X_i) | x_rest]  -  sum_s w_s k(x_i, x_i^s) / c,   w_s = k(x_rest, x_rest^s),  c = sum_s w_s

    where t points came before. The published recursion stalls, so the default differs from it in three ways, each an
    option of its own.

    Parameters
    ----------
    target : {"smoothed", "paper"}
        What is conditioned on. ``"smoothed"``: the mixture convolved with the kernel, to whose conditionals the weighted
        kernel sums converge. ``"paper"``: the mixture itself, smoothed along x_i only, as published; it also turns the
        other two repairs off unless they are given.
    bandwidth : "auto", float or array_like of shape (d, d)
        Kernel width sigma_k in state units, kernel covariance, or the whitened rule `herdfilter.bandwidths.scale_rule`.
    effective_count : bool, optional
        Use the effective number ``c^2 / sum_s w_s^2`` of samples in the slice (Kish 1965) in place of t.
    component_herding : bool, optional
        Choose a component for each point by herding on the mixture weights, and start its sweeps from the component's
        latest point (its mean at first); otherwise from the point before, as published.
    sweeps : int, optional
        Sweeps over the coordinates a point: 2 with component herding, unless passes are to follow, else 1.
    scan : {"forward", "alternating", "random"}
        Order of the coordinates in a sweep: always the first to the last; every other sweep backwards; or a permutation for
        each point, drawn with a fixed seed, so that the points stay deterministic.
    axes : {None, "state", "principal"}
        The coordinates. ``"state"``: those of the state, or of the kernel's Cholesky factor where the bandwidth is a matrix
        or ``"auto"``. ``"principal"``: the principal axes of the average component covariance, seen in units of the kernel.
        None: those of the state where the bandwidth is a number, else principal.
    starts : int, optional
        None searches every one-dimensional objective exactly. A number k runs Newton's method from k starting points a
        coordinate instead, draws with a fixed seed from the conditional density (the publication's future work): what they
        reach is a local maximum and may not be the highest, so the points may be worse. It is there for comparison: the
        exact search is fast too.
    passes : int, optional
        After the last point each is placed again, given all others, so many times, in all coordinates at once, as by
        `KernelHerding`. For the smoothed target alone. None means, with the bandwidth ``"auto"`` and no given start, as many
        as there; else none.

    Raises
    ------
    ValueError
        If an argument is not of the stated kind.
    """

    target: Literal["smoothed", "paper"] = "smoothed"
    bandwidth: Bandwidth = "auto"
    effective_count: bool | None = None
    component_herding: bool | None = None
    sweeps: int | None = None
    scan: Scan = "forward"
    axes: Axes | None = None
    starts: int | None = None
    passes: int | None = None
    _options: tuple[bool, bool, int] = field(init=False, repr=False, compare=False, default=(True, True, 2))

    def __post_init__(self) -> None:
        one_of("target", self.target, ("smoothed", "paper"))
        object.__setattr__(self, "bandwidth", check_bandwidth(self.bandwidth))
        repaired = self.target == "smoothed"
        count = repaired if self.effective_count is None else bool(self.effective_count)
        herded = repaired if self.component_herding is None else bool(self.component_herding)
        sweeps = (2 if herded else 1) if self.sweeps is None else as_count("sweeps", self.sweeps)
        check_search(self.scan, self.axes, self.starts)
        if self.passes is not None:
            object.__setattr__(self, "passes", as_count("passes", self.passes, 0))
            if self.passes and not repaired:
                raise ValueError(f"passes: expected 0 or None with the target 'paper', got {self.passes}")
        object.__setattr__(self, "_options", (count, herded, sweeps))

    def sample(
        self,
        mixture: GaussianMixture,
        n: int,
        rng: np.random.Generator | None = None,
        start: ArrayLike | None = None,
    ) -> Points:
        """Herd `n` points with equal weights.

        Parameters
        ----------
        mixture : GaussianMixture
            The target, M components in d dimensions.
        n : int
            Number of points.
        rng
            Not used: the points depend on the mixture alone.
        start : array_like, shape (d,), optional
            The first point, in state units; by default the maximum of the smoothed density that is reached from the
            mean of the heaviest component.
        """
        effective_count, component_herding, sweeps = self._options
        passes = self.passes or 0
        if self.target == "smoothed" and start is None:
            passes = passes_meant(self.passes, self.bandwidth, as_count("n", n), mixture.dim)
        if passes > 1 and self.sweeps is None:
            sweeps = 1  # where points come to rest is for the passes to find
        return herd_coordinates(
            mixture,
            n,
            start,
            bandwidth=self.bandwidth,
            smoothed=self.target == "smoothed",
            effective_count=effective_count,
            component_herding=component_herding,
            sweeps=sweeps,
            scan=self.scan,
            axes=self.axes,
            starts=self.starts,
            joint=False,
            passes=passes,
        )


def check_search(scan: Scan, axes: Axes | None, starts: int | None) -> None:
    """Check the options of the search along coordinates."""
    one_of("scan", scan, ("forward", "alternating", "random"))
    if axes is not None:
        one_of("axes", axes, ("state", "principal"))
    if starts is not None:
        as_count("starts", starts)


def herd_coordinates(
    mixture: GaussianMixture,
    n: int,
    start: ArrayLike | None,
    *,
    bandwidth: Bandwidth,
    smoothed: bool,
    effective_count: bool,
    component_herding: bool,
    sweeps: int,
    scan: Scan,
    axes: Axes | None,
    starts: int | None,
    joint: bool,
    passes: int = 0,
) -> Points:
    """Herd points coordinate by coordinate: on conditional objectives, or on the joint one if `joint`."""
    n = as_count("n", n)
    d = mixture.dim
    turn = not isinstance(bandwidth, float) if axes is None else axes == "principal"
    frame = KernelFrame.of(mixture, bandwidth, n, turn)
    precision, log_det = frame.precisions(1.0 if smoothed else 0.0)
    if start is not None:
        first = frame.forward(as_array("start", start, (d,))[None, :])[0]
    else:
        first = mode(
            frame.log_weights, frame.means, *((precision, log_det) if smoothed else frame.precisions(1.0))
        )
    labels = herded_labels(np.exp(frame.log_weights), n) if component_herding else np.full(n, -1)
    z = herded_gibbs(
        frame.log_weights,
        frame.means,
        precision,
        log_det,
        0.0 if smoothed else 1.0,
        labels,
        _orders(scan, n, d, sweeps),
        sweeps,
        effective_count,
        joint,
        _launch(d, starts or 0),
        first,
        n,
        CROWD,
    )
    if not passes:
        return Points(frame.back(z.T))
    turned = frame if turn else KernelFrame.of(mixture, bandwidth, n, turn=True)
    z = z.T if turn else turned.forward(frame.back(z.T))
    return Points(turned.back(place_again(turned, z, passes)))


def _orders(scan: Scan, n: int, d: int, sweeps: int) -> NDArray[np.int64]:
    """Orders of the coordinates, a row for each sweep of the run, or those that are repeated."""
    forward = np.arange(d)
    if scan == "forward":
        return forward[None]
    if scan == "alternating":
        return np.stack([forward, forward[::-1]])
    rows = np.random.default_rng(0).permuted(np.tile(forward, (n, 1)), axis=1)
    return np.repeat(rows, sweeps, axis=0)


def _launch(d: int, starts: int) -> Array:
    """Draw, with a fixed seed, uniform and normal numbers for the starts of local searches, (d, starts, 2)."""
    if not starts:
        return np.empty((d, 0, 2))
    rng = np.random.default_rng(0)
    return np.stack([rng.random((d, starts)), rng.standard_normal((d, starts))], axis=-1)
