"""The model contract: the names that filters use of a model, and the functions that call and check them.

A model is any object with vectorised functions; it needs no base class, and only what the chosen filter uses must exist.
Arrays are (n, d), particles first. `step` counts from 1: the initial state is step 0, and so is an observation of it.
Functions get read-only arrays. An observation z is a vector (k,), even of one number. The same arguments give the same
value, except where an `rng` is among them.

=========================================================  ============================================================
``dim``                                                    dimension d of the state
``circular``                                               indices of angle-valued dimensions, in radians (optional)
``initial``                                                a `GaussianMixture`, or an object with ``sample(n, rng)``
``feasible(x)``                                            (n, d) -> (n,) of truth values: possible states (optional)
``bounds``                                                 limits (d, 2) of each dimension, which may be infinite (optional)
``transition_mean(x, dt, control, step)``                  (n, d) -> (n, d), with ``transition_covariance(dt, step)`` (d, d)
``transition(x, noise, dt, control, step)``                if noise (n, ``noise_dim``), from N(0, I), is not additive
``sample_transition(x, rng, dt, control, step)``           if the transition can only be simulated
``transition_log_density(x_next, x, dt, control, step)``   (m, d), (n, d) -> (m, n), for a smoother (optional)
``log_likelihood(z, x, step)``                             (n, d) -> (n,); without it, that of Gaussian noise by the next two
``partial_observations``                                   True if ``log_likelihood`` leaves out NaN entries of z (optional)
``observation_mean(x, step)``                              (n, d) -> (n, k), with ``observation_covariance(step)`` (k, k)
``observation_covariance(step, x)``                        (n, d) -> (n, k, k), instead, if it depends on the state
``observation_circular``                                   indices of angle-valued entries of an observation (optional)
``transition_jacobian(x, dt, control, step)``              (n, d) -> (n, d, d), of ``transition_mean`` (optional)
``observation_jacobian(x, step)``                          (n, d) -> (n, k, d), of ``observation_mean`` (optional)
``sample_observation(x, rng, step)``                       (n, d) -> (n, k), to simulate noise that is not Gaussian
``scans``                                                  True if an observation is a scan of detections (optional)
``position_dims``                                          indices of dimensions that are positions, for pictures (optional)
``control(step)``                                          input of a simulated transition to `step` (c,) (optional)
``linear``                                                 dimensions that are linear given the others (optional)
``models``, ``transition_matrix``, ``initial_modes``       modes that the state jumps between; see `JumpMarkov` (optional)
=========================================================  ============================================================
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter._covariances import covariance_factor
from herdfilter.angles import wrap_angles
from herdfilter.models.returned import read_numbers

__all__ = ["require"]

Model = Any  # an object that follows the contract above; checked by `require` at the point of use

# Function of the transition -> its arguments, by position
TRANSITION = {
    "transition_mean": ("x", "dt", "control", "step"),
    "transition_covariance": ("dt", "step"),
    "transition_jacobian": ("x", "dt", "control", "step"),
    "transition": ("x", "noise", "dt", "control", "step"),
    "sample_transition": ("x", "rng", "dt", "control", "step"),
    "transition_log_density": ("x_next", "x", "dt", "control", "step"),
    "control": ("step",),
    "feasible": ("x",),
}
# Name that describes observations -> arguments, by position; None if it is not a function
OBSERVATION = {
    "log_likelihood": ("z", "x", "step"),
    "partial_observations": None,
    "observation_mean": ("x", "step"),
    "observation_covariance": ("step",),
    "observation_circular": None,
    "observation_jacobian": ("x", "step"),
    "sample_observation": ("x", "rng", "step"),
    "scans": None,
}
# names of a transition with additive Gaussian noise
ADDITIVE = ("transition_mean", "transition_covariance")
# names of a transition that is a function of standard normal noise
FROM_NOISE = ("transition", "noise_dim")
# Names of an observation with a mean and a covariance, as Kalman filters need
OBSERVED = ("observation_mean", "observation_covariance")
# names of a model that jumps between modes
MODES = ("models", "transition_matrix", "initial_modes")


class Wrapper:
    """Base of models around another one, `model`, which has all names of the contract that the wrapper does not have."""

    model: Model
    hidden: Iterable[str] = ()
    """Names that are not looked up in the other model."""
    kind_suffix = ""
    """Text that follows the name of the other model's class in errors."""

    def __getattr__(self, name: str) -> Any:
        # `model` is missing while the object is copied or unpickled
        if name.startswith("_") or name == "model" or name in self.hidden:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.model, name)


def has(model: Model, names: Iterable[str]) -> bool:
    """Return True if a model has all these names."""
    return all(hasattr(model, name) for name in names)


def jumps(model: Model) -> bool:
    """Return True if a model jumps between modes."""
    return has(model, MODES)


def is_observed(model: Model) -> bool:
    """Return True if a model has a likelihood, or one of the two functions from which it is derived."""
    return any(hasattr(model, name) for name in ("log_likelihood", *OBSERVED))


def in_mode(model: Model, mode: int) -> Model:
    """Return the model of one mode of a model that jumps, inside the same wrappers; other models are returned unchanged."""
    if not jumps(model):
        return model
    # a method of a user's wrapper: `__getattr__` would pass one on
    if hasattr(type(model), "in_mode"):
        return model.in_mode(mode)
    # the mode is chosen inside a wrapper, such as WithClutter or a user's dataclass
    if isinstance(model, Wrapper) or (dataclasses.is_dataclass(model) and "model" in vars(model)):
        wrapper: Any = model
        return dataclasses.replace(wrapper, model=in_mode(wrapper.model, mode))
    return model.models[mode]


def kind(model: Model) -> str:
    """Return the name of a model's class, for errors; of a wrapper, that of the model inside."""
    if isinstance(model, Wrapper):
        return kind(model.model) + model.kind_suffix
    return type(model).__name__


def circular_dims(model: Model) -> tuple[int, ...]:
    """Return the indices of the angle-valued dimensions of a model."""
    circular = getattr(model, "circular", None)
    return () if circular is None else tuple(circular)


def position_dims(model: Model) -> tuple[int, ...]:
    """Return the indices of the dimensions that a model calls positions."""
    return tuple(getattr(model, "position_dims", ()))


def limited(model: Model) -> bool:
    """Return True if a model, or one of its modes, limits its states."""
    if jumps(model):
        return any(limited(in_mode(model, mode)) for mode in range(len(model.models)))
    return any(getattr(model, name, None) is not None for name in ("feasible", "bounds"))


def refuse_limits(model: Model, user: str) -> None:
    """Raise TypeError if a model limits its states."""
    if limited(model):
        raise TypeError(
            f"model: {user} needs a state without limits, got {kind(model)} with feasible or bounds; take a particle "
            "filter, or a Kalman filter of one Gaussian with bounds alone"
        )


def has_scans(model: Model) -> bool:
    """Return True if an observation is a scan: any number k of detections, (k, m)."""
    return bool(getattr(model, "scans", False))


def takes_state(model: Model) -> bool:
    """Return True if ``observation_covariance`` names a second argument: the states."""
    return _accepts(model.observation_covariance, 2, by_name=True)


def require(model: Model, user: str, *alternatives: Sequence[str]) -> None:
    """Raise TypeError unless the model has all names of an alternative, and its functions take the contract's arguments.

    Examples
    --------
    >>> from herdfilter.models.contract import require
    >>> try:
    ...     require(hf.models.UNGM(), "my filter", ["transition_log_density"])
    ... except TypeError as error:
    ...     print(error)
    ...
    model: my filter needs transition_log_density; UNGM has no transition_log_density
    """
    if isinstance(model, type):
        raise TypeError(f"model: expected an instance, got {_checks.short_repr(model)}")
    met = [names for names in alternatives if has(model, names)]
    if not met:
        if jumps(model):
            raise TypeError(
                f"model: {user} needs a model without modes, got {kind(model)}, which jumps between {len(model.models)}; "
                "take ParticleFilter, InteractingMultipleModel or MixtureKalmanFilter"
            )
        needed = ", or ".join(" and ".join(names) for names in alternatives)
        missing = [name for name in alternatives[0] if not hasattr(model, name)]
        raise TypeError(
            f"model: {user} needs {needed}; {kind(model)} has no {' and no '.join(missing)}"
        )
    # signatures of all alternatives that the model has: the caller may use any of them
    for name in dict.fromkeys(name for names in met for name in names):
        _check_signature(model, name)
        jacobian = name.replace("_mean", "_jacobian")
        if jacobian != name and getattr(model, jacobian, None) is not None:
            _check_signature(model, jacobian)


def _check_signature(model: Model, name: str) -> None:
    """Raise TypeError unless the model's function of this name takes the arguments of the contract."""
    arguments = TRANSITION.get(name) or OBSERVATION.get(name)
    if arguments is None:
        return
    function = getattr(model, name)
    expected = f"model.{name}: expected a function of ({', '.join(arguments)})"
    if name == "observation_covariance":
        expected += " or (step, x)"
    if not callable(function):
        raise TypeError(f"{expected}, got {_checks.short_repr(function)}")
    of_state = name == "observation_covariance" and takes_state(model)
    if not of_state and not _accepts(function, len(arguments)):
        raise TypeError(f"{expected}, got {inspect.signature(function)} of {type(model).__name__}")


def _accepts(function: Any, count: int, by_name: bool = False) -> bool:
    """Return True if a function takes this number of arguments by position; `by_name`: and has a name for each."""
    # the function behind a method, which all models of a class share, takes the model first
    is_method = hasattr(function, "__func__")
    function = getattr(function, "__func__", function)
    try:
        return _binds(function, count + is_method, by_name)
    except TypeError:  # a callable object without a hash, such as a frozen dataclass of arrays
        return _binds.__wrapped__(function, count + is_method, by_name)


@lru_cache(maxsize=512)
def _binds(function: Any, count: int, by_name: bool) -> bool:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # it has none, as a function written in C
        return not by_name
    try:
        bound = signature.bind(*range(count))
    except TypeError:
        return False
    # arguments without a name of their own are in one tuple
    return not by_name or [*bound.arguments.values()] == [*range(count)]


def require_likelihood(model: Model, user: str) -> None:
    """Raise TypeError unless a model, or each of its modes, has a likelihood or the functions that it is derived from."""
    if jumps(model):
        for mode in range(len(model.models)):
            require_likelihood(in_mode(model, mode), user)
        return
    alternatives = [("log_likelihood",), OBSERVED]
    # a likelihood of the model's own is used, whatever else it has
    require(model, user, *alternatives[: 1 if hasattr(model, "log_likelihood") else 2])


def require_constant_noise(model: Model, user: str) -> None:
    """Raise TypeError if the model's observation covariance depends on the state."""
    if takes_state(model):
        raise TypeError(
            f"model: {user} needs observation_covariance(step), the same for all states; that of "
            f"{kind(model)} also takes the states"
        )


# Gaussian noise


def correlated(white: Array, matrices: Array) -> Array:
    """Return standard normal rows (n, k) correlated to have covariances (n, k, k), or (1, k, k) shared by all."""
    factors = covariance_factor(matrices)
    if len(factors) == 1:
        return white @ factors[0].T
    return (factors @ white[:, :, None])[:, :, 0]


def gaussian_log_density(residuals: Array, covariances: Array, step: int) -> Array:
    """Return the log-density of residuals (n, k) under N(0, S), (n,), with S (n, k, k), or (1, k, k) shared by all.

    Entries that are NaN are missing from the observation: the density is the marginal one of the others. Raises ValueError
    if a covariance is singular, as there is no density then.
    """
    missing = np.isnan(residuals[0])
    if missing.any():
        observed = np.flatnonzero(~missing)
        residuals = residuals[:, observed]
        covariances = covariances[:, observed[:, None], observed]
    k = residuals.shape[1]
    try:
        if len(covariances) == 1:
            # one covariance, probably that of the step before: its inverse root is cached
            whitening, log_root = inverse_root(covariances.tobytes(), k)
            white = residuals @ whitening.T
        else:
            roots = np.linalg.cholesky(covariances)
            log_root = -np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
            white = np.linalg.solve(roots, residuals[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        raise ValueError(
            "observation_covariance: the derived likelihood needs a positive definite R, got a singular "
            f"one from the model at step {step}; give the model a log_likelihood of its own, or take a Kalman filter"
        ) from None
    # a square overflows only where the density is zero anyway
    with np.errstate(over="ignore"):
        squares = np.einsum("ij,ij->i", white, white)
        return log_root - 0.5 * (squares + k * math.log(2 * math.pi))


@lru_cache(maxsize=32)
def inverse_root(data: bytes, k: int) -> tuple[Array, float]:
    """Return W with ``W.T @ W`` the inverse of a covariance, and log|W|; cached by the bytes of the covariance."""
    root = np.linalg.cholesky(np.frombuffer(data).reshape(k, k))
    return _checks.read_only(np.linalg.inv(root)), -float(np.log(np.diagonal(root)).sum())


# Functions of a Gaussian variable, and their Jacobians if the model has none


class VectorFunction(NamedTuple):
    """A function (n, m) -> (n, k) of a Gaussian variable, with its Jacobian (n, k, m) if that is known.

    ``circular(k)`` returns the indices of angles among the k values; `angles` are those among the m entries of the variable.
    """

    values: _checks.RowFunction
    circular: Callable[[int], tuple[int, ...]] = lambda size: ()
    jacobian: Callable[[Array], Any] | None = None
    angles: tuple[int, ...] = ()

    def at(self, x: Array) -> Array:
        """Return the values at sets of points, (K, p, m) -> (K, p, k)."""
        return self.values(x.reshape(-1, x.shape[-1])).reshape(*x.shape[:2], -1)


LEAST_SPREAD = 1e-12
"""Standard deviations below it, relative to the mean, are too small for differences: rounding leaves them no digits."""


def central_differences(function: VectorFunction, means: Array, sd: Array) -> tuple[Array, Array]:
    """Return the value (K, k) and the Jacobian (K, k, m) at each mean (K, m), by central differences.

    The step h balances truncation, of the order h^2, with rounding, eps / h, for a function that varies on the scale of the
    standard deviation, (K, m) or (1, m). A dimension without spread gets 1/1000 of its mean as its scale.
    """
    m = means.shape[1]
    size = np.abs(means)
    scale = np.where(sd > LEAST_SPREAD * size, sd, 1e-3 * size)
    scale[scale == 0] = 1.0
    h = scale * np.cbrt(np.finfo(float).eps * np.maximum(1.0, size / scale))
    steps = h[:, :, None] * np.eye(m)
    # all points of all means in one call: the means, m points above and m points below
    offsets = np.concatenate([np.zeros_like(steps[:, :1]), steps, -steps], axis=1)
    y = function.at(means[:, None] + offsets)
    rise = wrap_angles(y[:, 1 : m + 1] - y[:, m + 1 :], function.circular(y.shape[-1]))
    return y[:, 0], (rise / (2 * h[:, :, None])).transpose(0, 2, 1)


def linear_slopes(
    function: VectorFunction, x: Array, covariances: Array, dims: Array
) -> tuple[Array, Array]:
    """Return values (n, k) at states (n, d), and slopes (n, k, l) along linear dimensions (l,).

    Slopes are (1, k, l) if they are the same at all states. Without a Jacobian they are differences over one standard
    deviation, from covariances (n, d, d) or (1, d, d).
    """
    if function.jacobian is not None:
        values = function.values(x)
        rounding = 0.0
        shape = (*values.shape, x.shape[1])
        slopes = read_numbers("jacobian", function.jacobian(x), shape, 0)[:, :, dims]
    else:
        # the function is linear in these dimensions: a long step loses nothing to curvature, and little to rounding
        sd = np.sqrt(np.maximum(covariances[:, dims, dims], 0.0))
        sizes = np.maximum(sd, 1e-3 * np.abs(x[:, dims]))
        sizes[sizes == 0] = 1.0
        points = np.repeat(x[:, None], 1 + len(dims), axis=1)
        points[:, 1 + np.arange(len(dims)), dims] += sizes
        y = function.at(points)
        rise = wrap_angles(y[:, 1:] - y[:, :1], function.circular(y.shape[-1])) / sizes[:, :, None]
        values = y[:, 0]
        slopes = rise.transpose(0, 2, 1)
        rounding = 1e-12 * np.abs(rise[0]).max()
    alike = (np.abs(slopes - slopes[0]) <= rounding).all()
    return values, slopes[:1] if alike else slopes
