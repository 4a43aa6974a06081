"""Maximum likelihood: the parameters of a model under which a filter finds the observations most likely."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array, as_array, as_count, as_numbers, shown
from herdfilter.filters.results import DegenerateWeightsError

FIRST = 0.05
"""First step, as a share of the distance of the bounds; of the parameter itself, or 1, where they are not finite."""

WIDE, NARROW = 0.4, 0.1
"""Steps of the second differences, in standard errors of a parameter given the others."""

CHECKS = 3
"""Fewest second differences at narrow steps, whatever the number of parameters."""

ROUGH = 0.005
"""Of a log-likelihood: rougher ones may move a maximum by a tenth of a standard error."""

RADIUS, COARSE = 1.0, 0.2
"""Of the search, at its start and at its end, in those standard errors."""

ROUNDS = 3
"""Most searches, each followed by a step of Newton's method."""

NEAR, CLOSE, FAR = 0.1, 0.5, 2.0
"""Steps of that method, in standard errors, up to which the gradient, the Hessian or the start is near enough."""


class RoughLikelihoodWarning(UserWarning):
    """The log-likelihood jumps: its maximum, and standard errors from its curvature, mean little."""


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
        hold with these fixed; all NaN where the Hessian is not negative definite.
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
    """
    theta0, lower, upper = _box(theta0, bounds)
    names = _as_names(names, len(theta0))
    f = _LogLikelihood(build, list(observations) if not hasattr(observations, "shape") else observations, run)
    if not np.isfinite(f(theta0)):
        raise ValueError(
            f"theta0: expected a finite log-likelihood there, got {f.seen[tuple(theta0)]} at {theta0.tolist()}"
        )
    steps = _first_steps(f, theta0, lower, upper)
    most = as_count("max_evaluations", max_evaluations)
    done, length = True, np.inf
    for _ in range(ROUNDS):
        if not length <= FAR:
            _, done = _search(f, f.best(), lower, upper, steps, most)
        x = f.best()
        shape = _Curvature.at(f, x, lower, upper, steps)
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
    if shape.covariance is None:
        message += "; the Hessian is not negative definite, so that there are no standard errors"
    if not shape.smooth:
        worst = int(np.nanargmax(shape.roughness))
        text = (
            f"log-likelihood: expected a smooth one, got jumps of about {shape.roughness[worst]:.2g} along {names[worst]}; "
            "maximum and standard errors mean little: use a filter that decides nothing from step to step"
        )
        warnings.warn(text, RoughLikelihoodWarning, stacklevel=2)
        message += f"; {text}"
    covariance = shape.filled()
    errors = np.sqrt(np.diagonal(covariance))
    return MaximumLikelihood(
        x, errors, covariance, f(x), f.evaluations, shape.roughness, shape.smooth, message, tuple(names)
    )


class _LogLikelihood:
    """The log-likelihood as a function of the parameters: -inf where it is none, computed once everywhere."""

    def __init__(self, build: Callable[[Array], Any], observations: Any, run: dict[str, Any]) -> None:
        if not callable(build):
            raise TypeError(f"build: expected a function from parameters to a filter, got {shown(build)}")
        self.build, self.observations, self.run = build, observations, run
        self.seen: dict[tuple[float, ...], float] = {}
        self.evaluations = 0
        self._last: Any = None

    def __call__(self, theta: Array) -> float:
        # to 13 digits: places that different sums of steps lead to are the same
        theta = np.array([float(f"{value:.13g}") for value in theta])
        key = tuple(theta)
        if key not in self.seen:
            self.evaluations += 1
            try:
                value = self._computed(theta)
            except DegenerateWeightsError as error:
                if not self.seen:
                    error.add_note(f"at theta0 = {theta.tolist()}")
                    raise
                value = -np.inf
            except Exception as error:
                error.add_note(f"at theta = {theta.tolist()}")
                raise
            self.seen[key] = -np.inf if np.isnan(value) and self.seen else value
        return self.seen[key]

    def _computed(self, theta: Array) -> float:
        online = self.build(theta)
        if not callable(getattr(online, "run", None)):
            raise TypeError(f"build: expected a filter, which has a method run, got {shown(online)}")
        if online is self._last:
            raise ValueError(
                f"build: expected a new filter every time, got the same {type(online).__name__} again"
            )
        self._last = online
        return float(online.run(self.observations, **self.run).log_likelihood)

    def best(self) -> Array:
        """Return the best place so far."""
        return np.array(max(self.seen, key=lambda theta: self.seen[theta]))

    def differences(self, x: Array, i: int, step: float) -> tuple[float, float]:
        """First and second derivative along parameter i, by central differences."""
        e = np.zeros(len(x))
        e[i] = step
        ahead, behind = self(x + e), self(x - e)
        return (ahead - behind) / (2 * step), (ahead - 2 * self(x) + behind) / step**2


@dataclass
class _Curvature:
    """Gradient and Hessian of a log-likelihood at x, by differences; only of parameters that are not at a bound.

    Attributes
    ----------
    steps : ndarray, shape (p,)
        Standard error of each parameter given the others.
    roughness : ndarray, shape (p,)
        Largest unexpected part of narrow second differences along each parameter.
    """

    x: Array
    free: np.ndarray
    steps: Array
    gradient: Array
    covariance: Array | None
    roughness: Array

    @property
    def smooth(self) -> bool:
        return not (self.roughness > ROUGH).any()

    @classmethod
    def at(cls, f: _LogLikelihood, x: Array, lower: Array, upper: Array, steps: Array) -> _Curvature:
        p, room, wide = len(x), np.minimum(x - lower, upper - x), WIDE * steps
        gradient, hessian = np.zeros(p), np.zeros((p, p))
        free = np.array([_settled(f, x, i, wide, room[i]) for i in range(p)])
        which = [i for i in range(p) if free[i]]
        for i in which:
            gradient[i], hessian[i, i] = f.differences(x, i, wide[i])
            for j in [j for j in which if j < i]:
                hessian[i, j] = hessian[j, i] = _mixed(f, x, i, j, wide)
        roughness, slopes = np.full(p, np.nan), np.zeros(p)
        repeats = -(-CHECKS // max(len(which), 1))
        for i in which:
            unexpected = []
            for step in wide[i] * NARROW / WIDE * 0.6 ** np.arange(repeats)[::-1]:
                slopes[i], curvature = f.differences(x, i, step)
                unexpected.append(abs(curvature - hessian[i, i]) * step**2)
            roughness[i] = max(unexpected)
        covariance = _inverse(-hessian[np.ix_(which, which)])
        found = cls(x, free, wide / WIDE, gradient, covariance, roughness)
        if found.smooth:  # then the narrow steps know the slope better
            found.gradient = slopes
        return found

    def moved(self, f: _LogLikelihood, x: Array) -> _Curvature:
        """Take the gradient anew at x, near by."""
        gradient = np.zeros(len(x))
        for i in range(len(x)):
            if not self.free[i]:
                continue
            gradient[i] = f.differences(x, i, NARROW * self.steps[i])[0]
        return replace(self, x=x, gradient=gradient)

    def newton(self, f: _LogLikelihood, lower: Array, upper: Array) -> tuple[Array, float]:
        """Return where Newton's method goes if it is better there, else the best place, and how far it would go.

        The length is in standard errors, infinite where the log-likelihood is not concave.
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

    def filled(self) -> Array:
        """Covariance (p, p), NaN where there is none."""
        p = len(self.x)
        covariance = np.full((p, p), np.nan)
        if self.covariance is not None:
            covariance[np.ix_(self.free, self.free)] = self.covariance
        return covariance


def _settled(f: _LogLikelihood, x: Array, i: int, wide: Array, room: float) -> bool:
    """Fit the step of parameter i, in place, to the curvature along it; False if the parameter is at a bound."""
    for _ in range(4):
        if room <= 0.25 * wide[i]:
            return False
        wide[i] = min(wide[i], room)
        curvature = f.differences(x, i, wide[i])[1]
        wanted = WIDE / np.sqrt(-curvature) if curvature < 0 else 3 * wide[i]
        ratio = min(wanted, room) / wide[i]
        if 0.5 <= ratio <= 2:
            break
        wide[i] *= np.clip(ratio, 0.1, 10)
    return True


def _mixed(f: _LogLikelihood, x: Array, i: int, j: int, steps: Array) -> float:
    """Mixed second derivative: two new values, beside those along both parameters."""
    a, b = np.zeros(len(x)), np.zeros(len(x))
    a[i], b[j] = steps[i], steps[j]
    corners = f(x + a + b) + f(x - a - b)
    edges = f(x + a) + f(x - a) + f(x + b) + f(x - b)
    return (corners - edges + 2 * f(x)) / (2 * steps[i] * steps[j])


def _inverse(information: Array) -> Array | None:
    """Inverse of a matrix (p, p), None if it is not positive definite."""
    if not np.isfinite(information).all():
        return None
    scale = np.sqrt(np.maximum(np.diagonal(information), 1e-300))
    scaled = information / np.outer(scale, scale)
    if information.size and np.linalg.eigvalsh(scaled)[0] <= 1e-10:
        return None
    return np.linalg.inv(scaled) / np.outer(scale, scale)


def _first_steps(f: _LogLikelihood, theta0: Array, lower: Array, upper: Array) -> Array:
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


def _search(
    f: _LogLikelihood, start: Array, lower: Array, upper: Array, scale: Array, most: int
) -> tuple[Array, bool]:
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
    theta0 = as_array("theta0", np.atleast_1d(np.asarray(theta0)), (None,))
    p = len(theta0)
    if not p:
        raise ValueError("theta0: expected at least one parameter, got none")
    box = as_numbers("bounds", bounds, (p, 2))
    if box.shape != (p, 2) or np.isnan(box).any():
        raise ValueError(f"bounds: expected a pair for each of {p} parameters, got {shown(bounds)}")
    lower, upper = box.T
    if not (lower < upper).all():
        raise ValueError(f"bounds: expected each lower bound below its upper one, got {shown(bounds)}")
    if ((theta0 < lower) | (theta0 > upper)).any():
        raise ValueError(
            f"theta0: expected parameters within the bounds {box.tolist()}, got {theta0.tolist()}"
        )
    return theta0, lower, upper


def _as_names(names: Sequence[str] | None, p: int) -> list[str]:
    if names is None:
        return [f"theta[{i}]" for i in range(p)]
    names = [names] if isinstance(names, str) else list(names)
    if len(names) != p or len(set(names)) < p or not all(isinstance(name, str) for name in names):
        raise ValueError(f"names: expected {p} different texts, one per parameter, got {shown(names)}")
    return names
