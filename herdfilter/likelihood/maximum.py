"""Maximum likelihood: the parameters of a model under which a filter finds the observations most likely."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array, as_array, as_list, as_numbers, check_count, short_repr
from herdfilter.likelihood._curvature import Curvature
from herdfilter.likelihood._function import LogLikelihood

FIRST = 0.05
"""First step, as a share of the distance of the bounds; of the parameter itself, or 1, where they are not finite."""

RADIUS, COARSE = 1.0, 0.2
"""Of the search, at its start and at its end, in those standard errors."""

ROUNDS = 3
"""Most searches, each followed by a step of Newton's method."""

NEAR, CLOSE, FAR = 0.1, 0.5, 2.0
"""Steps of that method, in standard errors, up to which the gradient, the Hessian or the start is near enough."""


class RoughLikelihoodWarning(UserWarning):
    """The log-likelihood jumps: its maximum means little, and standard errors from its curvature nothing.

    Examples
    --------
    A filter with other random numbers at every run is the usual cause; build each with the same seed.

    >>> import itertools, warnings
    >>> seeds = itertools.count()
    >>> def build(theta):
    ...     model = hf.models.LinearGaussian([[theta[0]]], [[1]], [[1]], [[0.5]], [0], [[1]])
    ...     return hf.ParticleFilter(model, n_particles=20, rng=next(seeds))
    ...
    >>> truth, z = hf.simulate(build([0.5]).model, steps=20, rng=1)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     found = hf.maximise_likelihood(build, z, theta0=0.3, bounds=[(-2, 2)])
    ...
    >>> found.smooth, [warning.category.__name__ for warning in caught]
    (False, ['RoughLikelihoodWarning'])
    """


@dataclass(frozen=True, eq=False, repr=False)
class MaximumLikelihood:
    """What `maximise_likelihood` finds.

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
        At the maximum.
    evaluations : int
        Runs of a filter, those for the Hessian and the roughness included.
    roughness : ndarray, shape (p,)
        Largest difference, along each parameter, of the narrow second differences of the log-likelihood from what wide
        ones let expect: near 0 where it is smooth; NaN for parameters at a bound.
    smooth : bool
        Whether no roughness is above 0.005.
    message : str
        How the search ended.
    names : tuple of str
        Of the parameters.

    Examples
    --------
    The mean of four numbers with noise of variance 1, where theory has the answer: their average, with the standard error
    1/2. In place of a filter stands anything that is run.

    >>> from types import SimpleNamespace
    >>> class Numbers:
    ...     def __init__(self, theta):
    ...         self.mean = theta[0]
    ...     def run(self, z):
    ...         return SimpleNamespace(log_likelihood=float(-0.5 * np.sum((z - self.mean) ** 2)))
    ...
    >>> found = hf.maximise_likelihood(Numbers, np.array([1.0, 2.0, 4.0, 5.0]), 0.0, [(-10, 10)], names=["mean"])
    >>> np.allclose(found.theta, 3.0), np.allclose(found.standard_errors, 0.5, rtol=1e-3), found.names
    (True, True, ('mean',))
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
        parts = (
            f"{name}={value:.4g} ± {error:.2g}"
            for name, value, error in zip(self.names, self.theta, self.standard_errors, strict=True)
        )
        return (
            f"MaximumLikelihood({', '.join(parts)}, log_likelihood={self.log_likelihood:.6g}, "
            f"evaluations={self.evaluations}, smooth={self.smooth})"
        )


def maximise_likelihood(
    build: Callable[[Array], Any],
    observations: Iterable[ArrayLike | None],
    theta0: ArrayLike,
    bounds: Sequence[tuple[float, float]] | Array,
    names: Sequence[str] | None = None,
    max_evaluations: int = 500,
    **run: Any,
) -> MaximumLikelihood:
    """Find the parameters of greatest likelihood, their standard errors, and whether the likelihood is smooth.

    SciPy's COBYQA (Ragonneau 2022) searches with quadratic models, without derivatives, in units of a rough standard error
    of each parameter. Second differences at steps of 0.4 standard errors then give gradient and Hessian at the best place,
    and a step of Newton's method from there; so a log-likelihood that is a little rough does no harm. The same at steps of
    0.1 standard errors shows whether it is rough: where it is smooth both tell the same curvature, and where it jumps the
    narrow steps tell one many times as large. Jumps that are rarer than these steps go unnoticed.

    The maximum is a local one: start from several places where there may be more.

    Parameters
    ----------
    build : callable
        Takes parameters, an array (p,), to a new filter: anything whose ``run(observations)`` has a
        `log_likelihood`, such as `ParticleFilter`, the Kalman filters and `GridFilter`. Filters with random numbers need
        the same seed every time.
    observations : iterable, length T
        As ``run`` takes them.
    theta0 : array_like, shape (p,)
        Where to start; a number stands for one parameter.
    bounds : sequence of pairs, shape (p, 2)
        Least and largest value of each parameter, which `build` must take; -inf or inf where there is none. The first steps
        are a twentieth of the distance: sensible bounds spare evaluations.
    names : sequence of str, length p, optional
        Of the parameters, for messages.
    max_evaluations : int
        Most runs of the search; Hessian and roughness take about p (p + 3) more.
    **run
        Passed to ``run``: ``dt``, ``times``, ``controls``.

    Returns
    -------
    MaximumLikelihood

    Warns
    -----
    RoughLikelihoodWarning
        If the log-likelihood jumps.

    Raises
    ------
    TypeError
        If `build` cannot be called, or does not return a filter.
    ValueError
        If bounds are in disorder, `theta0` is outside or its log-likelihood is not finite, `names` do not fit, or `build`
        returns the same filter twice. Errors of `build` and of the filter carry a note with the parameters;
        `DegenerateWeightsError` counts as a likelihood of 0, except at `theta0`.

    Notes
    -----
    Ragonneau (2022), "Model-based derivative-free optimization methods and software", thesis, Hong Kong Polytechnic
    University.

    Examples
    --------
    The variance of the steps of an autoregression that is seen in noise, by the exact likelihood of a Kalman filter:

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
    theta0, lower, upper = _box(theta0, bounds)
    names = _as_names(names, len(theta0))
    observations = as_list("observations", observations)
    f = LogLikelihood(build, observations, run)
    if not np.isfinite(f(theta0)):
        raise ValueError(f"theta0: expected a finite log-likelihood there, got {f.seen[tuple(theta0)]} at {theta0.tolist()}")
    steps = _first_steps(f, theta0, lower, upper)
    most = check_count("max_evaluations", max_evaluations)
    done, length = True, np.inf
    for _ in range(ROUNDS):
        if not length <= FAR:
            _, done = _search(f, f.best(), lower, upper, steps, most)
        x = f.best()
        shape = Curvature.at(f, x, lower, upper, steps)
        x, length = shape.newton(f, lower, upper)
        if not done or length <= CLOSE or not shape.smooth:
            if NEAR < length <= CLOSE and shape.smooth:
                x = shape.moved(f, x).newton(f, lower, upper)[0]
            break
        steps = shape.steps
    at_bound = [name for name, free in zip(names, shape.free, strict=True) if not free]
    message = "converged" if done else f"stopped after {max_evaluations} evaluations"
    if at_bound:
        message += f"; {', '.join(at_bound)} at a bound, without standard error"
    if shape.covariance is None and shape.smooth:
        message += "; the Hessian is not negative definite, so that there are no standard errors"
    if not shape.smooth:
        worst = int(np.nanargmax(shape.roughness))
        text = (
            f"log-likelihood: expected a smooth one, got jumps of about {shape.roughness[worst]:.2g} along {names[worst]}; "
            "the maximum means little and there are no standard errors: use a filter that decides nothing from step to step"
        )
        warnings.warn(text, RoughLikelihoodWarning, stacklevel=2)
        message += f"; {text}"
        shape.covariance = None  # the curvature of a tooth
    covariance = shape.filled()
    errors = np.sqrt(np.diagonal(covariance))
    return MaximumLikelihood(
        x, errors, covariance, f(x), f.evaluations, shape.roughness, shape.smooth, message, tuple(names)
    )


def _first_steps(f: LogLikelihood, theta0: Array, lower: Array, upper: Array) -> Array:
    """About a standard error of each parameter given the others, as seen from the start."""
    width = upper - lower
    steps = np.where(np.isfinite(width), FIRST * width, FIRST * np.maximum(np.abs(theta0), 1.0))
    room = np.minimum(theta0 - lower, upper - theta0)
    for i, step in enumerate(steps):
        if room[i] < 0.2 * step:
            continue
        tried = min(step, room[i])
        curvature = f.differences(theta0, i, tried)[1]
        if -np.inf < curvature < 0:
            wanted = 1 / np.sqrt(-curvature)
            # the search begins with the places that have been tried, if they are not far off
            steps[i] = tried if 0.4 < wanted / tried < 2.5 else np.clip(wanted, 0.1 * tried, 3 * tried)
    return steps


def _search(f: LogLikelihood, start: Array, lower: Array, upper: Array, scale: Array, most: int) -> tuple[Array, bool]:
    """Search with COBYQA; return the best place, and whether the search came to an end."""
    from scipy.optimize import Bounds, minimize

    def objective(u: Array) -> float:
        value = f(np.clip(u * scale, lower, upper))
        if value > -np.inf:
            return -value
        known = [v for v in f.seen.values() if v > -np.inf]
        return -(min(known) - 10 * (np.ptp(known) + 1))  # no infinity: quadratic models would be lost

    found = minimize(
        objective,
        start / scale,
        method="COBYQA",
        bounds=Bounds(lower / scale, upper / scale),
        options={
            "initial_tr_radius": RADIUS,
            "final_tr_radius": COARSE,
            "maxfev": max(most - f.evaluations, 1),
        },
    )
    return f.best(), bool(found.success)


def _box(theta0: ArrayLike, bounds: Any) -> tuple[Array, Array, Array]:
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


def _as_names(names: Sequence[str] | None, p: int) -> list[str]:
    if names is None:
        return [f"theta[{i}]" for i in range(p)]
    names = [names] if isinstance(names, str) else as_list("names", names, f"{p} texts")
    if len(names) != p or len(set(names)) < p or not all(isinstance(name, str) for name in names):
        raise ValueError(f"names: expected {p} different texts, one per parameter, got {short_repr(names)}")
    return names
