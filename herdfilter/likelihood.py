"""Maximum likelihood: the parameters of a model under which a filter finds the observations most likely."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter.filters.results import DegenerateWeightsError, hold_warnings

__all__ = ["MaximumLikelihood", "RoughLikelihoodWarning", "maximise_likelihood"]

# A share of the distance of the bounds; without finite ones, of the larger of the parameter and 1.
FIRST_STEP = 0.05
# First and last radius of the search's trust region, in standard errors of a parameter given the others.
START_RADIUS = 1.0
END_RADIUS = 0.1
MAX_SEARCHES = 3
# In standard errors: after a longer one the search is repeated with the Hessian found there.
LONGEST_NEWTON_STEP = 0.5
LONGEST_LAST_STEP = 0.1  # after a longer one a second step of Newton's method follows

# Step of the Hessian's differences, in standard errors of a parameter given the others.
WIDE_STEP = 0.4
# Steps for the gradient and the roughness, in wide steps.
NARROW_STEPS = 0.25 * 0.6 ** np.arange(3)
# A larger roughness of the log-likelihood may move its maximum by a tenth of a standard error.
LARGEST_ROUGHNESS = 0.005


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
    """Parameters of greatest likelihood with their standard errors: the result of `maximise_likelihood`.

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
        Number of runs of a filter, including those for the Hessian and the roughness.
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
        estimates = zip(self.names, self.theta, self.standard_errors, strict=True)
        parts = [f"{name}={value:.4g} ± {error:.2g}" for name, value, error in estimates]
        parts += [
            f"log_likelihood={self.log_likelihood:.6g}",
            f"evaluations={self.evaluations}",
            f"smooth={self.smooth}",
        ]
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
    rough standard error of each parameter. Differences at steps of 0.4 standard errors then give the Hessian at the best
    point, from which one or two steps of Newton's method follow. Differences at steps of 0.1 standard errors give the same
    curvature if the log-likelihood is smooth, and a much larger one if it jumps. Jumps that are rarer than these steps go
    unnoticed. The maximum is a local one: start from several points if there may be more.

    Parameters
    ----------
    build : callable
        Function of the parameters, an array (p,), that returns a new filter: anything whose ``run(observations)`` returns an
        object with a `log_likelihood`. Filters with random numbers need the same seed every time.
    observations : iterable, length T
        As for ``run``.
    theta0 : array_like, shape (p,)
        Start of the search; a number if there is one parameter.
    bounds : sequence of pairs, shape (p, 2)
        Smallest and largest value of each parameter, possibly infinite. The first steps are a twentieth of the distance:
        sensible bounds save evaluations.
    names : sequence of str, length p, optional
        Names of the parameters, for messages.
    max_evaluations : int
        Largest number of runs of the search; Hessian and roughness take about 2 p (p + 4) more.
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
    start = _checks.as_array(
        "theta0", np.atleast_1d(_checks.as_numbers("theta0", theta0, (None,))), (None,)
    )
    p = len(start)
    box = _checks.as_bounds("bounds", bounds, p)
    lower, upper = box.T
    if ((start < lower) | (start > upper)).any():
        raise ValueError(
            f"theta0: expected parameters within the bounds {box.tolist()}, got {start.tolist()}"
        )
    if names is None:
        names = [f"theta[{i}]" for i in range(p)]
    names = [names] if isinstance(names, str) else _checks.as_list("names", names, f"{p} texts")
    if len(names) != p or len(set(names)) < p:
        raise ValueError(
            f"names: expected {p} different texts, one per parameter, got {_checks.short_repr(names)}"
        )
    if not callable(build):
        raise TypeError(
            f"build: expected a function from parameters to a filter, got {_checks.short_repr(build)}"
        )
    f = _LogLikelihood(build, _checks.as_list("observations", observations), run, lower, upper)
    if not np.isfinite(f(start)):
        raise ValueError(
            f"theta0: expected a finite log-likelihood there, got {f(start)} at {start.tolist()}"
        )
    max_evaluations = _checks.check_count("max_evaluations", max_evaluations)
    width = upper - lower
    steps: Array = FIRST_STEP * np.where(np.isfinite(width), width, np.maximum(np.abs(start), 1.0))
    steps = f.fit_steps(start, steps, tries=1)[0]
    for _ in range(MAX_SEARCHES):
        converged = f.search(steps / WIDE_STEP, max_evaluations)
        local = f.curvature(steps)
        length = f.newton_step(local)
        if LONGEST_LAST_STEP < length <= LONGEST_NEWTON_STEP:
            f.newton_step(local)
        if not converged or not local.smooth or length <= LONGEST_NEWTON_STEP:
            break
        steps = local.steps
    x = f.best()
    at_bound = [name for name, free in zip(names, local.free, strict=True) if not free]
    message = "converged" if converged else f"stopped after {max_evaluations} evaluations"
    if at_bound:
        message += f"; {', '.join(at_bound)} at a bound, without standard error"
    if local.smooth and local.information is None and local.free.any():
        message += "; the Hessian is not negative definite, so that there are no standard errors"
    if not local.smooth:
        worst = int(np.nanargmax(local.roughness))
        text = (
            f"log-likelihood: expected a smooth one, got jumps of about {local.roughness[worst]:.2g} along {names[worst]}; "
            "there are no standard errors; use a smooth filter, such as herded-quantile or augmented-gauss-kh"
        )
        warnings.warn(text, RoughLikelihoodWarning, stacklevel=2)
        message += f"; {text}"
    return MaximumLikelihood(
        x,
        np.sqrt(np.diagonal(local.covariance)),
        local.covariance,
        f(x),
        len(f.values),
        local.roughness,
        local.smooth,
        message,
        tuple(names),
    )


@dataclass
class _Curvature:
    """Curvature of a log-likelihood along the parameters that are not at a bound.

    `steps` (p,) are wide steps. `information` (k, k) is the negative Hessian in these units, for the k free parameters; None
    if it is not positive definite. `roughness` (p,) is the largest deviation of narrow second differences from those that
    the Hessian predicts.
    """

    free: NDArray[np.bool_]
    steps: Array
    information: Array | None
    roughness: Array

    @property
    def smooth(self) -> bool:
        """True if no roughness is above `LARGEST_ROUGHNESS`."""
        return not (self.roughness > LARGEST_ROUGHNESS).any()

    @property
    def covariance(self) -> Array:
        """Inverse of the negative Hessian, (p, p), NaN for parameters at a bound, and where the log-likelihood jumps."""
        covariance = np.full((len(self.steps), len(self.steps)), np.nan)
        # Where it jumps, its curvature is that of a jump, and tells nothing.
        if self.information is not None and self.smooth:
            covariance[np.ix_(self.free, self.free)] = np.linalg.inv(self.information)
        return covariance * np.outer(self.steps, self.steps)


@dataclass
class _LogLikelihood:
    """The log-likelihood as a function of the parameters within bounds: cached, and -inf where all weights vanish."""

    build: Callable[[Array], Any]
    observations: list[Any]
    run: dict[str, Any]
    lower: Array
    upper: Array
    values: dict[tuple[float, ...], float] = field(default_factory=dict)
    last_filter: Any = None

    def __call__(self, theta: Array) -> float:
        # Rounded to 13 digits, so that a point reached by different sums of steps is computed once.
        theta = np.array([float(f"{value:.13g}") for value in theta])
        key = tuple(theta)
        if key not in self.values:
            try:
                online = self.build(theta)
                if not callable(getattr(online, "run", None)):
                    raise TypeError(
                        f"build: expected a filter, which has a method run, got {_checks.short_repr(online)}"
                    )
                if online is self.last_filter:
                    raise ValueError(
                        f"build: expected a new filter every time, got the same {type(online).__name__} again"
                    )
                self.last_filter = online
                with hold_warnings():
                    value = float(online.run(self.observations, **self.run).log_likelihood)
            except Exception as error:
                error.add_note(f"at theta = {theta.tolist()}")
                # The first evaluation, that at theta0, must have a likelihood.
                if not (self.values and isinstance(error, DegenerateWeightsError)):
                    raise
                value = -np.inf
            self.values[key] = -np.inf if np.isnan(value) and self.values else value
        return self.values[key]

    def best(self) -> Array:
        """Return the parameters of greatest log-likelihood so far."""
        return np.array(max(self.values, key=lambda theta: self.values[theta]))

    def second_difference(self, x: Array, step: Array) -> float:
        """Return f(x + step) - 2 f(x) + f(x - step)."""
        return self(x + step) - 2 * self(x) + self(x - step)

    def search(self, scale: Array, max_evaluations: int) -> bool:
        """Search with COBYQA from the best point so far, in units of `scale` (p,); return True if the search converged."""
        from scipy.optimize import Bounds, minimize

        def objective(u: Array) -> float:
            value = self(np.clip(u * scale, self.lower, self.upper))
            if value > -np.inf:
                return -value
            # Worse than anything so far, but not infinite: COBYQA could not fit its quadratic model.
            finite = [v for v in self.values.values() if v > -np.inf]
            return float(10 * (np.ptp(finite) + 1) - min(finite))

        result = minimize(
            objective,
            self.best() / scale,
            method="COBYQA",
            bounds=Bounds(self.lower / scale, self.upper / scale),
            options={
                "initial_tr_radius": START_RADIUS,
                "final_tr_radius": END_RADIUS,
                "maxfev": max(max_evaluations - len(self.values), 1),
            },
        )
        return bool(result.success)

    def fit_steps(self, x: Array, steps: Array, tries: int) -> tuple[Array, NDArray[np.bool_]]:
        """Return steps (p,) of `WIDE_STEP` standard errors of each parameter given the others, and which are not at a bound.

        A second difference D of the log-likelihood at a step s means a standard error of s / sqrt(-D).
        """
        steps = steps.copy()
        margins = np.minimum(x - self.lower, self.upper - x)
        free = np.ones(len(x), dtype=bool)
        for i, direction in enumerate(np.eye(len(x))):
            for _ in range(tries):
                if margins[i] <= 0.25 * steps[i]:
                    free[i] = False
                    break
                steps[i] = min(steps[i], margins[i])
                difference = self.second_difference(x, steps[i] * direction)
                # Wider where there is no maximum.
                ratio = WIDE_STEP / np.sqrt(-difference) if difference < 0 else 3.0
                ratio = min(ratio, margins[i] / steps[i])
                if 0.5 <= ratio <= 2:  # good enough
                    break
                steps[i] *= np.clip(ratio, 0.1, 10)
        return steps, free

    def curvature(self, steps: Array) -> _Curvature:
        """Compute the curvature at the best point, with steps fitted to it."""
        from scipy.differentiate import hessian

        x = self.best()
        steps, free = self.fit_steps(x, steps, tries=4)
        roughness = np.full(len(x), np.nan)
        if not free.any():
            return _Curvature(free, steps, None, roughness)
        directions = np.diag(steps)[free]  # (k, p)

        def values(u: Array) -> Array:
            return np.apply_along_axis(lambda shift: self(x + shift @ directions), 0, u)

        with np.errstate(invalid="ignore"):  # -inf where all weights vanish
            # `hessian` takes differences of differences, so that half a step gives second differences of whole steps.
            matrix = hessian(
                values, np.zeros(len(directions)), order=2, maxiter=1, initial_step=0.5
            ).ddf
        # With several parameters each needs fewer checks: at least three altogether.
        scales = NARROW_STEPS[: -(-len(NARROW_STEPS) // len(directions))]
        roughness[free] = [
            max(abs(self.second_difference(x, s * step) - s**2 * expected) for s in scales)
            for step, expected in zip(directions, np.diagonal(matrix), strict=True)
        ]
        eigenvalues = np.linalg.eigvalsh(-matrix) if np.isfinite(matrix).all() else np.zeros(1)
        definite = eigenvalues[0] > 1e-10 * eigenvalues[-1]
        return _Curvature(free, steps, -matrix if definite else None, roughness)

    def newton_step(self, local: _Curvature) -> float:
        """Try a step of Newton's method from the best point; return its length in standard errors, inf if there is none."""
        if local.information is None:
            return np.inf
        x = self.best()
        directions = np.diag(local.steps)[local.free]
        narrow = NARROW_STEPS[0]
        differences = [self(x + narrow * step) - self(x - narrow * step) for step in directions]
        gradient = np.array(differences) / (2 * narrow)
        newton = np.linalg.solve(local.information, gradient)
        length = float(np.sqrt(gradient @ newton))
        # At most one standard error; the point is remembered, and becomes the best one if it is better.
        self(np.clip(x + newton @ directions / max(length, 1.0), self.lower, self.upper))
        return length
