"""A transition to be made, as proposals and Kalman filters are given it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from herdfilter._checks import Array, as_any, short_repr
from herdfilter._covariances import regularised
from herdfilter._repr import summary_repr
from herdfilter.angles import unwrap, wrap
from herdfilter.mixture import GaussianMixture
from herdfilter.models.contract import FactoredCovariance, Model
from herdfilter.models.resolved import Motion
from herdfilter.models.series import as_control, as_duration


class Transition:
    """The way from the particles to the next step: a motion, and the arguments of its functions besides states.

    Its methods call the model's functions on states x (n, d) and check the results; angles are wrapped where states are
    returned, except those of `mean`. The model's noise covariance is computed once and kept.

    Parameters
    ----------
    model : object or Motion
        A state-space model, see `herdfilter.models.contract`, or what has been resolved of it.
    dt : float
        Time on the way, in the model's unit.
    control
        Control input on the way.
    step : int
        Index of the step it leads to.

    Attributes
    ----------
    model, dt, control, step
        As given.
    motion : Motion
        The model's functions that there are.
    circular : tuple of int
        Indices of the angle-valued dimensions.
    additive : bool
        True if the transition noise is additive and Gaussian.
    simulated_only : bool
        True if a successor can only be drawn, not computed from its noise.

    Examples
    --------
    A proposal can ask this about the way to the next step, here of half a second:

    >>> transition = hf.Transition(hf.models.CoordinatedTurn(), dt=0.5)
    >>> x = transition.model.initial.sample(3, np.random.default_rng(0))
    >>> transition.sample(x, np.random.default_rng(0)).shape, transition.noise_dim, transition.additive, transition.circular
    ((3, 5), 5, True, ())
    >>> np.allclose(transition.propagate(x, np.zeros((3, 5))), transition.mean(x))
    True
    >>> np.allclose(transition.factor @ transition.factor.T, transition.covariance)
    True
    """

    def __init__(self, model: Model | Motion, dt: float = 1.0, control: Any = None, step: int = 1) -> None:
        self.motion = motion = model if isinstance(model, Motion) else Motion(model)
        self.model = motion.model
        self.dt = dt
        self.control = control
        self.step = step
        self.circular = motion.circular
        self.additive = motion.additive
        self.simulated_only = motion.simulated_only

    @classmethod
    def checked(cls, motion: Motion, dt: Any, control: Any, step: int) -> Transition:
        """Return a transition with a duration and a control input as users give them."""
        if type(dt) is not float or not 0.0 < dt < np.inf:
            dt = as_duration("dt", dt)
        if control is not None:
            control = as_control(control)
        return cls(motion, dt, control, step)

    def __repr__(self) -> str:
        return summary_repr(self, model=self.model, dt=self.dt, control=self.control, step=self.step)

    @property
    def noise_dim(self) -> int:
        """Dimension of the standard normal noise that `propagate` takes."""
        return self.motion.noise_dim

    @cached_property
    def _noise(self) -> FactoredCovariance:
        return self.motion.noise(self.dt, self.step)

    @property
    def covariance(self) -> Array:
        """Covariance of additive transition noise, (d, d)."""
        return self._noise.matrix.copy()

    def noises(self, x: Array) -> Array:
        """Covariances of additive transition noise at states x, (n, d, d), or (1, d, d) for all."""
        return self.covariance[None]

    @cached_property
    def factor(self) -> Array:
        """Factor F of the covariance of additive transition noise, ``F @ F.T``, (d, d); not to be written to."""
        return self._noise.factor

    @cached_property
    def has_density(self) -> bool:
        """True if the covariance of additive transition noise has full rank."""
        covariance = self._noise.matrix
        return regularised(covariance) is covariance

    def check_density(self, user: str) -> None:
        """Raise ValueError, naming the proposal that needs one, unless additive transition noise has a density."""
        if not self.has_density:
            raise ValueError(
                f"transition_covariance: expected a positive definite matrix, as {user} weights points by transition "
                f"densities, got {self._noise.matrix.tolist()} at step {self.step}"
            )

    def mean(self, x: Array) -> Array:
        """Transition mean of each state, (n, d)."""
        return self.motion.mean(x, self.dt, self.control, self.step)

    def propagate(self, x: Array, noise: Array) -> Array:
        """States (n, d) that standard normal noise (n, `noise_dim`) takes x to."""
        if not self.additive:
            return self.motion.propagate(x, noise, self.dt, self.control, self.step)
        root = self._noise.factor
        moved = self.mean(x) + (noise * root if len(root) == 1 else noise @ root.T)  # a product of BLAS is slower
        return wrap(moved, self.circular) if self.circular else moved

    def propagate_joint(self, joint: Array) -> Array:
        """States (n, d) that states and their noise, side by side in (n, d + `noise_dim`), lead to."""
        return self.propagate(joint[:, : self.motion.dim], joint[:, self.motion.dim :])

    def sample(self, x: Array, rng: np.random.Generator) -> Array:
        """Draw one successor of each state, (n, d)."""
        if self.simulated_only:
            return self.motion.sample(x, rng, self.dt, self.control, self.step)
        return self.propagate(x, rng.standard_normal((len(x), self.motion.noise_dim)))

    def predictive(self, x: Array, weights: Array) -> GaussianMixture:
        r"""Density :math:`\sum_i w_i N(f(x_i), Q)` of the next state, its angles unwrapped about their mean."""
        return GaussianMixture.unchecked(weights, unwrap(self.mean(x), weights, self.circular), self.covariance)

    def wrapped(self, x: Array) -> Array:
        """States with their angles in [-pi, pi)."""
        return wrap(x, self.circular)

    def of(self, model: Model | Motion) -> Transition:
        """Return the same way by another model, such as that of one mode."""
        return Transition(model, self.dt, self.control, self.step)

    @property
    def modes(self) -> list[Transition]:
        """The same way by the model of each mode."""
        return [self.of(motion) for motion in self.motion.modes]

    def snapshot(self) -> Transition:
        """Return the transition of the model as it is now, whose attributes and covariance may be replaced later.

        A change inside an array or a list that the model holds is not kept out.
        """
        frozen = self.of(self.motion.copied())
        if self.motion.has_moments:
            frozen._noise = self._noise
        return frozen

    def arrays(self) -> dict[str, Any]:
        """Return what `restored` needs besides a model, for the state of a filter in which it waits for an observation."""
        if self.control is None:
            return {"pending_dt": self.dt}
        return {"pending_dt": self.dt, "pending_control": as_saved_control(self.control)}

    @classmethod
    def restored(cls, saved: Any, model: Model) -> Transition | None:
        """Return the transition that waits for an observation in a `SavedState`, by a model; None if there is none."""
        if "pending_dt" not in saved.entries:
            return None
        control = None
        if "pending_control" in saved.entries:
            control = as_saved_control(saved.entries["pending_control"])[()]
        dt = as_duration("state: pending_dt", saved.read("pending_dt").item())
        return cls(model, dt, control, saved.read("step").item()).snapshot()


def as_saved_control(control: Any) -> np.ndarray:
    """Return a control input as an array for a state; ValueError if it is no array, number or text."""
    array = np.array(as_any("control", control))
    if array.dtype.hasobject or hasattr(control, "to_numpy"):
        raise ValueError(f"control: expected an array, a number or a text, as a state keeps them, got {short_repr(control)}")
    return array
