"""Maximum likelihood: the parameters of a model under which a filter finds the observations most likely."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array, as_array, as_list, as_numbers, check_count, short_repr
from herdfilter.filters.results import DegenerateWeightsError, hold_warnings

__all__ = ["MaximumLikelihood", "RoughLikelihoodWarning", "maximise_likelihood"]

FIRST_STEP = 0.05
"""First step, as a share of the distance of the bounds; of the parameter itself, or 1, where they are not finite."""

START_RADIUS, END_RADIUS = 1.0, 0.2  # radius of the search at its start and at its end, in rough standard errors
MAX_SEARCHES = 3  # most searches, each followed by a step of Newton's method

GRADIENT_RANGE, HESSIAN_RANGE, START_RANGE = 0.1, 0.5, 2.0
"""Longest steps of Newton's method, in standard errors, for which the gradient, the Hessian or the start still holds."""

WIDE_STEP, NARROW_STEP = 0.4, 0.1  # steps of the second differences, in standard errors of a parameter given the others
ROUGHNESS_CHECKS = 3  # fewest second differences at narrow steps, over all parameters
LARGEST_ROUGHNESS = 0.005  # above it, the roughness of the log-likelihood may move a maximum by a tenth of a standard error


class RoughLikelihoodWarning(UserWarning):
    """The log-likelihood jumps: its maximum means little, and its curvature gives no standard errors.

    Examples
    --------
    The usual cause is a filter with other random numbers at every run: give each the same seed. To stop at such a jump:

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", hf.RoughLikelihoodWarning)
    """


@dataclass(frozen=True, eq=False, repr=False)
class MaximumLikelihood:
    """Parameters of greatest likelihood with their standard errors, as `maximise_likelihood` finds them.

    Attributes
    ----------
    theta : ndarray, shape (p,)
        Parameters at the maximum.
    standard_errors : ndarray, shape (p,)
        Square roots of the diagonal of `covariance`.
    covariance : ndarray, shape (p, p)
        Inverse of the negative Hessian of the log-likelihood. NaN for parameters at a bound, where the others' errors
        hold with these fixed; all NaN where the Hessian is not negative definite, or the log-likelihood not smooth.
    log_likelihood : float
    evaluations : int
        Runs of a filter, those for the Hessian and the roughness included.
    roughness : ndarray, shape (p,)
        Largest deviation, along each parameter, of the narrow second differences of the log-likelihood from those
        expected by wide ones: near 0 if it is smooth; NaN for parameters at a bound.
    smooth : bool
        True if no roughness is above 0.005.
    message : str
        Tells how the search ended.
    names : tuple of str

    Examples
    --------
    >>> z = hf.simulate(hf.models.linear_chain(1, 0.7), steps=200, rng=1)[1]
    >>> def build(theta):
    ...     return hf.ExtendedKalmanFilter(hf.models.linear_chain(1, theta[0]))
    ...
    >>> found = hf.maximise_likelihood(build, z, theta0=0.5, bounds=[(0.01, 0.99)], names=["coupling"])
    >>> bool(abs(found.theta[0] - 0.7) < 3 * found.standard_errors[0]), found.names
    (True, ('coupling',))
    """

    theta: Array
    standard_errors: Array
    covariance: Array
    log_likelihood: float
    evaluations: int
    roughness: Array
    smooth: bool
    message: str
    names: tuple[str, ...]

    def __repr__(self) -> str:
        found = zip(self.names, self.theta, self.standard_errors, strict=True)
        parts = [f"{name}={value:.4g} ± {error:.2g}" for name, value, error in found]
        parts += [f"log_likelihood={self.log_likelihood:.6g}", f"evaluations={self.evaluations}", f"smooth={self.smooth}"]
        return f"MaximumLikelihood({', '.join(parts)})"


def maximise_likelihood(
    build: Callable[[Array], Any],
    observations: Iterable[ArrayLike | None],
    theta0: ArrayLike,
    bounds: Sequence[tuple[float, float]] | Array,
    names: Sequence[str] | None = None,
    max_evaluations: int = 500,
    **run: Any,
) -> MaximumLikelihood:
    """Find the parameters of greatest likelihood and their standard errors, and check that the likelihood is smooth.

    SciPy's COBYQA (Ragonneau 2022, thesis, Hong Kong Polytechnic University) searches without derivatives, in units of a
    rough standard error of each parameter. Differences at steps of 0.4 standard errors then give gradient and Hessian at
    the best place, and a step of Newton's method from there. Differences at steps of 0.1 standard errors give the same
    curvature if the log-likelihood is smooth, and one many times as large if it jumps. Jumps that are rarer than these
    steps go unnoticed. The maximum is a local one: start from several places if there may be more.

    Parameters
    ----------
    build : callable
        Takes parameters, an array (p,), to a new filter: anything whose ``run(observations)`` returns an object with a
        `log_likelihood`. Filters with random numbers need the same seed every time.
    observations : iterable, length T
        As for ``run``.
    theta0 : array_like, shape (p,)
        Start of the search; a number stands for one parameter.
    bounds : sequence of pairs, shape (p, 2)
        Smallest and largest value of each parameter, possibly infinite. The first steps are a twentieth of the distance:
        sensible bounds save evaluations.
    names : sequence of str, length p, optional
        Names of the parameters, for messages.
    max_evaluations : int
        Most runs of the search; Hessian and roughness take about p (p + 3) more.
    **run
        Passed to ``run``: ``dt``, ``times``, ``controls``.

    Warns
    -----
    RoughLikelihoodWarning
        If the log-likelihood jumps.

    Raises
    ------
    ValueError
        If the log-likelihood at `theta0` is not finite, or `build` returns the same filter twice.
    Exception
        Errors of `build` and of the filter carry a note with the parameters; `DegenerateWeightsError` counts as a likelihood
        of 0, except at `theta0`.

    Examples
    --------
    Estimate the step variance of an autoregression observed in noise, by the exact likelihood of a Kalman filter:

    >>> def build(theta):
    ...     return hf.ExtendedKalmanFilter(hf.models.LinearGaussian([[0.9]], [[1]], [[theta[0]]], [[0.5]], [0], [[1]]))
    ...
    >>> truth, z = hf.simulate(build([1.0]).model, steps=100, rng=1)
    >>> found = hf.maximise_likelihood(build, z, theta0=0.3, bounds=[(0.01, 10)], names=["Q"])
    >>> bool(abs(found.theta[0] - 1.0) < 5 * found.standard_errors[0]), found.smooth, found.evaluations < 60
    (True, True, True)
    >>> found.log_likelihood >= build([1.0]).run(z).log_likelihood
    True
    """
    theta0, lower, upper = _as_box(theta0, bounds)
    p = len(theta0)
    if names is None:
        names = [f"theta[{i}]" for i in range(p)]
    else:
        names = [names] if isinstance(names, str) else as_list("names", names, f"{p} texts")
        if len(names) != p or len(set(names)) < p or not all(isinstance(name, str) for name in names):
            raise ValueError(f"names: expected {p} different texts, one per parameter, got {short_repr(names)}")
    observations = as_list("observations", observations)
    f = _LogLikelihood(build, observations, run)
    if not np.isfinite(f(theta0)):
        raise ValueError(
            f"theta0: expected a finite log-likelihood there, got {f.values[tuple(theta0)]} at {theta0.tolist()}"
        )
    steps = _first_steps(f, theta0, lower, upper)
    most = check_count("max_evaluations", max_evaluations)
    done, length = True, np.inf
    for _ in range(MAX_SEARCHES):
        if not length <= START_RANGE:
            _, done = _search(f, f.best(), lower, upper, steps, most)
        x = f.best()
        local = _Curvature.at(f, x, lower, upper, steps)
        x, length = local.newton(f, lower, upper)
        if not done or length <= HESSIAN_RANGE or not local.smooth:
            if GRADIENT_RANGE < length <= HESSIAN_RANGE and local.smooth:
                x = local.with_gradient_at(f, x).newton(f, lower, upper)[0]
            break
        steps = local.steps
    at_bound = [name for name, free in zip(names, local.free, strict=True) if not free]
    message = "converged" if done else f"stopped after {max_evaluations} evaluations"
    if at_bound:
        message += f"; {', '.join(at_bound)} at a bound, without standard error"
    if local.covariance is None and local.smooth:
        message += "; the Hessian is not negative definite, so that there are no standard errors"
    if not local.smooth:
        worst = int(np.nanargmax(local.roughness))
        text = (
            f"log-likelihood: expected a smooth one, got jumps of about {local.roughness[worst]:.2g} along {names[worst]}; "
            "there are no standard errors; use a smooth filter, such as herded-quantile or augmented-gauss-kh"
        )
        warnings.warn(text, RoughLikelihoodWarning, stacklevel=2)
        message += f"; {text}"
    covariance = np.full((p, p), np.nan)
    if local.covariance is not None and local.smooth:  # where it is rough, that is the curvature of a tooth
        covariance[np.ix_(local.free, local.free)] = local.covariance
    errors = np.sqrt(np.diagonal(covariance))
    return MaximumLikelihood(
        x, errors, covariance, f(x), f.evaluations, local.roughness, local.smooth, message, tuple(names)
    )


def _as_box(theta0: ArrayLike, bounds: Any) -> tuple[Array, Array, Array]:
    """Return start, lower and upper bounds, (p,) each, checked."""
    theta0 = as_array("theta0", np.atleast_1d(as_numbers("theta0", theta0, (None,))), (None,))
    p = len(theta0)
    if not p:
        raise ValueError("theta0: expected at least one parameter, got none")
    box = as_numbers("bounds", bounds, (p, 2))
    if box.shape != (p, 2) or np.isnan(box).any():
        raise ValueError(f"bounds: expected a pair for each of {p} parameters, got {short_repr(bounds)}")
    lower, upper = box.T
    if not (lower < upper).all():
        raise ValueError(f"bounds: expected each lower bound below its upper one, got {short_repr(bounds)}")
    if ((theta0 < lower) | (theta0 > upper)).any():
        raise ValueError(f"theta0: expected parameters within the bounds {box.tolist()}, got {theta0.tolist()}")
    return theta0, lower, upper


def _first_steps(f: _LogLikelihood, theta0: Array, lower: Array, upper: Array) -> Array:
    """Return rough standard errors of each parameter given the others, by the curvature at the start."""
    width = upper - lower
    steps = np.where(np.isfinite(width), FIRST_STEP * width, FIRST_STEP * np.maximum(np.abs(theta0), 1.0))
    room = np.minimum(theta0 - lower, upper - theta0)
    for i, step in enumerate(steps):
        if room[i] < 0.2 * step:
            continue
        tried = min(step, room[i])
        curvature = f.derivatives(theta0, i, tried)[1]
        if -np.inf < curvature < 0:
            wanted = 1 / np.sqrt(-curvature)
            # places that have been tried are used again, if they are not far off
            steps[i] = tried if 0.4 < wanted / tried < 2.5 else np.clip(wanted, 0.1 * tried, 3 * tried)
    return steps


def _search(f: _LogLikelihood, start: Array, lower: Array, upper: Array, scale: Array, most: int) -> tuple[Array, bool]:
    """Search with COBYQA; return the best place, and True if the search converged."""
    from scipy.optimize import Bounds, minimize

    def objective(u: Array) -> float:
        value = f(np.clip(u * scale, lower, upper))
        if value > -np.inf:
            return -value
        known = [v for v in f.values.values() if v > -np.inf]
        return float(10 * (np.ptp(known) + 1) - min(known))  # no infinity: quadratic models would be lost

    found = minimize(
        objective,
        start / scale,
        method="COBYQA",
        bounds=Bounds(lower / scale, upper / scale),
        options={"initial_tr_radius": START_RADIUS, "final_tr_radius": END_RADIUS, "maxfev": max(most - f.evaluations, 1)},
    )
    return f.best(), bool(found.success)


class _LogLikelihood:
    """The log-likelihood as a function of the parameters: computed once at each place, -inf where all weights vanish."""

    def __init__(self, build: Callable[[Array], Any], observations: Any, run: dict[str, Any]) -> None:
        if not callable(build):
            raise TypeError(f"build: expected a function from parameters to a filter, got {short_repr(build)}")
        self.build, self.observations, self.run = build, observations, run
        self.values: dict[tuple[float, ...], float] = {}
        self.evaluations = 0
        self._last: Any = None

    def __call__(self, theta: Array) -> float:
        # to 13 digits: places that different sums of steps lead to are the same
        theta = np.array([float(f"{value:.13g}") for value in theta])
        key = tuple(theta)
        if key not in self.values:
            self.evaluations += 1
            try:
                online = self.build(theta)
                if not callable(getattr(online, "run", None)):
                    raise TypeError(f"build: expected a filter, which has a method run, got {short_repr(online)}")
                if online is self._last:
                    raise ValueError(f"build: expected a new filter every time, got the same {type(online).__name__} again")
                self._last = online
                with hold_warnings():
                    value = float(online.run(self.observations, **self.run).log_likelihood)
            except DegenerateWeightsError as error:
                if not self.values:
                    error.add_note(f"at theta0 = {theta.tolist()}")
                    raise
                value = -np.inf
            except Exception as error:
                error.add_note(f"at theta = {theta.tolist()}")
                raise
            self.values[key] = -np.inf if np.isnan(value) and self.values else value
        return self.values[key]

    def best(self) -> Array:
        """Return the best place so far."""
        return np.array(max(self.values, key=lambda theta: self.values[theta]))

    def derivatives(self, x: Array, i: int, step: float) -> tuple[float, float]:
        """Return first and second derivative along parameter i, by central differences."""
        e = np.zeros(len(x))
        e[i] = step
        ahead, behind = self(x + e), self(x - e)
        return (ahead - behind) / (2 * step), (ahead - 2 * self(x) + behind) / step**2


@dataclass
class _Curvature:
    """Gradient and inverse Hessian of a log-likelihood at x, by differences, for the parameters that are not at a bound.

    `steps` (p,) are standard errors of each parameter given the others. `roughness` (p,) is the largest unexpected part of
    narrow second differences along each parameter.
    """

    x: Array
    free: np.ndarray
    steps: Array
    gradient: Array
    covariance: Array | None
    roughness: Array

    @property
    def smooth(self) -> bool:
        """True if no roughness is above `LARGEST_ROUGHNESS`."""
        return not (self.roughness > LARGEST_ROUGHNESS).any()

    @classmethod
    def at(cls, f: _LogLikelihood, x: Array, lower: Array, upper: Array, steps: Array) -> _Curvature:
        """Compute all at x; `steps` are rough standard errors."""
        p, room, wide = len(x), np.minimum(x - lower, upper - x), WIDE_STEP * steps
        gradient, hessian = np.zeros(p), np.zeros((p, p))
        free = np.array([_fit_step(f, x, i, wide, room[i]) for i in range(p)])
        which, along = [i for i in range(p) if free[i]], np.diag(wide)
        for i in which:
            gradient[i], hessian[i, i] = f.derivatives(x, i, wide[i])
            for j in [j for j in which if j < i]:  # two new values, beside those along both parameters
                a, b = along[i], along[j]
                corners = f(x + a + b) + f(x - a - b)
                edges = f(x + a) + f(x - a) + f(x + b) + f(x - b)
                hessian[i, j] = hessian[j, i] = (corners - edges + 2 * f(x)) / (2 * wide[i] * wide[j])
        roughness, slopes = np.full(p, np.nan), np.zeros(p)
        repeats = -(-ROUGHNESS_CHECKS // max(len(which), 1))
        for i in which:
            unexpected = []
            for step in wide[i] * NARROW_STEP / WIDE_STEP * 0.6 ** np.arange(repeats)[::-1]:
                slopes[i], curvature = f.derivatives(x, i, step)
                unexpected.append(abs(curvature - hessian[i, i]) * step**2)
            roughness[i] = max(unexpected)
        information, covariance = -hessian[np.ix_(which, which)], None
        if np.isfinite(information).all():
            scale = np.sqrt(np.maximum(np.diagonal(information), 1e-300))
            scaled = information / np.outer(scale, scale)
            if not which or np.linalg.eigvalsh(scaled)[0] > 1e-10:
                covariance = np.linalg.inv(scaled) / np.outer(scale, scale)
        found = cls(x, free, wide / WIDE_STEP, gradient, covariance, roughness)
        if found.smooth:  # then the narrow steps know the slope better
            found.gradient = slopes
        return found

    def with_gradient_at(self, f: _LogLikelihood, x: Array) -> _Curvature:
        """Return the same Hessian with the gradient at x, which is near by."""
        gradient = np.zeros(len(x))
        for i in np.flatnonzero(self.free).tolist():
            gradient[i] = f.derivatives(x, i, NARROW_STEP * self.steps[i])[0]
        return replace(self, x=x, gradient=gradient)

    def newton(self, f: _LogLikelihood, lower: Array, upper: Array) -> tuple[Array, float]:
        """Return the best place after a step of Newton's method, and the length of that step in standard errors.

        The length is infinite where the log-likelihood is not concave: then no step is made.
        """
        if self.covariance is None:
            return f.best(), np.inf
        slope = self.gradient[self.free]
        step = self.covariance @ slope
        length = float(np.sqrt(max(slope @ step, 0.0)))
        ahead = self.x.copy()
        ahead[self.free] += step / max(length, 1.0)
        f(np.clip(ahead, lower, upper))
        return f.best(), length


def _fit_step(f: _LogLikelihood, x: Array, i: int, wide: Array, room: float) -> bool:
    """Fit the step of parameter i, in place, to the curvature along it; return False if the parameter is at a bound."""
    for _ in range(4):
        if room <= 0.25 * wide[i]:
            return False
        wide[i] = min(wide[i], room)
        curvature = f.derivatives(x, i, wide[i])[1]
        wanted = WIDE_STEP / np.sqrt(-curvature) if curvature < 0 else 3 * wide[i]
        ratio = min(wanted, room) / wide[i]
        if 0.5 <= ratio <= 2:
            break
        wide[i] *= np.clip(ratio, 0.1, 10)
    return True
