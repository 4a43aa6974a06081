"""Continuous herded Gibbs sampling from conditional densities alone (Wolf and Baum, arXiv:2106.06430)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array, as_array, as_numbers, as_positive, check_count, check_flags
from herdfilter.points import Points
from herdfilter.samplers.gibbs.conditional_line import Conditional, ConditionalLine
from herdfilter.samplers.gibbs.conditional_line import ConditionalError as ConditionalError

NEGLIGIBLE = 1e-12  # share of the slice under which a sample is left out of it


@dataclass(frozen=True)
class ConditionalHerdedGibbs:
    """Continuous herded Gibbs sampling of a joint density of which only the one-dimensional conditionals are known.

    Coordinate i of the next point maximises, over x_i within its bounds and with the others held,

        (t + 1) / t  E[k(x_i, X_i) | x_rest]  -  sum_s w_s k(x_i, x_i^s) / c,   w_s = k(x_rest, x_rest^s),  c = sum_s w_s

    where t points came before, as published. `ContinuousHerdedGibbs` says why this recursion can drift off: it does where
    conditionals change much over a kernel width, and of the three repairs only the effective count is possible without
    a mixture. Keep the bandwidth small next to such structure, and compare two bandwidths.

    The expectation is a convolution on a uniform grid, refined until the conditional's integral has settled; the maximum
    is found on a grid of a quarter kernel width, then by Newton's method from every peak that may be the highest. Where the
    objective is flat, as between the first few points of a uniform density, the middle of the longest flat stretch is taken.

    It is no `Sampler`, which takes a mixture: its method is `herd`.

    Parameters
    ----------
    bandwidth : float or array_like of shape (d,)
        Kernel widths sigma_k in state units, one for all coordinates or one for each.
    sweeps : int
        Sweeps over the coordinates per point.
    effective_count : bool
        Use the effective number ``c^2 / sum_s w_s^2`` of samples in the slice (Kish 1965) in place of t; False as published.
    normalised : bool
        Whether conditionals integrate to 1 over the bounds, which is then checked at every visit. Otherwise they are
        normalised by quadrature.
    tolerance : float
        By how much, relatively, an integral may differ from 1, and from that on a grid twice as coarse.

    Raises
    ------
    ValueError
        If an argument is not of the stated kind.

    Examples
    --------
    >>> def given_the_other(values, other):
    ...     return np.exp(-0.5 * ((values - 0.6 * other) / 0.8) ** 2) / (0.8 * np.sqrt(2 * np.pi))
    >>> conditionals = [lambda v, x: given_the_other(v, x[1]), lambda v, x: given_the_other(v, x[0])]
    >>> sampler = hf.ConditionalHerdedGibbs(bandwidth=0.4)
    >>> points = sampler.herd(conditionals, n=60, start=[0, 0], bounds=[[-6, 6], [-6, 6]])
    >>> print(abs(points.mean).max().round(1), points.covariance[0, 1].round(1))  # exactly 0, 0.6
    0.0 0.6
    """

    bandwidth: float | ArrayLike
    sweeps: int = 1
    effective_count: bool = True
    normalised: bool = True
    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        check_flags(effective_count=self.effective_count, normalised=self.normalised)
        object.__setattr__(self, "bandwidth", _checked_bandwidth(self.bandwidth))
        object.__setattr__(self, "sweeps", check_count("sweeps", self.sweeps))
        object.__setattr__(self, "tolerance", as_positive("tolerance", self.tolerance))

    def herd(self, conditionals: Sequence[Conditional], n: int, start: ArrayLike, bounds: ArrayLike) -> Points:
        """Herd `n` points with equal weights.

        Parameters
        ----------
        conditionals : sequence of d callables
            ``conditionals[i](values, x)`` gives the density, shape (k,), of coordinate i at `values`, shape (k,), given
            the other coordinates of `x`, shape (d,), whose entry i is to be ignored.
        n : int
            Number of points.
        start : array_like, shape (d,)
            The first point, in state units.
        bounds : array_like, shape (d, 2)
            Lowest and highest value of every coordinate: finite, and such that they hold the mass of the conditionals.
            Points stay within, and where the density is positive.

        Raises
        ------
        ConditionalError
            If a conditional returns the wrong number of values, negative or non-finite ones, or does not integrate to 1
            (with `normalised=False`: to a positive number). All are tried at `start` before sampling begins.
        ValueError
            If an argument is not of the stated kind, `start` is out of bounds, or the bounds are so wide next to the
            bandwidth that a grid would have more than a million cells.
        """
        n = check_count("n", n)
        conditionals = _checked_conditionals(conditionals)
        d = len(conditionals)
        x = as_array("start", start, (d,)).copy()
        box = _checked_bounds(bounds, x)
        sigma = np.asarray(self.bandwidth, dtype=np.float64)
        if sigma.ndim == 1 and len(sigma) != d:
            raise ValueError(f"bandwidth: expected a number or {d} of them, one per coordinate, got {len(sigma)}")
        sigma = np.broadcast_to(sigma, (d,))
        lines = [
            ConditionalLine(i, conditionals[i], (box[i, 0], box[i, 1]), sigma[i], self.normalised, self.tolerance)
            for i in range(d)
        ]
        for line in lines:
            line.shares(x)

        points = np.empty((n, d))
        points[0] = x
        for t in range(1, n):
            for _ in range(self.sweeps):
                for i, line in enumerate(lines):
                    squared = (((points[:t] - x) / sigma) ** 2)[:, np.arange(d) != i].sum(axis=1)
                    weights = np.exp(0.5 * (squared.min() - squared))
                    weights /= weights.sum()
                    size = 1.0 / (weights @ weights) if self.effective_count else float(t)
                    seen = weights > NEGLIGIBLE
                    x[i] = line.argmax(x, (size + 1.0) / size, weights[seen], points[:t][seen, i])
            points[t] = x
        return Points(points)


def _checked_bandwidth(bandwidth: float | ArrayLike) -> float | tuple[float, ...]:
    if isinstance(bandwidth, str):
        raise ValueError(
            f"bandwidth: expected a positive number or one for each coordinate, got {bandwidth!r}; "
            "there is no mixture to derive it from"
        )
    widths = as_numbers("bandwidth", bandwidth, (None,))
    if widths.ndim == 0:
        return as_positive("bandwidth", widths.item())
    widths = as_array("bandwidth", widths, (None,))
    if widths.size == 0 or (widths <= 0).any():
        raise ValueError(f"bandwidth: expected positive numbers, got {widths.tolist()}")
    return tuple(widths.tolist())


def _checked_conditionals(conditionals: Sequence[Conditional]) -> list[Conditional]:
    functions = list(conditionals) if isinstance(conditionals, list | tuple) else []
    if not functions or not all(map(callable, functions)):
        raise ValueError(
            f"conditionals: expected a list of functions of (values, x), one per coordinate, got {conditionals!r}"[:300]
        )
    return functions


def _checked_bounds(bounds: ArrayLike, start: Array) -> Array:
    box = as_array("bounds", bounds, (len(start), 2))
    for i, (low, high) in enumerate(box):
        if not low < high:
            raise ValueError(f"bounds: expected low < high for coordinate {i}, got [{low:g}, {high:g}]")
        if not low <= start[i] <= high:
            raise ValueError(f"start: expected coordinate {i} to be within its bounds [{low:g}, {high:g}], got {start[i]:g}")
    return box
