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

    The likelihood is that of Gaussian noise, whose residuals of angles are wrapped, unless you give `log_likelihood`; the
    transition noise is additive, unless you give `noise_dim`. ``hf.models.from_functions`` is another name of this class.

    Parameters
    ----------
    f : callable
        Maps states (n, d), particles first, to the next ones, without their noise. It may take ``dt``, ``control`` and
        ``step``, by name; with `noise_dim` it takes ``noise``, too. Its arguments are read-only.
    h : callable, optional
        Maps states (n, d) to their mean observations (n, k), or (n,) if k is 1. It may take ``step``, by name. None if only
        sensors observe the state, or if there is only a `log_likelihood`.
    Q : array_like of shape (d, d), or callable
        Covariance of the transition noise: a matrix for every step, whatever its length; or a function of any of ``dt`` and
        ``step``, by name. None with `noise_dim`.
    R : array_like of shape (k, k), or callable, optional
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
    log_likelihood : callable, optional
        ``log_likelihood(z, x)``: an observation, always a vector (k,), and states (n, d) -> (n,). It may take ``step``, by
        name. It serves heavy tails, counts and censored readings. With `h` and `R` beside it, weights are exact, and the
        moments guide the particles and serve Kalman filters.
    noise_dim : int, optional
        Number of entries of ``noise``, (n, noise_dim), which `f` then turns into the noise of the next states: N(0, I).
    position_dims : sequence of int
        Indices of dimensions that are positions, for pictures.
    partial_observations : bool
        True if `log_likelihood` leaves out the entries of z that are NaN, as a derived one does.
    feasible : callable, optional
        States (n, d) -> (n,) of truth values: which are possible. The state is known to be so at every step.
    bounds : array_like of shape (d, 2), optional
        Lower and upper limit of each dimension, ``inf`` where there is none, for all filters; Kalman filters take no
        `feasible`.

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

    A rate that is always positive, as its noise is a factor, and counts of it.

    >>> model = hf.models.from_functions(
    ...     f=lambda x, noise: x * np.exp(0.1 * noise), noise_dim=1,
    ...     log_likelihood=lambda z, x: z[0] * np.log(x[:, 0]) - x[:, 0], initial_mean=[20], initial_covariance=[[1]],
    ... )
    >>> result = hf.make_filter("auto", model, n_particles=50).run([18, 23, 30])
    >>> bool(result.means[-1] > 20)
    True
    """

    names_in_errors: ClassVar = {
        "transition_mean": "f",
        "transition_covariance": "Q",
        "transition": "f",
        "observation_mean": "h",
        "observation_covariance": "R",
    }

    def __init__(
        self,
        f: _checks.UserFunction,
        h: _checks.UserFunction | None = None,
        Q: ArrayLike | _checks.UserFunction | None = None,
        R: ArrayLike | _checks.UserFunction | None = None,
        initial_mean: ArrayLike | None = None,
        initial_covariance: ArrayLike | None = None,
        circular: Sequence[int] = (),
        observation_circular: Sequence[int] = (),
        vectorised: bool = True,
        transition_jacobian: _checks.UserFunction | None = None,
        observation_jacobian: _checks.UserFunction | None = None,
        log_likelihood: _checks.UserFunction | None = None,
        noise_dim: int | None = None,
        position_dims: Sequence[int] = (),
        partial_observations: bool = False,
        feasible: _checks.UserFunction | None = None,
        bounds: ArrayLike | None = None,
    ) -> None:
        _checks.check_flags(vectorised=vectorised, partial_observations=partial_observations)
        mean = _checks.as_array("initial_mean", initial_mean, (None,))  # type: ignore[arg-type]
        self.dim = len(mean)
        covariance = _checks.as_covariance("initial_covariance", initial_covariance, self.dim)  # type: ignore[arg-type]
        self.initial = GaussianMixture([1.0], mean[None], covariance)
        self.circular = _checks.as_dims("circular", circular, self.dim)
        self.position_dims = _checks.as_dims("position_dims", position_dims, self.dim)
        if bounds is not None:
            self.bounds = _checks.as_bounds("bounds", bounds, self.dim)
        if feasible is not None:
            self.feasible = _Function("feasible", feasible, (), 1, vectorised)
        check_both(h=h, R=R)
        transition = ("dt", "control", "step"), self.dim, vectorised
        observation = ("step",), None, vectorised
        # Set as attributes, not defined as methods: a function that the user did not give must not exist.
        # converted models, whose functions are objects, count time in steps
        self.takes_dt = inspect.isfunction(f) and "dt" in _parameters(f)
        if noise_dim is None:
            self.transition_mean = _Function("f", f, *transition).rows
            self.transition_covariance = self.Q = FunctionCovariance(
                "Q", Q, ("dt", "step"), self.dim
            )
        else:
            self.noise_dim = _checks.check_count("noise_dim", noise_dim)
            arguments = ("noise", *transition[0])
            function = _Function("f", f, arguments, self.dim, vectorised)
            if "noise" not in function.names or Q is not None or transition_jacobian is not None:
                raise ValueError(
                    "noise_dim: expected f(x, noise), and neither Q nor transition_jacobian beside it, got f of "
                    f"({', '.join(_parameters(f))})"
                )
            self.transition = function.rows
        if log_likelihood is not None:
            function = _Function(
                "log_likelihood",
                log_likelihood,
                ("step",),
                1,
                vectorised,
                first=("an observation", "the states"),
            )
            self.log_likelihood: Any = function.of_observation
            self.partial_observations = partial_observations
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
    first: tuple[str, ...] = ("the states",)  # arguments by position
    names: list[str] = field(init=False)

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(
                f"{self.name}: expected a function of states, got {_checks.short_repr(self.function)}"
            )
        parameters = _parameters(self.function)
        count = len(self.first)
        if len(parameters) < count or not set(parameters[count:]) <= set(self.arguments):
            raise TypeError(
                f"{self.name}: expected a function of {' and '.join(self.first)}, first, and of any of "
                f"{', '.join(self.arguments)}, got one of ({', '.join(parameters)}); give others a default, or "
                "noise_dim for noise"
            )
        assign(self, names=parameters[count:])

    def __call__(self, x: Array, *values: Any, before: tuple[Any, ...] = ()) -> ArrayLike:
        named = _named(self, values)
        try:
            if self.vectorised:
                return self.function(*before, x, **named)
            rows = []
            for i, row in enumerate(x):
                # the noise has a row for each state
                of_row = {k: value[i] if k == "noise" else value for k, value in named.items()}
                rows.append(np.atleast_1d(self.function(*before, row, **of_row)))
            return np.array(rows)
        except Exception as error:
            advice = (
                self._advice(x, named, before)
                if self.vectorised
                else "; one by one, as vectorised=False"
            )
            error.add_note(
                f"{self.name}: called with states of shape {x.shape}{advice or returned.AXES}"
            )
            raise

    def _advice(self, x: Array, named: dict[str, Any], before: tuple[Any, ...] = ()) -> str:
        """Return what mends a function that was written for one state (d,), or for states (d, n); it is tried on both."""
        with suppress(Exception):
            if self.size in (None, np.size(self.function(*before, x[0], **named))):
                return "; it takes one state: write x[:, 0] for x[0] and x @ F.T for F @ x, or give vectorised=False"
        with suppress(Exception):
            if np.shape(self.function(*before, x.T, **named))[1] == len(x):
                return "; it takes states (d, n): transpose what it takes and what it returns"
        return ""

    def rows(self, x: Array, *values: Any, before: tuple[Any, ...] = ()) -> Array:
        """Return the values at states (n, d) as rows (n, size); a vector (n,) stands for rows of one entry."""
        shape = len(x), self.size
        array = _checks.as_numbers(self.name, self(x, *values, before=before), shape)
        rows = array[:, None] if array.shape == shape[:1] and self.size in (None, 1) else array
        if not _checks.fits(rows.shape, shape):
            advice = self._advice(x, _named(self, values), before) or returned.AXES
            raise ValueError(
                f"{self.name}: expected a row for each state, shape {_checks.shape_text(shape)}, got {array.shape}{advice}"
            )
        return rows

    def of_observation(self, z: Array, x: Array, step: int) -> Array:
        """Return the values at an observation (k,) and states (n, d), (n,), as a likelihood is called."""
        return self.rows(x, step, before=(z,))[:, 0]

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
    """Return the names of the required arguments of a function, and any of ``dt``, ``control``, ``step`` and ``noise``.

    A function without a signature is taken to be one of states alone.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ["x"]
    # what comes by *args or **kwargs has no name to be asked for
    named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    by_name = ("dt", "control", "step", "noise")
    return [p.name for p in named if p.default is p.empty or p.name in by_name]
