"""The motion and the measurement of a model: which functions it has, found out once, and their checked values.

Filters use these two objects; nothing in the folders above looks up a name in a model.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cached_property, lru_cache
from types import SimpleNamespace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.random import Generator

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter._covariances import covariance_factor, regularised
from herdfilter._repr import summary_repr
from herdfilter.angles import unwrap, wrap, wrap_angles
from herdfilter.mixture import GaussianMixture
from herdfilter.models import contract, returned
from herdfilter.models.contract import Model
from herdfilter.models.evaluations import THREAD, counted


class FactoredCovariance(NamedTuple):
    """A covariance matrix and a factor F of it, ``F @ F.T``, both read-only."""

    matrix: Array
    factor: Array
    full_rank: bool


class Resolved:
    """A part of a model, looked up once; it does not change."""

    def __init__(self, model: Model) -> None:
        self.model = model

    @cached_property
    def modes(self) -> tuple[Self, ...]:
        """The part of the model of each mode; of a model that does not jump, this one."""
        if not contract.jumps(self.model):
            return (self,)
        return tuple(
            type(self)(contract.in_mode(self.model, mode)) for mode in range(len(self.model.models))
        )

    def in_mode(self, mode: int) -> Self:
        """Return this part of the model of a mode; a model that does not jump has only one."""
        return self.modes[mode if len(self.modes) > 1 else 0]


class Motion(Resolved):
    """The transition functions of a model.

    Attributes
    ----------
    model : object
    dim : int
    circular : tuple of int
        Indices of the angle-valued dimensions.
    has_moments : bool
        True if the model has the mean and the covariance of additive Gaussian noise.
    additive : bool
        True if it has these alone, and no function of noise that is not additive.
    has_mean, has_density : bool
        True if it has a ``transition_mean``, a ``transition_log_density``.
    simulated_only : bool
        True if a successor can only be drawn, not computed from its noise.
    """

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.dim = int(model.dim)
        self.circular = contract.circular_dims(model)
        self.has_mean = hasattr(model, "transition_mean")
        self.has_moments = self.has_mean and hasattr(model, "transition_covariance")
        # a function of noise goes before the moments: a rank-deficient model has both
        self._from_noise = hasattr(model, "transition")
        self.additive = self.has_moments and not self._from_noise
        self.simulated_only = not (self.has_moments or self._from_noise)
        if not self._from_noise:
            self.noise_dim = self.dim
        self.has_density = hasattr(model, "transition_log_density")
        self._jacobian = getattr(model, "transition_jacobian", None)

    @cached_property
    def noise_dim(self) -> int:
        """Dimension of the standard normal noise that `propagate` takes."""
        return _checks.check_count("model.noise_dim", self.model.noise_dim)

    @property
    def jacobian(self) -> Any:
        """The function ``transition_jacobian``, or None."""
        return counted(self._jacobian, "transition")

    @cached_property
    def limited(self) -> bool:
        """True if the state has limits."""
        return contract.limited(self.model)

    def inside(self, x: Array, modes: Any = None) -> Any:
        """Return which states (n, d) are within the limits, (n,); each within those of its mode (n,) if the model jumps."""
        inside: Any = np.ones(len(x), dtype=bool)
        if modes is not None:
            for mode in np.unique(modes):
                inside[modes == mode] = self.modes[mode].inside(x[modes == mode])
            return inside
        bounds = getattr(self.model, "bounds", None)
        if bounds is not None:
            lower, upper = np.transpose(bounds)
            inside = ((x >= lower) & (x <= upper)).all(axis=1)
        function = getattr(self.model, "feasible", None)
        if function is not None:
            values = np.asarray(function(_checks.read_only(x)))
            if values.dtype != bool or values.size != len(x):
                raise ValueError(
                    f"feasible: expected {len(x)} truth values from the model, got {values.dtype} of shape {values.shape}"
                )
            inside &= values.ravel()
        return inside

    def copied(self) -> Motion:
        """Return the motion of a copy of the model, unaffected by attributes of the model that are replaced later."""
        try:
            model = copy.copy(self.model)
        except TypeError:  # a model may be a module, which cannot be copied
            names = [name for name in dir(self.model) if name[:2] != "__"]
            model = SimpleNamespace(**{name: getattr(self.model, name) for name in names})
        motion = object.__new__(Motion)
        motion.__dict__.update(self.__dict__, model=model)
        if self._jacobian is not None:
            motion._jacobian = model.transition_jacobian  # bound to the copy
        modes = self.modes
        motion.modes = (motion,) if modes[0] is self else tuple(mode.copied() for mode in modes)
        return motion

    def sample_initial(self, n: int, rng: Generator) -> Array:
        """Draw `n` independent initial states (n, d)."""
        x = returned.read_rows("model.initial", self.model.initial.sample(n, rng), (n, self.dim), 0)
        return wrap_angles(x, self.circular)


class Transition:
    """The transition to the next step: a motion, and the arguments of its functions besides the states.

    Its methods call the model's functions on states x (n, d) and check the results; angles are wrapped where states are
    returned, except those of `mean`. The model's noise covariance is computed once and cached.

    Parameters
    ----------
    model : object or Motion
        A state-space model, see `herdfilter.models.contract`, or its motion.
    dt : float
        Duration, in the model's unit of time.
    control
        Control input.
    step : int
        Index of the step that the transition leads to.

    Attributes
    ----------
    model, dt, control, step
        As given.
    arguments : tuple
        Duration, control and step, as the model's functions take them.
    motion : Motion
        The functions that the model has.
    circular : tuple of int
        Indices of the angle-valued dimensions.
    additive : bool
        True if the transition noise is additive and Gaussian.
    simulated_only : bool
        True if a successor can only be drawn, not computed from its noise.

    Examples
    --------
    What a proposal can ask of the transition to the next step, here over half a second:

    >>> transition = hf.Transition(hf.models.CoordinatedTurn(), dt=0.5)
    >>> x = transition.model.initial.sample(3, np.random.default_rng(0))
    >>> transition.sample(x, np.random.default_rng(0)).shape, transition.noise_dim, transition.additive, transition.circular
    ((3, 5), 5, True, ())
    >>> np.allclose(transition.propagate(x, np.zeros((3, 5))), transition.mean(x))
    True
    >>> np.allclose(transition.factor @ transition.factor.T, transition.covariance)
    True
    """

    def __init__(
        self, model: Model | Motion, dt: float = 1.0, control: Any = None, step: int = 1
    ) -> None:
        self.motion = motion = model if isinstance(model, Motion) else Motion(model)
        self.model = motion.model
        self.dt = dt
        self.control = control
        self.step = step
        self.arguments = (dt, control, step)
        self.circular = motion.circular
        self.additive = motion.additive
        self.simulated_only = motion.simulated_only

    def __repr__(self) -> str:
        return summary_repr(
            self, model=self.model, dt=self.dt, control=self.control, step=self.step
        )

    @property
    def noise_dim(self) -> int:
        """Dimension of the standard normal noise that `propagate` takes."""
        return self.motion.noise_dim

    @cached_property
    def noise(self) -> FactoredCovariance:
        """Covariance of additive transition noise, and a factor of it, both read-only."""
        value = self.model.transition_covariance(self.dt, self.step)
        return read_covariance("transition_covariance", value, self.motion.dim, self.step)

    @property
    def covariance(self) -> Array:
        """Covariance of additive transition noise, (d, d)."""
        return self.noise.matrix.copy()

    def noises(self, x: Array) -> Array:
        """Covariances of additive transition noise at states x, (n, d, d), or (1, d, d) shared by all."""
        return self.noise.matrix[None]

    @property
    def factor(self) -> Array:
        """Factor F of the covariance of additive transition noise, ``F @ F.T``, (d, d); not to be written to."""
        return self.noise.factor

    @cached_property
    def has_density(self) -> bool:
        """True if the covariance of additive transition noise has full rank."""
        return self.noise.full_rank

    def check_density(self, user: str) -> None:
        """Raise ValueError, naming the proposal that needs one, unless additive transition noise has a density."""
        if not self.has_density:
            raise ValueError(
                f"transition_covariance: expected a positive definite matrix, as {user} weights points by transition "
                f"densities, got {self.noise.matrix.tolist()} at step {self.step}"
            )

    def mean(self, x: Array) -> Array:
        """Transition mean of each state, (n, d)."""
        function = self.model.transition_mean
        return rows_of("transition_mean", function, x.shape[1], x, *self.arguments)

    @property
    def function(self) -> contract.VectorFunction:
        """The transition mean as a function of the state, with its Jacobian if the model has one."""
        jacobian = self.motion.jacobian
        slopes = jacobian and (lambda x: jacobian(x, *self.arguments))
        return contract.VectorFunction(self.mean, lambda _: self.circular, slopes, self.circular)

    def propagate(self, x: Array, noise: Array) -> Array:
        """Next states (n, d) of states x under standard normal noise (n, `noise_dim`)."""
        if self.additive:
            root = self.noise.factor
            # for one dimension BLAS is slower
            added = noise * root if len(root) == 1 else noise @ root.T
            next_x: Array = self.mean(x) + added
        else:
            arguments = (_checks.read_only(noise), *self.arguments)
            next_x = rows_of("transition", self.model.transition, x.shape[1], x, *arguments)
        return wrap(next_x, self.circular) if self.circular else next_x

    def propagate_joint(self, joint: Array) -> Array:
        """Next states (n, d) of states and their noise, side by side in (n, d + `noise_dim`)."""
        return self.propagate(joint[:, : self.motion.dim], joint[:, self.motion.dim :])

    def sample(self, x: Array, rng: Generator) -> Array:
        """Draw one successor of each state, (n, d)."""
        if not self.simulated_only:
            return self.propagate(x, rng.standard_normal((len(x), self.motion.noise_dim)))
        function = self.model.sample_transition
        successors = rows_of("sample_transition", function, x.shape[1], x, rng, *self.arguments)
        return self.wrapped(successors)

    def predictive(self, x: Array, weights: Array) -> GaussianMixture:
        r"""Density :math:`\sum_i w_i N(f(x_i), Q)` of the next state, its angles unwrapped about their mean."""
        means = self.mean(x)
        if self.circular:
            means = unwrap(means, weights, self.circular)
        return GaussianMixture.unchecked(weights, means, self.covariance)

    def wrapped(self, x: Array) -> Array:
        """States with their angles in [-pi, pi)."""
        return wrap(x, self.circular) if self.circular else x

    def of(self, model: Model | Motion) -> Transition:
        """Return the same transition by another model, such as that of one mode."""
        return Transition(model, *self.arguments)

    @property
    def modes(self) -> list[Transition]:
        """The same transition by the model of each mode."""
        return [self.of(motion) for motion in self.motion.modes]

    def snapshot(self) -> Transition:
        """Return a transition that is not affected if the attributes of the model are replaced later.

        A change inside an array or a list of the model still affects it.
        """
        motion = self.motion.copied()
        if motion.has_moments:
            _ = self.noise  # computed now, before the model changes
        # without `__init__`, which would look everything up again
        frozen = object.__new__(Transition)
        frozen.__dict__ = self.__dict__ | {"motion": motion, "model": motion.model}
        return frozen


class Measurement(Resolved):
    """The observation functions of a model.

    Attributes
    ----------
    model : object
    has_likelihood : bool
        True if the model has a ``log_likelihood`` of its own.
    has_moments : bool
        True if it has the mean and the covariance of the observation, as Kalman's update needs.
    takes_partial : bool
        True if the likelihood leaves out the NaN entries of an observation, as a derived one does.
    scans : bool
        True if an observation is a scan: any number k of detections, (k, m).
    draws : bool
        True if it has a ``sample_observation``.
    entries_circular, state_circular : sequence of int
        Indices of the angle-valued entries of an observation, as the model gives them, and dimensions of the state.
    """

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.has_likelihood = hasattr(model, "log_likelihood")
        self.has_moments = contract.has(model, contract.OBSERVED)
        self.takes_partial = bool(getattr(model, "partial_observations", not self.has_likelihood))
        self.scans = contract.has_scans(model)
        self.draws = hasattr(model, "sample_observation")
        self._jacobian = getattr(model, "observation_jacobian", None)
        self.state_circular = contract.circular_dims(model)
        circular = getattr(model, "observation_circular", None)
        self.entries_circular = () if circular is None else circular

    @property
    def jacobian(self) -> Any:
        """The function ``observation_jacobian``, or None."""
        return counted(self._jacobian, "observation")

    @cached_property
    def takes_state(self) -> bool:
        """True if the covariance of the observation depends on the state."""
        return contract.takes_state(self.model)

    def circular(self, size: int) -> tuple[int, ...]:
        """Return the indices of the angle-valued entries of an observation of this size."""
        return _checks.as_dims("observation_circular", self.entries_circular, size)

    def mean(self, x: Array, step: int) -> Array:
        """Mean observation of states (n, d), (n, k)."""
        return rows_of("observation_mean", self.model.observation_mean, None, x, step)

    def at(self, step: int) -> contract.VectorFunction:
        """Return the mean observation at a step as a function of the state, with its Jacobian if the model has one."""
        jacobian = self.jacobian
        slopes = jacobian and (lambda x: jacobian(x, step))
        return contract.VectorFunction(
            lambda x: self.mean(x, step), self.circular, slopes, self.state_circular
        )

    def noise(self, size: int, step: int) -> FactoredCovariance:
        """Covariance of the observation (size, size), if it does not depend on the state."""
        return read_covariance(
            "observation_covariance", self.model.observation_covariance(step), size, step
        )

    def noises(self, x: Array, size: int, step: int) -> Array:
        """Covariances of the observation at states (n, d): (n, size, size), or (1, size, size) for all alike; read-only."""
        if not self.takes_state:
            return self.noise(size, step).matrix[None]
        name = "observation_covariance"
        calls = THREAD.evaluations.calls
        value = self.model.observation_covariance(step, _checks.read_only(x))
        if THREAD.evaluations.calls == calls:
            THREAD.evaluations.add(observation=len(x))
        array = returned.read_numbers(name, value, (len(x), size, size), step)
        # One matrix, though the model computes it for each state: then it is factorised once.
        if (array == array[0]).all():
            return read_covariance(name, np.asarray(value)[0], size, step).matrix[None]
        return returned.read_covariances(name, value, size, step)

    def moments(self, x: Array, step: int) -> tuple[Array, Array]:
        """Mean observation of states (n, d), (n, k), and `noises`."""
        means = self.mean(x, step)
        return means, self.noises(x, means.shape[1], step)

    def log_likelihood(self, z: Array, x: Array, step: int) -> Array:
        """Log-likelihood of states (n, d), (n,): -inf is allowed, NaN is not.

        It is the model's own; without one, noise is Gaussian about the mean observation, and NaN entries of z are left out.
        """
        if self.has_likelihood:
            # read-only: a likelihood that writes to its arguments would move the particles
            z = z.view()
            z.setflags(False)  # type: ignore[call-arg]
            x = x.view()
            x.setflags(False)  # type: ignore[call-arg]
            counts = THREAD.evaluations
            calls = counts.calls
            values = self.model.log_likelihood(z, x, step)
            if counts.calls == calls:
                counts.calls += 1
                counts.observation += len(x)
            # the usual case, without the cost of a call
            if (
                type(values) is not np.ndarray
                or values.dtype != np.float64
                or values.shape != (len(x),)
            ):
                values = returned.read_numbers("log_likelihood", values, (len(x),), step)
            if not values.max() < np.inf:  # NaN, too
                count = np.count_nonzero(np.isnan(values) | (values == np.inf))
                raise ValueError(
                    f"log_likelihood: expected values below infinity from the model, got {count} NaN or +inf of "
                    f"{len(x)} at step {step}"
                )
            return values
        means = self.mean(x, step)
        size = means.shape[1]
        if z.shape != (size,):
            raise ValueError(
                f"z: expected shape {(size,)}, as observation_mean has, got {z.shape} at step {step}"
            )
        residuals = wrap(z - means, self.circular(size))
        return contract.gaussian_log_density(residuals, self.noises(x, size, step), step)

    def sample(self, x: Array, rng: Generator, step: int) -> Any:
        """Draw one observation of each state, (n, d) -> (n, k), or a list of n scans."""
        if self.draws:
            z = self.model.sample_observation(_checks.read_only(x), rng, step)
            return z if self.scans else np.asarray(_checks.with_nan(z))
        contract.require(self.model, "simulation", ("sample_observation",), contract.OBSERVED)
        means, noises = self.moments(x, step)
        return means + contract.correlated(rng.standard_normal(means.shape), noises)


def only_mode(model: Model) -> Model:
    """Return the model of the mode if there is a single one, else the model itself."""
    return contract.in_mode(model, 0) if contract.jumps(model) and len(model.models) == 1 else model


def rows_of(
    name: str, function: Callable[..., Any], size: int | None, x: Array, *arguments: Any
) -> Array:
    """Call a model's function of states (n, d), with the step as last argument; return its value for each, (n, size)."""
    if x.flags.writeable:
        x = x.view()
        x.setflags(False)  # type: ignore[call-arg]  # twice as fast as with a keyword
    counts = THREAD.evaluations
    calls = counts.calls
    try:
        value = function(x, *arguments)
    except Exception as error:
        if "NoneType" in str(error) and len(arguments) > 1 and arguments[-2] is None:
            raise TypeError(
                f"control: expected the input that {name} takes, got None ({error}); give controls= to run or simulate, "
                "control= to predict"
            ) from error
        if not hasattr(error, "__notes__") and ": expected" not in str(error):
            error.add_note(f"{name}: called with states of shape {x.shape}{returned.AXES}")
        raise
    if counts.calls == calls:  # else it has asked functions that are counted themselves
        counts.calls += 1
        if name == "observation_mean":
            counts.observation += len(x)
        else:
            counts.transition += len(x)
    # the usual case, without the cost of a call
    if (
        type(value) is np.ndarray
        and value.dtype == np.float64
        and value.ndim == 2
        and len(value) == len(x)
        and (size is None or value.shape[1] == size)
        and value.flags.writeable
        and value.size
        and np.abs(value).max() <= _checks.LARGEST
    ):
        return value
    return returned.read_rows(name, value, (len(x), size), arguments[-1])


def read_covariance(name: str, value: Any, size: int, step: int) -> FactoredCovariance:
    """Return the value of a model's function as one covariance matrix (size, size), checked and factorised once."""
    try:
        array = value
        if (
            type(value) is not np.ndarray
            or value.dtype != np.float64
            or value.shape != (size, size)
        ):
            array = _checks.as_array(name, value, (size, size), finite=False)
        # Most models return the same matrix at every step. By its bytes it is found in the cache, checked and factorised.
        single = getattr(value, "dtype", None) == np.float32
        return _factored(name, array.tobytes(), size, single)
    except ValueError as error:
        raise ValueError(f"{error} from the model at step {step}") from None


@lru_cache(maxsize=32)
def _factored(name: str, data: bytes, size: int, single: bool) -> FactoredCovariance:
    array = np.frombuffer(data).reshape(size, size)
    # as float32 if it came so: the check then allows for its rounding
    matrix = returned.checked_covariances(name, array.astype(np.float32) if single else array, size)
    full_rank = regularised(matrix) is matrix  # which is returned unchanged then
    return FactoredCovariance(
        _checks.read_only(matrix), _checks.read_only(covariance_factor(matrix)), full_rank
    )
