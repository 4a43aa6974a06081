"""A model made of functions: what a user has at hand, without a class."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import (
    Array,
    as_array,
    as_covariance,
    as_dims,
    as_numbers,
    check_flags,
    shape_text,
    short_repr,
    unmasked,
)
from herdfilter.mixture import GaussianMixture
from herdfilter.models.pickling import PicklesFunctions


def from_functions(
    f: Callable[..., ArrayLike],
    h: Callable[..., ArrayLike] | None,
    Q: ArrayLike | Callable[..., ArrayLike],
    R: ArrayLike | Callable[..., ArrayLike] | None,
    x0: ArrayLike,
    P0: ArrayLike,
    angles: Sequence[int] = (),
    observation_angles: Sequence[int] = (),
    vectorised: bool = True,
) -> FunctionModel:
    """Return the model ``x' = f(x) + N(0, Q)``, ``z = h(x) + N(0, R)``, ``x_0 ~ N(x0, P0)`` for any filter.

    Its likelihood is that of Gaussian noise, with the residuals of angles wrapped.

    Parameters
    ----------
    f : callable
        States (n, d), particles first, to the next ones; of the states, and of any of ``dt``, ``control`` and ``step``,
        which are passed by name.
    h : callable or None
        States (n, d) to their mean observations (n, k), or (n,) where k is 1; of the states, and of ``step`` if it is named.
        None where only sensors observe the state.
    Q : array_like of shape (d, d), or callable
        Covariance of the transition noise: a matrix, of every step whatever its length; or a function of any of ``dt`` and
        ``step``, by name.
    R : array_like of shape (k, k), or callable, or None
        Covariance of the observation noise: a matrix, or a function of ``step``; or one of states, (n, d) -> (n, k, k),
        and of ``step`` if it is named.
    x0 : array_like of shape (d,)
        Mean of the state at step 0.
    P0 : array_like of shape (d, d)
        Its covariance.
    angles, observation_angles : sequence of int
        Indices of the angle-valued entries of state and observation, in radians.
    vectorised : bool
        Whether functions take states (n, d). With False they take one state (d,), as filterpy's do, and are called in a
        loop: convenient, and slow.

    Raises
    ------
    TypeError, ValueError
        If a function takes other arguments, or an array has another shape.

    Examples
    --------
    A pendulum whose horizontal position is seen; the angle is in radians.

    >>> model = hf.models.from_functions(
    ...     f=lambda x, dt: x + dt * np.column_stack([x[:, 1], -9.81 * np.sin(x[:, 0])]),
    ...     h=lambda x: np.sin(x[:, 0]),
    ...     Q=1e-3 * np.eye(2), R=[[0.01]], x0=[0.5, 0.0], P0=0.1 * np.eye(2), angles=[0],
    ... )
    >>> truth, z = hf.simulate(model, steps=50, dt=0.05, rng=1)
    >>> result = hf.make_filter("auto", model, n_particles=50).run(z, dt=0.05)
    >>> bool(np.std((result.means - truth)[:, 0]) < 0.15)
    True

    With functions of one state, as filterpy takes them:

    >>> slow = hf.models.from_functions(
    ...     lambda x, dt: x + dt * np.array([x[1], -9.81 * np.sin(x[0])]), lambda x: np.sin(x[:1]),
    ...     1e-3 * np.eye(2), [[0.01]], [0.5, 0.0], 0.1 * np.eye(2), angles=[0], vectorised=False,
    ... )
    >>> one, other = (hf.UnscentedKalmanFilter(each).run(z, dt=0.05) for each in (model, slow))
    >>> np.allclose(one.means, other.means)
    True
    """
    return FunctionModel(f, h, Q, R, x0, P0, angles, observation_angles, vectorised)


class FunctionModel:
    """What `from_functions` returns; see there, and `herdfilter.models.contract` for its methods.

    Examples
    --------
    It has all that a filter asks a model for.

    >>> model = hf.models.from_functions(
    ...     f=lambda x, dt: x * np.exp(-dt), h=lambda x: x**2, Q=[[0.1]], R=[[0.2]], x0=[1.0], P0=[[0.5]]
    ... )
    >>> isinstance(model, hf.models.FunctionModel), model.dim, model.initial.mean.tolist()
    (True, 1, [1.0])
    >>> np.allclose(model.transition_mean(np.array([[1.0], [2.0]]), dt=np.log(2), control=None, step=1), [[0.5], [1.0]])
    True
    >>> for name in ["ukf", "auto"]:
    ...     print(hf.make_filter(name, model).run([1.0, 0.4, 0.1]).means.shape)
    ...
    (3, 1)
    (3, 1)
    """

    def __init__(
        self,
        f: Callable[..., ArrayLike],
        h: Callable[..., ArrayLike] | None,
        Q: ArrayLike | Callable[..., ArrayLike],
        R: ArrayLike | Callable[..., ArrayLike] | None,
        x0: ArrayLike,
        P0: ArrayLike,
        angles: Sequence[int] = (),
        observation_angles: Sequence[int] = (),
        vectorised: bool = True,
    ) -> None:
        check_flags(vectorised=vectorised)
        if np.ndim(as_numbers("x0", x0, (None,))) != 1:
            raise ValueError(f"x0: expected a vector of d entries, as [0.0], got shape {np.shape(x0)}")
        mean = as_array("x0", x0, (None,))
        self.dim = len(mean)
        self.initial = GaussianMixture([1.0], mean[None], as_covariance("P0", P0, self.dim))
        self.circular = as_dims("angles", angles, self.dim)
        if (h is None) != (R is None):
            given, other = ("h", "R") if R is None else ("R", "h")
            raise ValueError(f"{other}: expected one beside {given}, got None")
        self._f = _Function.of("f", f, ("dt", "control", "step"), vectorised)
        self._Q = _Covariance.of("Q", Q, ("dt", "step"), self.dim)
        if h is None or R is None:
            return
        self._h = _Function.of("h", h, ("step",), vectorised)
        # attributes: a model without h has no such functions, and the second is of the states only if R is
        self.observation_mean = self._observation_mean
        self._size: int | None = None  # entries of an observation, where R tells how many
        if callable(R) and _parameters(R) != ["step"]:
            self._R_at = _Function.of("R", R, ("step",), vectorised)
            self.observation_covariance: Any = self._at_states
        else:
            self._R = _Covariance.of("R", R, ("step",))
            self._size = None if callable(R) else len(np.asarray(R))
            self.observation_covariance = self._at_step
        self.observation_circular = as_dims("observation_angles", observation_angles, self._size)

    def __repr__(self) -> str:
        return f"FunctionModel(dim={self.dim})"

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> ArrayLike:
        """States (n, d) to the mean of the next ones, (n, d)."""
        return _rows("f", self._f, self._f(x, dt=dt, control=control, step=step), len(x), self.dim)

    def transition_covariance(self, dt: float, step: int) -> ArrayLike:
        """Covariance (d, d) of the transition noise."""
        return self._Q(dt=dt, step=step)

    def _observation_mean(self, x: Array, step: int) -> ArrayLike:
        mean = _rows("h", self._h, self._h(x, step=step), len(x))
        if self._size is not None and self._size != mean.shape[1]:
            raise ValueError(
                f"R: expected shape {(mean.shape[1],) * 2}, a row for each entry that h returns of a state, got "
                f"{(self._size,) * 2}"
            )
        return mean

    def _at_step(self, step: int) -> ArrayLike:
        return self._R(step=step)

    def _at_states(self, step: int, x: Array) -> ArrayLike:
        return self._R_at(x, step=step)


def _rows(name: str, function: _Function, value: Any, n: int, dim: int | None = None) -> Array:
    """Return what a function gave as a row for each of n states; a vector (n,) stands for rows of one entry."""
    array = as_numbers(name, value, (n, dim))
    rows = array[:, None] if array.shape == (n,) and dim in (None, 1) else array
    if rows.ndim != 2 or len(rows) != n or dim not in (None, rows.shape[1]):
        hint = "; a function of one state needs vectorised=False" if function.vectorised else ""
        raise ValueError(f"{name}: expected a row for each state, shape {shape_text((n, dim))}, got {array.shape}{hint}")
    return rows


@dataclass(frozen=True)
class _Function(PicklesFunctions):
    """A function of states, called with those of the other arguments that it names."""

    name: str
    function: Callable[..., ArrayLike]
    names: tuple[str, ...]
    vectorised: bool

    @classmethod
    def of(cls, name: str, function: Any, known: Sequence[str], vectorised: bool) -> _Function:
        if not callable(function):
            raise TypeError(f"{name}: expected a function of states, got {short_repr(function)}")
        first, *others = _parameters(function) or [""]
        if not first or not set(others) <= set(known):
            wanted = f"the states, first, and of any of {', '.join(known)}"
            raise TypeError(f"{name}: expected a function of {wanted}, got one of ({', '.join([first, *others])})")
        return cls(name, function, tuple(others), vectorised)

    def __call__(self, x: Array, **given: Any) -> ArrayLike:
        given = {name: given[name] for name in self.names}
        if self.vectorised:
            try:
                return self.function(x, **given)
            except Exception as error:
                error.add_note(
                    f"{self.name}: called with states of shape {x.shape}, particles first; a function of one state needs "
                    "vectorised=False"
                )
                raise
        return np.array([np.atleast_1d(unmasked(self.name, self.function(row, **given))) for row in x])


@dataclass(frozen=True)
class _Covariance(PicklesFunctions):
    """A covariance matrix, or a function of those of the arguments that it names."""

    given: Any
    names: tuple[str, ...]

    @classmethod
    def of(cls, name: str, given: Any, known: Sequence[str], dim: int | None = None) -> _Covariance:
        if not callable(given):
            if np.ndim(as_numbers(name, given, (dim, dim))) != 2:
                raise ValueError(f"{name}: expected a matrix, as [[0.1]], or a function, got shape {np.shape(given)}")
            return cls(as_covariance(name, given, dim), ())
        names = _parameters(given)
        if not set(names) <= set(known):
            raise TypeError(
                f"{name}: expected a matrix, or a function of any of {', '.join(known)}, got one of ({', '.join(names)})"
            )
        return cls(given, tuple(names))

    def __call__(self, **given: Any) -> ArrayLike:
        if not callable(self.given):
            return self.given
        return self.given(**{name: given[name] for name in self.names})


def _parameters(function: Callable[..., Any]) -> list[str]:
    """Names of the arguments that a function must be given; one that does not tell takes states."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ["x"]
    kinds = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.KEYWORD_ONLY,
    )
    optional = ("dt", "control", "step")  # those with a default are taken to mean what we know by that name
    return [p.name for p in parameters if p.kind in kinds and (p.default is p.empty or p.name in optional)]
