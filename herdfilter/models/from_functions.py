"""A model made of functions, without a class."""

from __future__ import annotations

import copyreg
import inspect
import pickle
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter.mixture import GaussianMixture
from herdfilter.models import returned
from herdfilter.models.parts import assign

# True while cloudpickle is at work on an object with functions: objects inside it, and itself, go into the same pickle
_pickling = ContextVar("_pickling", default=False)


class FunctionModel:
    """The model :math:`x_k = f(x_{k-1}) + N(0, Q)`, :math:`z_k = h(x_k) + N(0, R)` of functions, for any filter.

    The likelihood is that of Gaussian noise; residuals of angles are wrapped. ``hf.models.from_functions`` is another name
    of this class.

    Parameters
    ----------
    f : callable
        Maps states (n, d), particles first, to the next ones, without their noise. It may take ``dt``, ``control`` and
        ``step``, by name. Its arguments are read-only.
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

    names_in_errors: ClassVar = {
        "transition_mean": "f",
        "transition_covariance": "Q",
        "observation_mean": "h",
        "observation_covariance": "R",
    }

    def __init__(
        self,
        f: _checks.UserFunction,
        h: _checks.UserFunction | None,
        Q: ArrayLike | _checks.UserFunction,
        R: ArrayLike | _checks.UserFunction | None,
        initial_mean: ArrayLike,
        initial_covariance: ArrayLike,
        circular: Sequence[int] = (),
        observation_circular: Sequence[int] = (),
        vectorised: bool = True,
        transition_jacobian: _checks.UserFunction | None = None,
        observation_jacobian: _checks.UserFunction | None = None,
    ) -> None:
        _checks.check_flags(vectorised=vectorised)
        mean = _checks.as_array("initial_mean", initial_mean, (None,))
        self.dim = len(mean)
        covariance = _checks.as_covariance("initial_covariance", initial_covariance, self.dim)
        self.initial = GaussianMixture([1.0], mean[None], covariance)
        self.circular = _checks.as_dims("circular", circular, self.dim)
        check_both(h=h, R=R)
        transition = ("dt", "control", "step"), self.dim, vectorised
        observation = ("step",), None, vectorised
        # Set as attributes, not defined as methods: a function that the user did not give must not exist.
        self.transition_mean = _Function("f", f, *transition).rows
        # converted models, whose functions are objects, count time in steps
        self.takes_dt = inspect.isfunction(f) and "dt" in _parameters(f)
        self.transition_covariance = self.Q = FunctionCovariance("Q", Q, ("dt", "step"), self.dim)
        if transition_jacobian is not None:
            function = _Function("transition_jacobian", transition_jacobian, *transition)
            self.transition_jacobian = function.matrices
        if observation_jacobian is not None:
            check_both(h=h, observation_jacobian=observation_jacobian)
            function = _Function("observation_jacobian", observation_jacobian, *observation)
            self.observation_jacobian = function.matrices
        if h is None:
            return
        self.observation_mean = _Function("h", h, *observation).rows
        # an R of the step alone is one matrix for all states
        if callable(R) and _parameters(R) != ["step"]:
            self.observation_covariance: Any = _Function("R", R, *observation).at_step
        else:
            self.observation_covariance = self.R = FunctionCovariance("R", R, ("step",))
        size = None if callable(R) else len(np.asarray(R))
        self.observation_circular = _checks.as_dims(
            "observation_circular", observation_circular, size
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(dim={self.dim})"


from_functions = FunctionModel


def check_both(**arguments: Any) -> None:
    """Raise ValueError if some but not all of the arguments are None."""
    missing = [name for name, value in arguments.items() if value is None]
    present = [name for name in arguments if name not in missing]
    if missing and present:
        raise ValueError(f"{missing[0]}: expected a value, as {present[0]} is given, got None")


class PicklesFunctions:
    """Base of frozen objects that hold functions; functions that cannot be pickled by name are pickled by their code."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Inside cloudpickle the fields are pickled as usual: the functions among them by their code.
        if _pickling.get():
            return copyreg.__newobj__, (type(self),), vars(self)  # type: ignore[attr-defined]
        token = _pickling.set(True)
        try:
            return pickle.loads, (cloudpickle().dumps(self),)
        except Exception as error:
            raise pickle.PicklingError(
                f"{_checks.short_repr(self)}: expected functions that can be pickled, got {_checks.short_repr(error, 200)}; "
                "define them at the top of a module"
            ) from error
        finally:
            _pickling.reset(token)

    # Frozen, and some functions cannot be copied: a copy is the object itself.
    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self


def cloudpickle() -> Any:
    """Return the module cloudpickle, or the copy of it in joblib, where it has one."""
    try:
        import cloudpickle
    except ImportError:
        from joblib.externals import cloudpickle
    return cloudpickle


@dataclass(frozen=True, eq=False)
class _Function(PicklesFunctions):
    """A function of states that may also take other arguments of the contract, by name; called with all by position."""

    name: str
    function: _checks.UserFunction
    arguments: tuple[str, ...]  # beside the states, in the order of the contract
    size: int | None  # entries of a row, if known
    vectorised: bool

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(
                f"{self.name}: expected a function of states, got {_checks.short_repr(self.function)}"
            )
        parameters = _parameters(self.function)
        if not parameters or not set(parameters[1:]) <= set(self.arguments):
            raise TypeError(
                f"{self.name}: expected a function of the states, first, and of any of {', '.join(self.arguments)}, got one "
                f"of ({', '.join(parameters)}); give others a default"
            )
        assign(self, names=parameters[1:])

    def __call__(self, x: Array, *values: Any) -> ArrayLike:
        named = _named(self, values)
        try:
            if not self.vectorised:
                return np.array([np.atleast_1d(self.function(row, **named)) for row in x])
            return self.function(x, **named)
        except Exception as error:
            advice = (
                self._advice(x, named) if self.vectorised else "; one by one, as vectorised=False"
            )
            error.add_note(
                f"{self.name}: called with states of shape {x.shape}{advice or returned.AXES}"
            )
            raise

    def _advice(self, x: Array, named: dict[str, Any]) -> str:
        """Return what mends a function that was written for one state (d,), or for states (d, n); it is tried on both."""
        with suppress(Exception):
            if self.size in (None, np.size(self.function(x[0], **named))):
                return "; it takes one state: write x[:, 0] for x[0] and x @ F.T for F @ x, or give vectorised=False"
        with suppress(Exception):
            if np.shape(self.function(x.T, **named))[1] == len(x):
                return "; it takes states (d, n): transpose what it takes and what it returns"
        return ""

    def rows(self, x: Array, *values: Any) -> Array:
        """Return the values at states (n, d) as rows (n, size); a vector (n,) stands for rows of one entry."""
        shape = len(x), self.size
        array = _checks.as_numbers(self.name, self(x, *values), shape)
        rows = array[:, None] if array.shape == shape[:1] and self.size in (None, 1) else array
        if not _checks.fits(rows.shape, shape):
            advice = self._advice(x, _named(self, values)) or returned.AXES
            raise ValueError(
                f"{self.name}: expected a row for each state, shape {_checks.shape_text(shape)}, got {array.shape}{advice}"
            )
        return rows

    def at_step(self, step: int, x: Array) -> ArrayLike:
        """Return the values at states (n, d), as an observation covariance is called."""
        return self(x, step)

    def matrices(self, x: Array, *values: Any) -> Array:
        """Return the Jacobians at states (n, d), (n, size, d)."""
        return _checks.as_array(
            self.name, self(_checks.read_only(x), *values), (len(x), self.size, x.shape[1])
        )


@dataclass(frozen=True, eq=False)
class FunctionCovariance(PicklesFunctions):
    """A covariance matrix, or a function that may take arguments of the contract, by name; called with all by position."""

    name: str
    value: Any  # the matrix, or the function
    arguments: tuple[str, ...]
    dim: int | None = None
    names: tuple[str, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        if callable(self.value):
            assign(self, names=tuple(_parameters(self.value)))
            if not set(self.names) <= set(self.arguments):
                raise TypeError(
                    f"{self.name}: expected a matrix, or a function of any of {', '.join(self.arguments)}, got one of "
                    f"({', '.join(self.names)})"
                )
        elif np.ndim(self.value) == 2:
            assign(self, value=_checks.as_covariance(self.name, self.value, self.dim))
        else:
            raise ValueError(
                f"{self.name}: expected a matrix, such as [[0.1]], or a function, got shape {np.shape(self.value)}"
            )

    def __call__(self, *values: Any) -> ArrayLike:
        """Return the matrix, given the values of the arguments."""
        return self.value(**_named(self, values)) if callable(self.value) else self.value


def _named(function: Any, values: Sequence[Any]) -> dict[str, Any]:
    """Return those of the arguments of the contract that a function takes, by name."""
    pairs = zip(function.arguments, values, strict=True)
    return {name: value for name, value in pairs if name in function.names}


def _parameters(function: Callable[..., Any]) -> list[str]:
    """Return the names of the required arguments of a function, and any of ``dt``, ``control`` and ``step``.

    A function without a signature is taken to be one of states alone.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ["x"]
    # what comes by *args or **kwargs has no name to be asked for
    named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return [p.name for p in named if p.default is p.empty or p.name in ("dt", "control", "step")]
