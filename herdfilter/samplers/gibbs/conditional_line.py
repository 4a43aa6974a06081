"""One coordinate of herded Gibbs sampling from conditional densities: its integrals and its maximum."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdfilter._checks import Array, as_numbers, short_repr

Conditional = Callable[[Array, Array], ArrayLike]

STEP = 0.25  # of the search grid, in kernel widths
MAX_CELLS = 2**20  # of any grid
REACH = 8.5  # kernel widths; beyond, a kernel is under 2.1e-16
EXTRA_HALVINGS = 4  # of a grid that has settled on an integral other than 1, before that is believed

# With (t + 1) / t <= 2 the objective bends by at most 3 / sigma^2 in either direction, so that a peak is at most this much
# higher than the nearest grid point. Where the density ends beside that point it may be further off.
PEAK_DOUBT = 3 * STEP**2 / 8
EDGE_DOUBT = 0.5
TIE = 1e-9  # share of the largest expected kernel by which values count as equal: far above rounding


class ConditionalError(ValueError):
    """A conditional density is not one: negative, NaN, of the wrong length, or it does not integrate to 1.

    Attributes
    ----------
    coordinate : int
        Which conditional.
    x : ndarray, shape (d,)
        The state at which it was asked for.
    integral : float or None
        Its integral over the bounds, where it came that far.

    Examples
    --------
    >>> flat = [lambda values, x: np.full(len(values), 0.5)]  # integrates to 2 over [0, 4]
    >>> try:
    ...     hf.ConditionalHerdedGibbs(bandwidth=0.5).herd(flat, n=5, start=[1.0], bounds=[[0, 4]])
    ... except hf.ConditionalError as error:
    ...     print(error.coordinate, round(error.integral, 2))
    0 2.0
    """

    def __init__(self, message: str, coordinate: int, x: Array, integral: float | None = None) -> None:
        super().__init__(message)
        self.coordinate, self.x, self.integral = coordinate, x, integral

    def __reduce__(self) -> tuple[type, tuple[str, int, Array, float | None]]:
        return type(self), (str(self), self.coordinate, self.x, self.integral)


class ConditionalLine:
    """One coordinate: its conditional density on a grid, smoothed by the kernel, and the maximum of the objective.

    The quadrature grid is the search grid with every cell halved `level` times.
    """

    def __init__(
        self,
        index: int,
        conditional: Conditional,
        bounds: tuple[float, float],
        sigma: float,
        normalised: bool,
        tolerance: float,
    ) -> None:
        low, high = bounds
        cells = max(np.ceil((high - low) / (STEP * sigma)), 16.0)
        if cells > MAX_CELLS:
            raise ValueError(
                f"bounds: expected [{low:g}, {high:g}] of coordinate {index} to hold at most {MAX_CELLS:,} grid cells of a "
                f"quarter of its bandwidth {sigma:g}, got {cells:,.0f}; narrow the bounds or widen the bandwidth"
            )
        self.index, self.conditional, self.sigma = index, conditional, sigma
        self.low, self.high = low, high
        self.normalised, self.tolerance = normalised, tolerance
        self.cells = 2 * int(np.ceil(cells / 2))
        self.step = (high - low) / self.cells
        self.spare = False  # whether the grid was finer than needed at the last visit
        self._use_level(0)

    def _use_level(self, level: int) -> None:
        self.level = level
        cells = self.cells << level
        self.nodes = np.linspace(self.low, self.high, cells + 1)
        self.nodes.flags.writeable = False
        self.spacing = (self.high - self.low) / cells
        self.fine, self.coarse = _gregory(cells + 1, self.spacing), _gregory(cells // 2 + 1, 2 * self.spacing)
        reach = int(min(np.ceil(REACH * self.sigma / self.spacing), cells))
        self.length = 1 << (cells + reach).bit_length()
        kernel = np.zeros(self.length)
        offsets = np.arange(-reach, reach + 1)
        kernel[offsets] = np.exp(-0.5 * (offsets * self.spacing / self.sigma) ** 2)
        self.transform = np.fft.rfft(kernel)

    def shares(self, x: Array) -> Array:
        """Probabilities of the quadrature nodes under the conditional density at x.

        The grid is good where the integral has settled. Where it need not be 1, a grid that is fine next to the kernel
        does too: it places the mass, however narrow or ragged, to within a small fraction of the kernel.
        """
        if self.spare:
            self.spare = False
            self._use_level(self.level - 1)
        believed = 0
        while True:
            density = self._density(x)
            total, rough = float(self.fine @ density), float(self.coarse @ density[::2])
            doubt = abs(total - rough)
            settled = doubt <= self.tolerance * total
            placed = not self.normalised and self.spacing <= self.tolerance * self.sigma
            right = total > 0 and (not self.normalised or abs(total - 1.0) <= self.tolerance)
            if right and (settled or placed):
                if self.level > 0:  # would a grid twice as coarse have done, with some margin?
                    rougher = _gregory(len(density) // 4 + 1, 4 * self.spacing) @ density[::4]
                    self.spare = bool(abs(rough - rougher) <= 0.5 * self.tolerance * total)
                return self.fine * density / total  # the end corrections keep the weights positive
            believed += settled and total > 0
            if believed > EXTRA_HALVINGS or placed or self.cells << (self.level + 1) > MAX_CELLS:
                raise self._integral_error(x, total, rough, settled)
            self._use_level(self.level + 1)

    def _density(self, x: Array) -> Array:
        came = self.conditional(self.nodes, x.copy())
        try:
            density = as_numbers("density", came, self.nodes.shape)
        except ValueError:
            raise self._error(x, f"expected {len(self.nodes)} numbers, got {short_repr(came)}") from None
        if density.shape != self.nodes.shape:
            raise self._error(x, f"expected shape {self.nodes.shape}, as `values`, got {density.shape}")
        for name, bad in (("finite", ~np.isfinite(density)), ("non-negative", density < 0)):
            if bad.any():
                k = int(bad.argmax())
                raise self._error(x, f"expected {name} numbers, got {density[k]:g} at {self.nodes[k]:g}")
        return density

    def _integral_error(self, x: Array, total: float, rough: float, settled: bool) -> ConditionalError:
        where = f"over the bounds [{self.low:g}, {self.high:g}]"
        if not settled:
            what = (
                f"expected an integral {where} that {len(self.nodes):,} grid points can tell to {self.tolerance:g}, "
                f"got {total:g}, and {rough:g} from half of them"
            )
        elif self.normalised:
            what = f"expected an integral of 1 {where}, got {total:g}; widen the bounds, or pass normalised=False"
        else:
            what = f"expected a positive integral {where}, got {total:g} from {len(self.nodes):,} grid points"
        return self._error(x, what, total)

    def _error(self, x: Array, what: str, integral: float | None = None) -> ConditionalError:
        text = np.array2string(x, precision=6, separator=", ", threshold=8)
        return ConditionalError(f"conditionals[{self.index}] at x = {text}: {what}", self.index, x.copy(), integral)

    def argmax(self, x: Array, factor: float, weights: Array, samples: Array) -> float:
        """Maximum of factor E[k(., X_i) | x_rest] - sum_s weights_s k(., samples_s) where the density is positive.

        Rounding does not choose it: where the objective is flat over a kernel width and more, the middle is taken, of
        peaks as high as each other the one that is flat for longest, and of those the last.
        """
        shares = self.shares(x)
        smoothed = np.fft.irfft(np.fft.rfft(shares, self.length) * self.transform, self.length)
        objective = factor * smoothed[: len(shares) : 1 << self.level] - self._kernel_sum(weights, samples)
        lowest, highest = self._brackets(shares > 0)
        position = np.arange(self.cells + 1)
        whole = (lowest == np.maximum(position - 1, 0) << self.level) & (
            highest == np.minimum(position + 1, self.cells) << self.level
        )
        objective[highest < lowest] = -np.inf
        padded = np.concatenate(([-np.inf], objective, [-np.inf]))
        peaks = np.flatnonzero((objective > padded[:-2]) & (objective >= padded[2:]))
        doubt = np.where(whole, PEAK_DOUBT, EDGE_DOUBT)
        reached = (objective - np.where(whole, 0.0, EDGE_DOUBT)).max()
        tie = TIE * factor * float(smoothed.max())
        found = [(-np.inf, 0.0, float(x[self.index]))]  # values, how long they last, places
        higher: list[int] = []
        leading = peaks[objective[peaks] + doubt[peaks] >= reached]
        while len(leading):
            k = int(leading[objective[leading].argmax()])
            start, end = _stretch(padded, k, float(objective[k]) - tie)
            leading = leading[(leading < start) | (leading > end)]
            if any(start <= other <= end for other in higher):
                continue
            higher.append(k)
            if (end - start) * self.step >= self.sigma:
                middle = self.low + 0.5 * (start + end) * self.step
                found.append((float(objective[k]), (end - start) * self.step, middle))
            else:
                low, high, guess = self.nodes[lowest[k]], self.nodes[highest[k]], self.nodes[k << self.level]
                place, value = self._ascend(shares, factor, weights, samples, low, high, guess)
                found.append((value, 0.0, place))
        highest_value = max(value for value, _, _ in found)
        equal = [(length, place) for value, length, place in found if value >= highest_value - tie]
        longest = max(length for length, _ in equal)
        return max(place for length, place in equal if length >= longest - TIE * self.sigma)

    def _brackets(self, positive: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """First and last node of positive density within one cell of each search point; last < first where there is none."""
        index = np.arange(len(positive))
        before = np.maximum.accumulate(np.where(positive, index, -1))  # the latest node of positive density
        after = np.minimum.accumulate(np.where(positive, index, len(index))[::-1])[::-1]  # and the next
        position = np.arange(self.cells + 1)
        lowest = after[np.maximum(position - 1, 0) << self.level]
        highest = before[np.minimum(position + 1, self.cells) << self.level]
        return lowest, highest

    def _kernel_sum(self, weights: Array, samples: Array) -> Array:
        """Kernels at the samples, added up on the search grid."""
        reach = int(min(np.ceil(REACH * self.sigma / self.step), self.cells))
        nearest = np.rint((samples - self.low) / self.step).astype(np.intp)
        cell = nearest[:, None] + np.arange(-reach, reach + 1)
        u = (self.low + cell * self.step - samples[:, None]) / self.sigma
        inside = (cell >= 0) & (cell <= self.cells)
        heights = weights[:, None] * np.exp(-0.5 * u * u)
        return np.bincount(cell[inside], heights[inside], self.cells + 1).astype(np.float64)

    def _ascend(
        self,
        shares: Array,
        factor: float,
        weights: Array,
        samples: Array,
        low: float,
        high: float,
        guess: float,
    ) -> tuple[float, float]:
        """Maximum in [low, high] and its value: Newton's method, bisecting where it leaves the bracket."""
        margin = REACH * self.sigma
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
            value, slope, curvature = slopes(at)
            low, high = (at, high) if slope > 0 else (low, at)
            moved = at - self.sigma * slope / curvature if curvature < 0 else low - 1.0
            if not low <= moved <= high:
                moved = 0.5 * (low + high)
            change, at = moved - at, moved
            if abs(change) < 1e-7 * self.sigma:
                break
        return at, slopes(at)[0]


def _stretch(padded: Array, k: int, level: float) -> tuple[float, float]:
    """Return the ends of the stretch around place k where an objective, padded at both ends, is above a level."""
    below = np.flatnonzero(padded < level)
    i = int(np.searchsorted(below, k + 1))
    a, b = below[i - 1], below[i]
    start = a - (padded[a + 1] - level) / (padded[a + 1] - padded[a])
    return float(start), float(b - 2 + (padded[b - 1] - level) / (padded[b - 1] - padded[b]))


def _gregory(nodes: int, spacing: float) -> Array:
    """Trapezoidal weights with end corrections (Gregory): fourth order, and spectral for bumps that vanish at the ends."""
    weights = np.full(nodes, spacing)
    ends = spacing * np.array([3 / 8, 7 / 6, 23 / 24])
    weights[:3], weights[-3:] = ends, ends[::-1]
    return weights
