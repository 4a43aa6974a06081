"""Continuous herded Gibbs sampling from conditional densities alone (Wolf and Baum, arXiv:2106.06430)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter.bandwidths import BandwidthRule, check_bandwidth
from herdfilter.points import Points

Conditional = Callable[[Array, Array], ArrayLike]
NEGLIGIBLE_SAMPLE = 1e-12  # share of a slice: a sample with less is left out of it
GRID_STEP = 0.25  # of the search grid, in kernel widths
MAX_CELLS = 2**20  # of any grid
KERNEL_REACH = 8.5  # kernel widths; beyond, a kernel is under 2.1e-16
# of a grid that has settled on an integral other than 1, before that is an error
EXTRA_HALVINGS = 4
# With (t + 1) / t <= 2 the objective bends by at most 3 / sigma^2 in either direction, so that a peak is at most this much
# higher than the nearest grid point; if the density ends beside that point, by EDGE_DOUBT.
PEAK_DOUBT = 3 * GRID_STEP**2 / 8
EDGE_DOUBT = 0.5
TIED_VALUES = 1e-9  # share of the largest expected kernel by which values count as equal


@dataclass(frozen=True)
class ConditionalHerdedGibbs:
    r"""Continuous herded Gibbs sampling of a joint density from its one-dimensional conditionals alone.

    Coordinate i of the next point maximises, over x_i within its bounds and with the others fixed,

    .. math:: \frac{t + 1}{t} \mathrm E[k(x_i, X_i) \mid x_{-i}] - \frac{1}{c} \sum_s w_s k(x_i, x_i^s) , \qquad
        w_s = k(x_{-i}, x_{-i}^s) , \quad c = \sum_s w_s

    after t points, as published. This recursion drifts off if conditionals change much over a kernel width (see
    `ContinuousHerdedGibbs`; without a mixture only one of its repairs is possible, the effective count). Keep the bandwidth
    small next to such structure, and compare two bandwidths.

    The expectation is a convolution on a uniform grid, refined until the conditional's integral has settled; the maximum is
    found on a grid of a quarter kernel width, then by Newton's method from every peak that may be the highest. If the
    objective is flat, the middle of the longest flat stretch is taken. This is no `Sampler`: its method is `herd`.

    Parameters
    ----------
    bandwidth : float or array_like of shape (d,)
        Kernel widths sigma_k in state units, one for all coordinates or one for each.
    sweeps : int
        Sweeps over the coordinates per point.
    effective_count : bool
        Use the effective number :math:`c^2 / \sum_s w_s^2` of samples in the slice (Kish 1965) in place of t; False as
        published.
    normalised : bool
        True if conditionals integrate to 1 over the bounds, which is then checked; False to normalise them by quadrature.
    tolerance : float
        Relative error allowed for an integral, against 1 and against a grid twice as coarse.

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
        _checks.check_flags(effective_count=self.effective_count, normalised=self.normalised)
        matrix = np.ndim(np.asarray(self.bandwidth, dtype=object)) > 1
        if matrix or isinstance(self.bandwidth, str | BandwidthRule):
            raise ValueError(
                f"bandwidth: expected a positive number or one for each coordinate, got {self.bandwidth!r}; "
                "there is no mixture to derive it from"
            )
        _checks.check_fields(
            self,
            bandwidth=check_bandwidth,
            sweeps=_checks.check_count,
            tolerance=_checks.as_positive,
        )

    def herd(
        self, conditionals: Sequence[Conditional], n: int, start: ArrayLike, bounds: ArrayLike
    ) -> Points:
        """Herd `n` points with equal weights.

        Parameters
        ----------
        conditionals : sequence of d callables
            ``conditionals[i](values, x)`` gives the density, shape (k,), of coordinate i at `values`, shape (k,), given
            the other coordinates of `x`, shape (d,); it ignores entry i of `x`.
        n : int
            Number of points.
        start : array_like, shape (d,)
            The first point, in state units.
        bounds : array_like, shape (d, 2)
            Lowest and highest value of every coordinate, finite, around the mass of the conditionals. Points stay within the
            bounds and where the density is positive.

        Raises
        ------
        ConditionalError
            If a conditional returns the wrong number of values, negative or non-finite ones, or does not integrate to 1
            (with `normalised=False`: to a positive number). All are tried at `start` before sampling begins.
        ValueError
            If an argument is not of the stated kind, `start` is out of bounds, or the bounds are so wide next to the
            bandwidth that a grid would have more than a million cells.
        """
        n = _checks.check_count("n", n)
        if (
            not isinstance(conditionals, list | tuple)
            or not conditionals
            or not all(map(callable, conditionals))
        ):
            raise ValueError(
                "conditionals: expected a list of functions of (values, x), one per coordinate, "
                f"got {_checks.short_repr(conditionals, 300)}"
            )
        d = len(conditionals)
        x = _checks.as_array("start", start, (d,)).copy()
        box = _checks.as_array("bounds", bounds, (d, 2))
        for i, (low, high) in enumerate(box):
            if not low < high:
                raise ValueError(
                    f"bounds: expected low < high for coordinate {i}, got [{low}, {high}]"
                )
            if not low <= x[i] <= high:
                raise ValueError(
                    f"start: expected coordinate {i} to be within its bounds [{low}, {high}], got {x[i]}"
                )
        sigma = np.asarray(self.bandwidth, dtype=np.float64)
        if sigma.ndim == 1 and len(sigma) != d:
            raise ValueError(
                f"bandwidth: expected a number or {d} of them, one per coordinate, got {len(sigma)}"
            )
        sigma = np.broadcast_to(sigma, (d,))
        lines = [
            ConditionalLine(i, density, low, high, sigma[i], self.normalised, self.tolerance)
            for i, (density, (low, high)) in enumerate(zip(conditionals, box.tolist(), strict=True))
        ]
        for line in lines:
            line.shares(x)

        points = np.empty((n, d))
        points[0] = x
        for t in range(1, n):
            for _ in range(self.sweeps):
                for i, line in enumerate(lines):
                    # w_s / c, relative to the nearest sample, so that far ones do not underflow all at once
                    squared = (((points[:t] - x) / sigma) ** 2)[:, np.arange(d) != i].sum(axis=1)
                    weights = np.exp(0.5 * (squared.min() - squared))
                    weights /= weights.sum()
                    size = 1.0 / (weights @ weights) if self.effective_count else float(t)
                    near = weights > NEGLIGIBLE_SAMPLE
                    x[i] = line.argmax(x, (size + 1.0) / size, weights[near], points[:t][near, i])
            points[t] = x
        return Points(points)


class ConditionalError(ValueError):
    """A conditional density is invalid: negative, NaN, of the wrong length, or it does not integrate to 1.

    Attributes
    ----------
    coordinate : int
        Index of the conditional.
    x : ndarray, shape (d,)
        The state at which it was evaluated.
    integral : float or None
        Its integral over the bounds, if it could be computed.

    Examples
    --------
    >>> flat = [lambda values, x: np.full(len(values), 0.5)]  # integrates to 2 over [0, 4]
    >>> try:
    ...     hf.ConditionalHerdedGibbs(bandwidth=0.5).herd(flat, n=5, start=[1.0], bounds=[[0, 4]])
    ... except hf.ConditionalError as error:
    ...     print(error.coordinate, round(error.integral, 2))
    0 2.0
    """

    def __init__(
        self, message: str, coordinate: int, x: Array, integral: float | None = None
    ) -> None:
        super().__init__(message)
        self.coordinate = coordinate
        self.x = x
        self.integral = integral

    def __reduce__(self) -> tuple[type, tuple[str, int, Array, float | None]]:
        return type(self), (str(self), self.coordinate, self.x, self.integral)


@dataclass
class ConditionalLine:
    """One coordinate: its conditional density on a grid, smoothed by the kernel, and the maximum of the objective.

    The quadrature grid is the search grid with every cell halved `level` times.
    """

    index: int
    conditional: Conditional
    low: float
    high: float
    sigma: float
    normalised: bool
    tolerance: float

    def __post_init__(self) -> None:
        length = self.high - self.low
        cells = max(np.ceil(length / (GRID_STEP * self.sigma)), 16.0)
        if cells > MAX_CELLS:
            raise ValueError(
                f"bounds: expected [{self.low:g}, {self.high:g}] of coordinate {self.index} to hold at most {MAX_CELLS:,} "
                f"grid cells of a quarter of its bandwidth {self.sigma:g}, got {cells:,.0f}; narrow the bounds or widen the "
                "bandwidth"
            )
        self.cells = 2 * int(np.ceil(cells / 2))
        self.step = length / self.cells
        self.reach = int(min(np.ceil(KERNEL_REACH * self.sigma / self.step), self.cells))
        self._use_level(0)

    def _use_level(self, level: int) -> None:
        self.level = level
        cells = self.cells << level
        self.nodes = _checks.read_only(np.linspace(self.low, self.high, cells + 1))
        self.spacing = (self.high - self.low) / cells
        self.fine = _gregory(cells + 1, self.spacing)
        self.coarse = _gregory(cells // 2 + 1, 2 * self.spacing)
        # The kernel's Fourier transform, padded so that the cyclic convolution does not wrap around
        reach = int(min(np.ceil(KERNEL_REACH * self.sigma / self.spacing), cells))
        self.length = 1 << (cells + reach).bit_length()
        kernel = np.zeros(self.length)
        offsets = np.arange(-reach, reach + 1)
        kernel[offsets] = np.exp(-0.5 * (offsets * self.spacing / self.sigma) ** 2)
        self.transform = np.fft.rfft(kernel)

    def shares(self, x: Array) -> Array:
        """Return the probabilities of the quadrature nodes under the conditional density at x.

        The grid is refined until the integral has settled. If it need not be 1, a grid much finer than the kernel also
        suffices: it locates any mass, even a narrow or ragged one, to within a small fraction of the kernel.
        """
        halvings = 0
        while True:
            values = self.conditional(self.nodes, x.copy())
            try:
                density = _checks.as_array("density", values, self.nodes.shape)
            except ValueError as error:
                raise self._error(x, str(error).removeprefix("density: ")) from None
            lowest = int(density.argmin())
            if density[lowest] < 0:
                message = f"expected non-negative numbers, got {density[lowest]:g} at {self.nodes[lowest]:g}"
                raise self._error(x, message)
            total = float(self.fine @ density)
            rough = float(self.coarse @ density[::2])
            settled = abs(total - rough) <= self.tolerance * total
            located = not self.normalised and self.spacing <= self.tolerance * self.sigma
            right = total > 0 and (not self.normalised or abs(total - 1.0) <= self.tolerance)
            if right and (settled or located):
                return self.fine * density / total  # the end corrections keep the weights positive
            halvings += settled and total > 0
            cells = self.cells << (self.level + 1)
            if halvings > EXTRA_HALVINGS or located or cells > MAX_CELLS:
                break
            self._use_level(self.level + 1)
        expected = "an integral of 1" if self.normalised else "a positive integral"
        message = (
            f"expected {expected} over the bounds [{self.low:g}, {self.high:g}], got {total:g}"
        )
        if not settled:
            message += f" from {len(self.nodes):,} grid points, and {rough:g} from half of them"
        elif self.normalised:
            message += "; widen the bounds, or pass normalised=False"
        raise self._error(x, message, total)

    def _error(self, x: Array, message: str, integral: float | None = None) -> ConditionalError:
        text = np.array2string(x, precision=6, separator=", ", threshold=8)
        return ConditionalError(
            f"conditionals[{self.index}] at x = {text}: {message}", self.index, x.copy(), integral
        )

    def argmax(self, x: Array, factor: float, weights: Array, samples: Array) -> float:
        """Return the maximum of factor E[k(., X_i) | x_rest] - sum_s weights_s k(., samples_s) at positive density.

        Rounding does not choose it: if the objective is flat over a kernel width and more, the middle is taken; among equal
        peaks the one that is flat for longest, and of those the last.
        """
        shares = self.shares(x)
        smoothed = np.fft.irfft(np.fft.rfft(shares, self.length) * self.transform, self.length)
        objective = factor * smoothed[: len(shares) : 1 << self.level]
        # Each sample's kernel, added to the search points in its reach
        nearest = np.rint((samples - self.low) / self.step).astype(np.intp)
        cell = nearest[:, None] + np.arange(-self.reach, self.reach + 1)
        u = (self.low + cell * self.step - samples[:, None]) / self.sigma
        heights = weights[:, None] * np.exp(-0.5 * u * u)
        inside = (cell >= 0) & (cell <= self.cells)
        objective -= np.bincount(cell[inside], heights[inside], self.cells + 1)
        # A point of the search grid stands for the quadrature nodes up to one cell away: from `begin` to before `end`. It is
        # no candidate if none of them has a positive density, and beside an edge of the density if not all have.
        position = np.arange(self.cells + 1)
        begin = np.maximum(position - 1, 0) << self.level
        end = (np.minimum(position + 1, self.cells) << self.level) + 1
        below = np.append(0, np.cumsum(shares > 0))
        positive = below[end] - below[begin]
        objective[positive == 0] = -np.inf
        padded = np.concatenate(([-np.inf], objective, [-np.inf]))
        # Peaks that may be the highest: between grid points the objective can rise by `doubt`, beside an edge fall as much.
        peaks = np.flatnonzero((objective > padded[:-2]) & (objective >= padded[2:]))
        edge = positive < end - begin
        doubt = np.where(edge, EDGE_DOUBT, PEAK_DOUBT)
        bar = (objective - np.where(edge, EDGE_DOUBT, 0.0)).max()
        leading = peaks[objective[peaks] + doubt[peaks] >= bar]
        tie = TIED_VALUES * factor * float(smoothed.max())
        maxima = [
            (-np.inf, 0.0, float(x[self.index]))
        ]  # value, length of the flat stretch, position
        visited: list[int] = []
        while len(leading):
            k = int(leading[objective[leading].argmax()])
            start, stop = _stretch(padded, k, float(objective[k]) - tie)
            leading = leading[(leading < start) | (leading > stop)]
            if any(start <= peak <= stop for peak in visited):
                continue
            visited.append(k)
            length = (stop - start) * self.step
            if length >= self.sigma:
                middle = self.low + 0.5 * (start + stop) * self.step
                maxima.append((float(objective[k]), length, middle))
            else:
                support = begin[k] + np.flatnonzero(shares[begin[k] : end[k]] > 0)
                bracket = self.nodes[support[[0, -1]]]
                guess = self.nodes[k << self.level]
                top, value = self._ascend(shares, factor, weights, samples, bracket, guess)
                maxima.append((value, 0.0, top))
        highest = max(value for value, _, _ in maxima)
        equal = [(length, top) for value, length, top in maxima if value >= highest - tie]
        longest = max(length for length, _ in equal)
        return max(top for length, top in equal if length >= longest - TIED_VALUES * self.sigma)

    def _ascend(
        self,
        shares: Array,
        factor: float,
        weights: Array,
        samples: Array,
        bracket: Array,
        guess: float,
    ) -> tuple[float, float]:
        """Return the maximum in a bracket and its value, by Newton's method, bisecting if a step leaves the bracket."""
        low, high = bracket
        margin = KERNEL_REACH * self.sigma
        near = slice(*np.searchsorted(self.nodes, (low - margin, high + margin)))
        near_samples = np.abs(samples - guess) < margin + (high - low)
        centres = np.concatenate((self.nodes[near], samples[near_samples]))
        heights = np.concatenate((factor * shares[near], -weights[near_samples]))

        def slopes(at: float) -> tuple[float, float, float]:
            u = (at - centres) / self.sigma
            bump = heights * np.exp(-0.5 * u * u)
            return float(bump.sum()), float(-(u @ bump)), float((u * u) @ bump - bump.sum())

        for edge, outward in ((low, -1.0), (high, 1.0)):
            value, slope, _ = slopes(edge)
            if slope * outward >= 0:
                return edge, value
        at = min(max(guess, low), high)
        for _ in range(60):
            _, slope, curvature = slopes(at)
            if slope > 0:
                low = at
            else:
                high = at
            next_at = at - self.sigma * slope / curvature if curvature < 0 else low - 1.0
            if not low <= next_at <= high:
                next_at = 0.5 * (low + high)
            change = next_at - at
            at = next_at
            if abs(change) < 1e-7 * self.sigma:
                break
        return at, slopes(at)[0]


def _stretch(padded: Array, k: int, level: float) -> tuple[float, float]:
    """Return the ends of the stretch around index k where an objective, padded at both ends, is above a level."""
    below = np.flatnonzero(padded < level)
    i = int(np.searchsorted(below, k + 1))
    a = below[i - 1]
    b = below[i]
    # Interpolated between neighbours
    start = a - (padded[a + 1] - level) / (padded[a + 1] - padded[a])
    stop = b - 2 + (padded[b - 1] - level) / (padded[b - 1] - padded[b])
    return float(start), float(stop)


def _gregory(nodes: int, spacing: float) -> Array:
    """Return trapezoidal weights with end corrections (Gregory): fourth order, spectral for vanishing ends."""
    weights = np.full(nodes, spacing)
    ends = spacing * np.array([3 / 8, 7 / 6, 23 / 24])
    weights[:3] = ends
    weights[-3:] = ends[::-1]
    return weights
