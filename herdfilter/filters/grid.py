"""The posterior on a grid: the exact reference for models of one or two dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter._repr import fields_in_line, summary_repr
from herdfilter.angles import mean_and_covariance
from herdfilter.filters import results
from herdfilter.filters.inspection import Inspection
from herdfilter.filters.observation import Observation
from herdfilter.filters.series import Controls, TimeSteps
from herdfilter.models import contract, resolved, sensors, series, trial

CELLS_PER_SD = 4  # fewest grid cells per standard deviation of the transition noise, in its narrowest direction
LOST_MASS = 1e-6  # largest share of the probability that may leave the grid in one step
WIDEST_GAP = 2.0  # between images of neighbours, in standard deviations of the noise: their sum then ripples by 1.4 %
WIDE_MASS = 1e-3  # largest share of the probability at grid points whose images are further apart


@dataclass(frozen=True, eq=False, repr=False)
class GridResult(results.Views):
    """Posterior moments at every step, filtered or smoothed, and the evidence.

    Attributes
    ----------
    means, covariances : ndarray, shapes (T, d) and (T, d, d)
        Of the posterior at steps 1 to T.
    log_likelihood : float
        Log-density of all observations.
    masses : ndarray, shape (T, N), or None
        Posterior probability of each grid point (`GridFilter.x`). Kept only on request.
    """

    means: Array
    covariances: Array
    log_likelihood: float
    masses: Array | None = None

    __repr__ = fields_in_line


class GridFilter:
    r"""Bayes filter on a fixed regular grid, for models with additive Gaussian transition noise.

    The prediction :math:`p^-(x) = \int N(x; f(x'), Q)\, p(x')\, dx'` takes two steps. The probability of each grid point
    goes to the four grid points (in each dimension) around :math:`f(x')`, with the weights of cubic Lagrange interpolation:
    they keep its total, mean, variance and third moment, so Q needs no correction. The noise then multiplies the Fourier
    transform by its characteristic function :math:`\exp(-\omega^\top Q\, \omega / 2)`. With spacing h and noise of standard
    deviation s the error of the predicted density is below :math:`(h / s)^4 / 14` of its peak, down to rounding at 1e-16, as
    long as the images :math:`f(x')` of neighbours are no further apart than s.

    Parameters
    ----------
    model : object
        With `transition_mean`, `transition_covariance` and `log_likelihood`, without angles, and with a `log_density` of its
        `initial`. Limits of the state best lie in the middle between grid points; the grid reaches beyond them.
    lower, upper : float or array_like of shape (d,)
        Corners of the grid, in state units; a number stands for all dimensions. It has to hold the initial distribution.
    points : int or sequence of int, length d
        Grid points in each dimension, both ends included.

    Examples
    --------
    On a linear Gaussian model it gives what Kalman's filter gives.

    >>> model = hf.models.linear_chain(1)
    >>> truth, z = hf.simulate(model, steps=10, rng=1)
    >>> exact = hf.GridFilter(model, lower=-12, upper=12, points=241).run(z)
    >>> kalman = hf.ExtendedKalmanFilter(model).run(z)
    >>> np.allclose(exact.means, kalman.means, atol=1e-4), abs(exact.log_likelihood - kalman.log_likelihood) < 1e-3
    (True, True)
    """

    def __init__(
        self,
        model: contract.Model,
        lower: ArrayLike,
        upper: ArrayLike,
        points: int | Sequence[int],
    ) -> None:
        contract.require(
            model, "GridFilter", ("transition_mean", "transition_covariance", "initial")
        )
        contract.require_likelihood(sensors.to_check(model), "GridFilter")
        trial.check_state(model, "GridFilter", "log_density")
        if contract.circular_dims(model):
            raise ValueError(
                f"model: expected no angles in the state, got circular={contract.circular_dims(model)}"
            )
        d = model.dim
        # a number stands for all dimensions
        lower, upper = (
            _checks.as_array(name, np.full(d, corner) if np.ndim(corner) == 0 else corner, (d,))
            for name, corner in (("lower", lower), ("upper", upper))
        )
        if not (lower < upper).all():
            raise ValueError(
                f"upper: expected more than lower {lower.tolist()}, got {upper.tolist()}"
            )
        counts = _checks.as_any("points", points)
        if counts.ndim == 0:
            counts = np.full(d, counts)
        if counts.shape != (d,):
            raise ValueError(
                f"points: expected a number or {d} of them, got {_checks.short_repr(points)}"
            )
        self.model = model
        self.shape = tuple(_checks.check_count("points", count, minimum=8) for count in counts)
        self.lower = lower
        self.upper = upper
        self.spacing = (upper - lower) / (np.array(self.shape) - 1)
        # Grid points in the order of an array of this shape, so that (N,) and `shape` are views of each other.
        self.x = lower + self.spacing * np.indices(self.shape).reshape(d, -1).T
        # Probabilities of grid points: the density times the volume of a cell.
        self._initial = (
            np.exp(model.initial.log_density(_checks.read_only(self.x))) * self.spacing.prod()
        )
        mass = self._initial.sum()
        if abs(mass - 1) > LOST_MASS:
            raise ValueError(
                f"lower, upper, points: expected a grid that resolves the initial distribution, got mass {mass:g}"
            )
        # which grid points are within the limits of the state, from step 0 on
        motion = resolved.Motion(model)
        self._inside = motion.inside(self.x) if motion.limited else None

    def run(
        self,
        observations: Sequence[ArrayLike | None] | Sequence[series.Reading] | Array,
        dt: TimeSteps | None = None,
        controls: Controls | None = None,
        times: ArrayLike | None = None,
        keep_masses: bool = False,
        start: Any = None,
        late: series.Late = "raise",
    ) -> GridResult:
        """Filter a series of T observations.

        Parameters
        ----------
        observations, dt, controls, times, start, late
            As in `ParticleFilter.run`; None or NaN where an observation is missing.
        keep_masses : bool
            Keep the probabilities of the grid points in the result.

        Raises
        ------
        ValueError
            If lengths differ, the grid is too coarse for the transition noise or too small for the motion, or an observation
            is impossible everywhere on it.
        """
        _checks.check_flags(keep_masses=keep_masses)
        return self._filter(
            series.series(observations, dt, controls, times, start, late), keep_masses
        )

    def _filter(self, steps: Sequence[series.Step], keep_masses: bool) -> GridResult:
        """Filter steps that have been checked."""
        d = self.model.dim
        means = np.empty((len(steps), d))
        covariances = np.empty((len(steps), d, d))
        mass, log_likelihood = self._limit(self._initial)
        time_index = 0
        inspection = Inspection()
        masses = np.empty((len(steps), len(self.x))) if keep_masses else None
        with results.hold_warnings(UserWarning) as warnings:  # one for all steps
            for k, step in enumerate(steps):
                if step.dt > 0:
                    time_index += 1
                    mass = self._predict(mass, step.dt, step.control, time_index)
                    mass, log_inside = self._limit(mass)
                    log_likelihood += log_inside
                observation = Observation.read(
                    sensors.sensed(self.model, step.sensor), step.z, time_index
                )
                if observation is None:
                    results.warn_if_partial(step.z)
                else:
                    # Bayes: prior times likelihood, and their sum is the evidence (less the constant left out).
                    joint = mass * np.exp(observation.log_likelihood(self.x))
                    evidence = joint.sum()
                    if not evidence > 0:
                        raise ValueError(
                            f"observations: step {time_index} is impossible everywhere on the grid, got {observation.z!r}"
                        )
                    mass = joint / evidence
                    inspection = inspection.after(observation)
                    log_likelihood += float((observation.log_offset or 0.0) + np.log(evidence))
                means[k], covariances[k] = mean_and_covariance(self.x, mass)
                if masses is not None:
                    masses[k] = mass
        results.warn_of_run(warnings)
        return GridResult(means, covariances, log_likelihood, masses)

    def smooth(
        self,
        observations: Sequence[ArrayLike | None] | Sequence[series.Reading] | Array,
        dt: TimeSteps | None = None,
        controls: Controls | None = None,
        times: ArrayLike | None = None,
        keep_masses: bool = False,
        start: Any = None,
        late: series.Late = "raise",
    ) -> GridResult:
        """Filter a series, then weight the posterior of each step by the later observations; as `run`.

        The likelihood of the later observations is carried back by the transpose of the prediction. Time is about twice that
        of `run`; memory is T N numbers for N grid points, even if `keep_masses` is False.

        Examples
        --------
        >>> grid = hf.GridFilter(hf.models.linear_chain(1), lower=-12, upper=12, points=241)
        >>> filtered, smoothed = grid.run([[0.2], [1.5], [4.0]]), grid.smooth([[0.2], [1.5], [4.0]])
        >>> bool(smoothed.means[0, 0] > filtered.means[0, 0])  # later observations are larger
        True
        """
        _checks.check_flags(keep_masses=keep_masses)
        steps = series.series(observations, dt, controls, times, start, late)
        filtered = self._filter(steps, True)
        # Backwards: p(later observations | x), up to a factor, which times the filtered posterior is the smoothed one.
        later: Array = np.ones(len(self.x))
        time_index = sum(step.dt > 0 for step in steps)
        means = filtered.means
        covariances = filtered.covariances
        masses: Any = filtered.masses
        for k in range(len(steps) - 1, 0, -1):
            step = steps[k]
            observation = Observation.read(
                sensors.sensed(self.model, step.sensor), step.z, time_index
            )
            if observation is not None:
                later = later * np.exp(observation.log_likelihood(self.x))
            if step.dt > 0:
                if self._inside is not None:
                    later = later * self._inside
                later = self._predict(later, step.dt, step.control, time_index, back=True)
                time_index -= 1
            later = later / later.max()  # against underflow
            masses[k - 1] *= later
            masses[k - 1] /= masses[k - 1].sum()
            means[k - 1], covariances[k - 1] = mean_and_covariance(self.x, masses[k - 1])
        return GridResult(
            means, covariances, filtered.log_likelihood, masses if keep_masses else None
        )

    def _limit(self, mass: Array) -> tuple[Array, float]:
        """Return the probabilities (N,) within the limits of the state, and the logarithm of their sum."""
        if self._inside is None:
            return mass, 0.0
        inside = mass * self._inside
        total = float(inside.sum())
        return inside / total, float(np.log(total))

    def _predict(
        self, mass: Array, dt: float, control: Any, step: int, back: bool = False
    ) -> Array:
        """Return the probability of each grid point at the next step, (N,) -> (N,); the transpose of that map if `back`."""
        from scipy import fft

        transition = resolved.Transition(self.model, dt, control, step)
        Q = transition.noise.matrix
        # A wavenumber above the grid's Nyquist limit is lost: the noise must have damped it before.
        cells = np.sqrt(max(np.linalg.eigvalsh(Q / np.outer(self.spacing, self.spacing))[0], 0.0))
        if cells < CELLS_PER_SD:
            raise ValueError(
                f"points: expected at least {CELLS_PER_SD} grid cells to a standard deviation of the noise "
                f"of step {step}, got {cells:.2g}"
            )
        # The transform is periodic: without padding by 8 standard deviations the noise would wrap round.
        reach = np.ceil(8 * np.sqrt(np.diagonal(Q)) / self.spacing).astype(int)
        padded = tuple(fft.next_fast_len(int(n), real=True) for n in self.shape + reach)
        target = transition.mean(self.x)
        if not back:
            self._check_gaps(mass, target, Q, step)
        position = (target - self.lower) / self.spacing
        # Convolution with N(0, Q): a product with its characteristic function exp(-omega' Q omega / 2).
        transform = fft.rfftn(
            mass.reshape(self.shape) if back else self._spread(mass, position, padded), s=padded
        )
        axes = [fft.fftfreq(n, h) for n, h in zip(padded, self.spacing, strict=True)]
        axes[-1] = fft.rfftfreq(padded[-1], self.spacing[-1])
        omega = 2 * np.pi * np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
        transform *= np.exp(-0.5 * ((omega @ Q) * omega).sum(axis=-1))
        blurred = fft.irfftn(transform, s=padded)
        if back:
            return np.maximum(self._spread(blurred, position, padded, back), 0.0)
        # rounding in the far tails
        predicted = np.maximum(blurred[tuple(slice(n) for n in self.shape)].ravel(), 0.0)
        lost = 1 - predicted.sum()
        if lost > LOST_MASS:
            raise ValueError(
                f"lower, upper: expected a grid that holds the state, got a loss of {lost:.2g} at step {step}; move "
                "them apart"
            )
        return predicted / predicted.sum()  # type: ignore[no-any-return]

    def _check_gaps(self, mass: Array, target: Array, Q: Array, step: int) -> None:
        """Raise ValueError if the transition moves likely neighbours so far apart that the noise leaves gaps."""
        whitened = np.linalg.solve(np.linalg.cholesky(Q), target.T).reshape(-1, *self.shape)
        for axis in range(len(self.shape)):
            gaps = np.sqrt((np.diff(whitened, axis=axis + 1) ** 2).sum(axis=0))
            # the probability at the first of two neighbours whose images are too far apart
            share = np.delete(mass.reshape(self.shape), -1, axis)[gaps > WIDEST_GAP].sum()
            if share > WIDE_MASS:
                raise ValueError(
                    f"points: expected images of neighbours within {WIDEST_GAP:g} standard deviations of the noise, "
                    f"got {gaps.max():.2g} at step {step}, with {100 * share:.2g} % of the probability beyond; use more"
                )

    def _spread(
        self,
        values: Array,
        position: Array,
        padded: tuple[int, ...],
        back: bool = False,
    ) -> Array:
        """Distribute values at positions (N, d), in cells, over a padded periodic grid; with `back`, interpolate there.

        Both use the same cubic weights: one is the transpose of the other.
        """
        # Points outside the grid are lost; `_predict` checks how much that is.
        inside = np.flatnonzero(
            ((position >= 0) & (position <= np.array(self.shape) - 1)).all(axis=1)
        )
        size = len(self.x) if back else int(np.prod(padded))
        position = position[inside]
        cell = np.floor(position).astype(int)
        # Lagrange weights of the nodes -1, 0, 1 and 2, at t in [0, 1).
        t = position - cell
        weights = (
            -t * (t - 1) * (t - 2) / 6,
            (t + 1) * (t - 1) * (t - 2) / 2,
            -(t + 1) * t * (t - 2) / 2,
            (t + 1) * t * (t - 1) / 6,
        )
        result = np.zeros(size)
        # Tensor product of four nodes in each dimension; those outside the grid wrap round into the padding.
        for stencil in product(range(4), repeat=len(padded)):
            index = np.ravel_multi_index(
                tuple((cell + np.array(stencil) - 1).T), padded, mode="wrap"
            )
            share = np.prod([weights[node][:, axis] for axis, node in enumerate(stencil)], axis=0)
            if back:
                result[inside] += share * values.ravel()[index]
            else:
                result += np.bincount(index, values[inside] * share, size)
        return result if back else result.reshape(padded)

    def __repr__(self) -> str:
        return summary_repr(
            self, model=self.model, points=self.shape, lower=self.lower, upper=self.upper
        )
