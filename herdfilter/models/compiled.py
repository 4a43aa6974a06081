"""A model made of functions of ONE state, compiled: every filter takes it, and some run in one loop."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cache
from typing import Any

import numpy as np
from numba import types
from numpy.typing import ArrayLike

from herdfilter import _checks
from herdfilter._checks import Array, UserFunction
from herdfilter._jit import njit
from herdfilter._repr import fields_in_line
from herdfilter.angles import wrap_angles
from herdfilter.models import parts
from herdfilter.models.from_functions import FunctionCovariance, FunctionModel, PicklesFunctions
from herdfilter.models.trial import PROBES

_ROWS = types.Array(types.float64, 2, "C")
_VECTOR = types.Array(types.float64, 1, "C")
SIGNATURE = types.void(_ROWS, _ROWS, types.float64, _VECTOR, types.int64, _VECTOR, _ROWS)
"""Signature of every compiled function of states: x (n, d), z (1, k), dt, control, step, parameters, values (n, k)."""


_ARGUMENTS = {
    "x": "x[i]",
    "z": "z[0]",
    "out": "out[i]",
    "dt": "dt",
    "control": "control",
    "step": "step",
    "parameters": "parameters",
}
"""Argument that a function of one state may name -> the expression that is passed for state i."""


@parts.frozen
class CompiledFunction(PicklesFunctions):
    """A compiled function of one state, called with states (n, d); it returns rows (n, size).

    It may be the mean of a `Sensor`, whose readings then take part in the compiled loop. Compiled code does not notice an
    index out of range, so the function is first run in Python, at the states of its first call and beyond. Code that is
    compiled with ``NUMBA_BOUNDSCHECK=1`` in the environment does notice.

    Parameters
    ----------
    function : callable
        A function such as those of `CompiledModel`.
    size : int
        Number of entries that it writes.
    parameters : array_like of shape (p,)
        Numbers that the function may take.
    name : str
        Its name in errors.

    Examples
    --------
    The range from a beacon, whose position is a parameter: a beacon elsewhere costs no compilation.

    >>> def distance(x, parameters, out):
    ...     out[0] = np.hypot(x[0] - parameters[0], x[1] - parameters[1])
    ...
    >>> beacons = [hf.models.CompiledFunction(distance, 1, position) for position in ([0.0, 0.0], [6.0, 8.0])]
    >>> [beacon(np.array([[3.0, 4.0], [0.0, 8.0]])).tolist() for beacon in beacons]
    [[[5.0], [8.0]], [[5.0], [6.0]]]
    """

    function: Callable[..., Any]
    size: int
    parameters: Any = ()
    name: str = "function"
    arguments: tuple[str, ...] = field(init=False)  # of the function of one state

    __repr__ = fields_in_line

    def __post_init__(self) -> None:
        parts.assign(self, size=_checks.check_count("size", self.size))
        parameters = np.array(_checks.as_array("parameters", self.parameters, (None,)))
        plain = getattr(self.function, "py_func", self.function)
        if not inspect.isfunction(plain):
            raise TypeError(
                f"{self.name}: expected a function of one state, got {_checks.short_repr(self.function)}"
            )
        arguments = tuple(inspect.signature(plain).parameters)
        parts.assign(self, parameters=parameters, arguments=arguments)
        got = f"got one of ({', '.join(arguments)})"
        if not {"x"} <= set(arguments) <= set(_ARGUMENTS):
            raise TypeError(
                f"{self.name}: expected a function of x and any of {', '.join(_ARGUMENTS)}, by name, {got}"
            )
        if "out" not in arguments and self.size > 1:
            raise TypeError(
                f"{self.name}: expected a function that writes {self.size} entries into its argument out, {got}"
            )
        _ = self.compiled  # compiles now, so that errors are raised here

    @property
    def compiled(self) -> Any:
        """The compiled loop over states, of `SIGNATURE`."""
        return _compiled(self.function, self.arguments, self.name)

    def __call__(self, x: Array, step: int = 1) -> Array:
        """Return the values at states (n, d), (n, size)."""
        return self.rows(x, step=step)

    def rows(
        self, x: Array, dt: float = 1.0, control: Any = None, step: int = 1, z: Array | None = None
    ) -> Array:
        """Return the values at states (n, d), (n, size), for these arguments; z is a row (1, k)."""
        out = np.empty((len(x), self.size))
        # any array will do for a function that takes no z
        observation = out if z is None else plain_array(z)
        loop = self.compiled
        # once for each compiled loop, which functions with other parameters share
        if not hasattr(loop, "checked"):
            self.check(x[:PROBES], observation.size)
        inputs = self.inputs(control)
        loop(plain_array(x), observation, float(dt), inputs, int(step), self.parameters, out)
        return out

    def inputs(self, control: Any) -> Array:
        """Return the control input as a vector, empty if there is none."""
        if control is not None:
            return np.array(_checks.as_numbers("control", control, (None,))).reshape(-1)
        if "control" in self.arguments:
            raise TypeError(
                f"control: expected numbers, as {self.name} takes them, got None; give controls= to run or simulate, "
                "control= to predict"
            )
        return np.empty(0)

    def check(self, x: Array, k: int = 0, circular: Sequence[int] = ()) -> None:
        """Raise ValueError if an index is out of range, an argument besides out is written to, or an entry of out is not.

        The function is run in Python at states (m, d), and up to a hundred times as far from the first of them, on both
        sides.
        """
        # states far from the usual ones, where an index computed from the state may leave its range
        away = x - x[:1] + (np.ptp(x, 0) == 0)  # one unit, if the dimension does not vary
        scales = (1, -1, 10, -10, 100, -100)
        x = wrap_angles(np.vstack([x[:1] + scale * away for scale in scales]), circular)
        function = getattr(self.function, "py_func", self.function)
        arrays = {"z": np.zeros(k), "control": np.ones(x.shape[1]), "parameters": self.parameters}
        inputs: dict[str, Any] = {"dt": 1.0, "step": 1}
        inputs |= {name: _checks.read_only(array) for name, array in arrays.items()}
        for i, state in enumerate(_checks.read_only(x)):
            # called twice; entries of out that stay 2 apart were not written
            outs = np.repeat([[0.734375], [-1.265625]], self.size, axis=1)
            try:
                with np.errstate(all="ignore"):
                    for out in outs:
                        values = inputs | {"x": state, "out": out}
                        function(*map(values.get, self.arguments))
            except IndexError as error:
                # the length of a control input is not known
                if "control" in self.arguments and not i:
                    break
                raise ValueError(
                    f"{self.name}: expected indices in range at the state {state}, got {error}; code that is compiled "
                    "with NUMBA_BOUNDSCHECK=1 in the environment raises this, too"
                ) from None
            except Exception as error:
                # perhaps of Python alone: compiled code divides by zero as NumPy does
                if "read-only" in str(error):
                    raise ValueError(
                        f"{self.name}: expected a function that writes to out alone, got {error}"
                    ) from None
                continue
            unwritten = np.flatnonzero(np.ptp(outs, axis=0) == 2)
            if "out" in self.arguments and len(unwritten):
                raise ValueError(
                    f"{self.name}: expected a function that writes all entries of out, got none at {unwritten.tolist()}"
                )
        self.compiled.checked = True


def plain_array(x: Array) -> Array:
    """Return numbers as compiled code takes them: float64, contiguous and writeable."""
    return np.require(x, np.float64, ["C", "A", "W"])


@cache
def _compiled(function: Any, arguments: tuple[str, ...], name: str) -> Any:
    """Return the loop over states around a function of one state, compiled.

    The loop gets the name and the file of the function, so that numba caches it beside that file for as long as the file
    does not change. A closure is not cached, as the values it encloses are not in the file. Nor is a function with a large
    array among its globals, for which numba would only warn.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    # numba needs one, but code run by exec may have none
    function.__module__ = function.__module__ or "__main__"
    inner: Any = function if hasattr(function, "py_func") else njit(function, **options)
    plain = inner.py_func
    code = plain.__code__
    call = f"function({', '.join(_ARGUMENTS[name] for name in arguments)})"
    body = call if "out" in arguments else f"out[i, 0] = {call}"
    source = f"def rows(x, z, dt, control, step, parameters, out):\n    for i in range(len(x)):\n        {body}\n"
    namespace: dict[str, Any] = {"function": inner, "__name__": plain.__module__}
    exec(compile(source, code.co_filename, "exec"), namespace)
    # Constants and globals are compiled into the code, so they are part of the digest in the name.
    values = [*code.co_consts, *map(plain.__globals__.get, code.co_names)]
    numbers = [
        getattr(value, "tobytes", value.__repr__)()
        for value in values
        if not (callable(value) or inspect.iscode(value))
    ]
    rows = namespace["rows"]
    digest = hashlib.sha256(repr((source, code.co_code, code.co_names, numbers)).encode())
    # numba names its cache file after the file, the name and the line of a function
    rows.__code__ = rows.__code__.replace(co_firstlineno=code.co_firstlineno)
    rows.__qualname__ = f"{plain.__qualname__}-rows-{digest.hexdigest()[:16]}"
    # bytes of the longest array among them
    cached = plain.__closure__ is None and max(map(len, numbers), default=0) <= 10**6
    loop: Any = njit(rows, cache=cached, **options)
    try:
        loop.compile(SIGNATURE)
    except Exception as error:
        text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))  # without the escapes for colours
        lines = [line.strip(" >") for line in text.splitlines()]
        passing = ("Failed in ", "- Resolution", "During:")
        causes = [line for line in lines if line and not line.startswith(passing)]
        returning = "" if "out" in arguments else ", returning a number,"
        # the first cause in the error of numba, and the line after it
        raise TypeError(
            f"{name}: expected a function of one state{returning} that numba compiles, got "
            f"{' '.join([type(error).__name__, *causes[:2]])}"
        ) from None
    loop.disable_compile()  # other types are an error, not a reason to compile again
    return loop


class CompiledModel(FunctionModel):
    """The model :math:`x_k = f(x_{k-1}) + N(0, Q)`, :math:`z_k = h(x_k) + N(0, R)` of compiled functions, for any filter.

    Functions take ONE state (d,) and write their result into ``out``; numba compiles them, together with a loop over
    particles. `ParticleFilter.run` takes a whole series in one compiled call, with the bootstrap proposal and systematic
    resampling, `RankedProposal()` or, without a `log_likelihood`, `AutomaticProposal()`. Estimates are those of the same
    model in NumPy, up to rounding, from the same random numbers.

    Parameters
    ----------
    f : callable
        ``f(x, dt, out)`` writes the mean of the next state into out (d,). It may take any of these arguments, by name:
        ``x``, ``dt``, ``control`` (a vector), ``step``, ``parameters``, ``out``. A function without ``out`` returns the only
        entry. It is plain Python, or made by ``numba.njit``.
    h : callable or None
        ``h(x, out)`` writes the mean observation into out (k,); it may take ``step`` and ``parameters``, too. None if only
        sensors observe the state, or if there is only a `log_likelihood`.
    Q, R, initial_mean, initial_covariance, circular, observation_circular
        As for `FunctionModel`, in plain Python; R is no function of states.
    log_likelihood : callable, optional
        ``log_likelihood(z, x)`` returns a number; it may take ``step`` and ``parameters``, too. Without it, the likelihood
        is that of Gaussian noise.
    parameters : array_like of shape (p,)
        Numbers that the functions may take. A model with other numbers uses the same compiled code, while constants and
        global variables are compiled into a function.

    Examples
    --------
    The growth model, compiled, gives the estimates of the one in NumPy:

    >>> def growth(x, step):
    ...     return x[0] / 2 + 25 * x[0] / (1 + x[0] ** 2) + 8 * np.cos(1.2 * step)
    ...
    >>> quick = hf.models.CompiledModel(growth, lambda x: x[0] ** 2 / 20, [[10]], [[1]], [0], [[5]])
    >>> truth, z = hf.simulate(quick, steps=50, rng=1)
    >>> results = [hf.ParticleFilter(model, 500, rng=0).run(z) for model in (quick, hf.models.UNGM())]
    >>> np.allclose(results[0].means, results[1].means)
    True
    """

    series_engine = "herdfilter.compiled.loop"
    """Module whose `run` takes whole series of a particle filter; the filter imports it for the first series."""

    def __init__(
        self,
        f: Callable[..., Any],
        h: Callable[..., Any] | None,
        Q: ArrayLike | UserFunction,
        R: ArrayLike | UserFunction | None,
        initial_mean: ArrayLike,
        initial_covariance: ArrayLike,
        log_likelihood: Callable[..., float] | None = None,
        circular: Sequence[int] = (),
        observation_circular: Sequence[int] = (),
        parameters: ArrayLike = (),
    ) -> None:
        mean = _checks.as_array("initial_mean", initial_mean, (None,))
        self.f = CompiledFunction(f, len(mean), parameters, "f")
        self.h = None
        self.likelihood = None
        size = 1
        if h is not None and R is not None:
            size = len(np.atleast_1d(FunctionCovariance("R", R, ("step",))(1)))
            self.h = CompiledFunction(h, size, parameters, "h")
        super().__init__(
            self.f.rows, self.h or h, Q, R, mean, initial_covariance, circular, observation_circular
        )
        self.takes_dt = "dt" in self.f.arguments
        if log_likelihood is not None:
            self.likelihood = CompiledFunction(log_likelihood, 1, parameters, "log_likelihood")
            self.log_likelihood = self._log_likelihood
        x = self.initial.sample(PROBES, 0)
        for function in filter(None, (self.f, self.h, self.likelihood)):
            function.check(x, size, self.circular)

    def _log_likelihood(self, z: Array, x: Array, step: int) -> Array:
        return self.likelihood.rows(x, step=step, z=np.reshape(z, (1, -1)))[:, 0]  # type: ignore[union-attr]
