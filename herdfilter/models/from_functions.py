"""A model made of functions, without a class."""

from __future__ import annotations

import copyreg
import inspect
import pickle
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
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
    read_only,
    shape_text,
    short_repr,
)
from herdfilter.mixture import GaussianMixture

# True while an object with functions is pickled: what it holds goes into the same pickle, itself included
_pickling = ContextVar("_pickling", default=False)


class FunctionModel:
    """The model :math:`x_k = f(x_{k-1}) + N(0, Q)`, :math:`z_k = h(x_k) + N(0, R)` of functions, for any filter.

    Its likelihood assumes Gaussian noise; residuals of angles are wrapped. ``hf.models.from_functions`` is another name of
    this class.

    Parameters
    ----------
    f : callable
        Maps states (n, d), particles first, to the next ones, without their noise. It may take ``dt``, ``control`` and
        ``step``, by name. What it is given is read-only.
    h : callable or None
        Maps states (n, d) to their mean observations (n, k), or (n,) if k is 1. It may take ``step``, by name. None if only
        sensors observe the state.
    Q : array_like of shape (d, d), or callable
        Covariance of the transition noise: a matrix for every step, whatever its length; or a function of any of ``dt`` and
        ``step``, by name.
    R : array_like of shape (k, k), or callable, or None
        Covariance of the observation noise: a matrix, a function of ``step``, or a function of states, (n, d) -> (n, k, k),
        which may take ``step``, by name.
    initial_mean : array_like of shape (d,)
        Mean of the state at step 0.
    initial_covariance : array_like of shape (d, d)
        Its covariance.
    circular, observation_circular : sequence of int
        Indices of the angle-valued entries of state and observation, in radians.
    vectorised : bool
        True if functions take states (n, d). If False they take one state (d,), as filterpy's do, and are called in a slow
        loop.
    transition_jacobian, observation_jacobian : callable, optional
        Derivatives of `f` and `h`, (n, d) -> (n, d, d) and (n, k, d), which may name the same arguments. Filters that
        linearise take differences without them.

    Examples
    --------
    A pendulum whose horizontal position is observed; the angle is in radians.

    >>> model = hf.models.from_functions(
    ...     f=lambda x, dt: x + dt * np.column_stack([x[:, 1], -9.81 * np.sin(x[:, 0])]),
    ...     h=lambda x: np.sin(x[:, 0]),
    ...     Q=1e-3 * np.eye(2), R=[[0.01]], initial_mean=[0.5, 0.0], initial_covariance=0.1 * np.eye(2), circular=[0],
    ... )
    >>> truth, z = hf.simulate(model, steps=50, dt=0.05, rng=1)
    >>> result = hf.make_filter("auto", model, n_particles=50).run(z, dt=0.05)
    >>> bool(np.std((result.means - truth)[:, 0]) < 0.15)
    True
    """

    def __init__(
        self,
        f: Callable[..., ArrayLike],
        h: Callable[..., ArrayLike] | None,
        Q: ArrayLike | Callable[..., ArrayLike],
        R: ArrayLike | Callable[..., ArrayLike] | None,
        initial_mean: ArrayLike,
        initial_covariance: ArrayLike,
        circular: Sequence[int] = (),
        observation_circular: Sequence[int] = (),
        vectorised: bool = True,
        transition_jacobian: Callable[..., ArrayLike] | None = None,
        observation_jacobian: Callable[..., ArrayLike] | None = None,
    ) -> None:
        check_flags(vectorised=vectorised)
        mean = as_numbers("initial_mean", initial_mean, (None,))
        if mean.ndim != 1:
            raise ValueError(f"initial_mean: expected a vector of d entries, such as [0.0], got shape {mean.shape}")
        mean = as_array("initial_mean", mean, (None,))
        self.dim = len(mean)
        self.initial = GaussianMixture([1.0], mean[None], as_covariance("initial_covariance", initial_covariance, self.dim))
        self.circular = as_dims("circular", circular, self.dim)
        check_both(h=h, R=R)
        self.names_in_errors = {
            "transition_mean": "f",
            "transition_covariance": "Q",
            "observation_mean": "h",
            "observation_covariance": "R",
        }
        self._f = _Function.of("f", f, ("dt", "control", "step"), vectorised)
        if transition_jacobian is not None:
            self._F = _Function.of("transition_jacobian", transition_jacobian, ("dt", "control", "step"), vectorised)
            self.transition_jacobian = self._transition_jacobian
        if observation_jacobian is not None:
            check_both(h=h, observation_jacobian=observation_jacobian)
            self._H = _Function.of("observation_jacobian", observation_jacobian, ("step",), vectorised)
            self.observation_jacobian = self._observation_jacobian
        self._Q = FunctionCovariance.of("Q", Q, ("dt", "step"), self.dim)
        if h is None:
            return
        self._h = _Function.of("h", h, ("step",), vectorised)
        # attributes: a model without h has no such functions, and the covariance takes states only if R does
        self.observation_mean = self._observation_mean
        self._size: int | None = None  # entries of an observation, if R is a matrix
        if callable(R) and _parameters(R) != ["step"]:
            self._R_at = _Function.of("R", R, ("step",), vectorised)
            self.observation_covariance: Any = self._at_states
        else:
            self._R = FunctionCovariance.of("R", R, ("step",))
            self._size = None if callable(R) else len(np.asarray(R))
            self.observation_covariance = self._at_step
        self.observation_circular = as_dims("observation_circular", observation_circular, self._size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(dim={self.dim})"

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> ArrayLike:
        """States (n, d) to the mean of the next ones, (n, d)."""
        return self._f.rows(x, self.dim, dt=dt, control=control, step=step)

    def transition_covariance(self, dt: float, step: int) -> ArrayLike:
        """Covariance (d, d) of the transition noise."""
        return self._Q(dt=dt, step=step)

    def _transition_jacobian(self, x: Array, dt: float, control: Any, step: int) -> Array:
        return self._F.matrices(x, self.dim, dt=dt, control=control, step=step)

    def _observation_jacobian(self, x: Array, step: int) -> Array:
        return self._H.matrices(x, None, step=step)

    def _observation_mean(self, x: Array, step: int) -> ArrayLike:
        mean = self._h.rows(x, step=step)
        size = mean.shape[1]
        if self._size not in (None, size):
            raise ValueError(
                f"R: expected shape {(size, size)}, a row for each entry that h returns of a state, got {(self._size,) * 2}"
            )
        return mean

    def _at_step(self, step: int) -> ArrayLike:
        return self._R(step=step)

    def _at_states(self, step: int, x: Array) -> ArrayLike:
        return self._R_at(x, step=step)


from_functions = FunctionModel


def check_both(**pair: Any) -> None:
    """Raise ValueError if only one of two arguments is None."""
    (one, first), (other, second) = pair.items()
    if (first is None) != (second is None):
        missing, given = (one, other) if first is None else (other, one)
        raise ValueError(f"{missing}: expected a value, as {given} is given, got None")


class PicklesFunctions:
    """Base of frozen objects that hold functions; functions that cannot be pickled by name are pickled by their code."""

    def __reduce__(self) -> tuple[Any, ...]:
        by_name = copyreg.__newobj__, (type(self),), vars(self)  # type: ignore[attr-defined]
        if _pickling.get():
            return by_name
        token = _pickling.set(True)
        try:
            with suppress(Exception):
                pickle.dumps(self)
                return by_name
            return pickle.loads, (cloudpickle().dumps(self),)
        except Exception as error:
            raise pickle.PicklingError(
                f"{short_repr(self)}: expected functions that can be pickled, got {short_repr(error, 200)}; "
                "define them at the top of a module"
            ) from error
        finally:
            _pickling.reset(token)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self


def cloudpickle() -> Any:
    """Return the module cloudpickle, or the copy of it in joblib."""
    try:
        import cloudpickle
    except ImportError:
        from joblib.externals import cloudpickle
    return cloudpickle


@dataclass(frozen=True)
class _Function(PicklesFunctions):
    """A function of states, called with the other arguments that it names."""

    name: str
    function: Callable[..., ArrayLike]
    names: tuple[str, ...]
    vectorised: bool

    @classmethod
    def of(cls, name: str, function: Any, known: Sequence[str], vectorised: bool) -> _Function:
        if not callable(function):
            raise TypeError(f"{name}: expected a function of states, got {short_repr(function)}")
        first, *others = _parameters(function) or [""]
        wrong = [other for other in others if other not in known]
        if not first or wrong:
            wanted = f"the states, first, and of any of {', '.join(known)}"
            raise TypeError(
                f"{name}: expected a function of {wanted}, got one of ({', '.join([first, *others])}); give others a default"
            )
        return cls(name, function, tuple(others), vectorised)

    def __call__(self, x: Array, **given: Any) -> ArrayLike:
        given = dict(zip(self.names, map(given.__getitem__, self.names), strict=True))
        if not self.vectorised:
            return np.array([np.atleast_1d(self.function(row, **given)) for row in x])
        try:
            return self.function(x, **given)
        except Exception as error:
            error.add_note(
                f"{self.name}: called with states of shape {x.shape}, particles first; a function of one state needs "
                "vectorised=False"
            )
            raise

    def rows(self, x: Array, dim: int | None = None, **given: Any) -> Array:
        """Return the values at states (n, d) as rows (n, dim); a vector (n,) stands for rows of one entry."""
        shape = len(x), dim
        array = as_numbers(self.name, self(x, **given), shape)
        rows = array[:, None] if array.shape == shape[:1] and dim in (None, 1) else array
        if rows.ndim != 2 or len(rows) != len(x) or dim not in (None, rows.shape[1]):
            hint = "; a function of one state needs vectorised=False" if self.vectorised else ""
            raise ValueError(
                f"{self.name}: expected a row for each state, shape {shape_text(shape)}, got {array.shape}{hint}"
            )
        return rows

    def matrices(self, x: Array, rows: int | None, **given: Any) -> Array:
        """Return the Jacobians at states (n, d), (n, rows, d)."""
        return as_array(self.name, self(read_only(x), **given), (len(x), rows, x.shape[1]))


@dataclass(frozen=True)
class FunctionCovariance(PicklesFunctions):
    """A covariance matrix, or a function of the arguments that it names."""

    given: ArrayLike | Callable[..., ArrayLike]
    names: tuple[str, ...]

    @classmethod
    def of(cls, name: str, given: Any, known: Sequence[str], dim: int | None = None) -> FunctionCovariance:
        """Check what is given as a covariance."""
        if not callable(given):
            if np.ndim(as_numbers(name, given, (dim, dim))) != 2:
                raise ValueError(f"{name}: expected a matrix, such as [[0.1]], or a function, got shape {np.shape(given)}")
            return cls(as_covariance(name, given, dim), ())
        names = tuple(_parameters(given))
        if not set(names) <= set(known):
            raise TypeError(
                f"{name}: expected a matrix, or a function of any of {', '.join(known)}, got one of ({', '.join(names)})"
            )
        return cls(given, names)

    def __call__(self, **given: Any) -> ArrayLike:
        """Return the matrix."""
        if not callable(self.given):
            return self.given
        return self.given(**{name: given[name] for name in self.names})


def _parameters(function: Callable[..., Any]) -> list[str]:
    """Return the names of the required arguments of a function, and any of ``dt``, ``control`` and ``step``.

    A function without a signature takes states.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ["x"]
    named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return [p.name for p in named if p.default is p.empty or p.name in ("dt", "control", "step")]
