"""A transition to be made, as proposals and Kalman filters are given it."""

from __future__ import annotations

import copy
from contextlib import suppress
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from herdfilter._checks import Array
from herdfilter.angles import wrap_angles
from herdfilter.mixture import GaussianMixture
from herdfilter.models import contract
from herdfilter.models.contract import ADDITIVE, Model, has, jumps


class Transition(NamedTuple):
    """The way from the particles to the next step: a model, and what its functions take besides states.

    Its methods call those of the model on states x (n, d), whose results are checked; angles are wrapped where states are
    returned, except those of `mean`.

    Attributes
    ----------
    model : object
        A state-space model; see `herdfilter.models.contract`.
    dt : float
        Time on the way, in the model's unit.
    control
        Control input on the way.
    step : int
        Index of the step it leads to.

    Examples
    --------
    What a proposal can ask about the way to the next step, here of half a second:

    >>> transition = hf.Transition(hf.models.CoordinatedTurn(), dt=0.5)
    >>> x = transition.model.initial.sample(3, np.random.default_rng(0))
    >>> transition.sample(x, np.random.default_rng(0)).shape, transition.noise_dim, transition.additive, transition.circular
    ((3, 5), 5, True, ())
    >>> np.allclose(transition.propagate(x, np.zeros((3, 5))), transition.mean(x))
    True
    >>> np.allclose(transition.factor @ transition.factor.T, transition.covariance)
    True
    """

    model: contract.Model
    dt: float = 1.0
    control: Any = None
    step: int = 1

    @property
    def circular(self) -> tuple[int, ...]:
        """Indices of the angle-valued dimensions."""
        return contract.circular_dims(self.model)

    @property
    def noise_dim(self) -> int:
        """Dimension of the standard normal noise that `propagate` takes."""
        return contract.noise_dim(self.model)

    def sample(self, x: Array, rng: np.random.Generator) -> Array:
        """Draw one successor of each state, (n, d)."""
        return contract.sample_transition(self.model, x, rng, self.dt, self.control, self.step)

    def propagate(self, x: Array, noise: Array) -> Array:
        """States that standard normal noise (n, `noise_dim`) takes x to, (n, d)."""
        return contract.propagate(self.model, x, noise, self.dt, self.control, self.step)

    def mean(self, x: Array) -> Array:
        """Transition mean of each state, (n, d)."""
        return contract.transition_mean(self.model, x, self.dt, self.control, self.step)

    @property
    def covariance(self) -> Array:
        """Covariance of additive transition noise, (d, d)."""
        return contract.transition_covariance(self.model, self.dt, self.step)

    @property
    def factor(self) -> Array:
        """Factor F of the covariance of additive transition noise, ``F @ F.T``, (d, d); not to be written to."""
        return contract.transition_factor(self.model, self.dt, self.step)

    @property
    def additive(self) -> bool:
        """Whether the transition noise is additive and Gaussian."""
        return contract.has(self.model, contract.ADDITIVE) and not hasattr(self.model, "transition")

    @property
    def simulated_only(self) -> bool:
        """Whether a successor can only be drawn, not computed from its noise."""
        return contract.simulated_only(self.model)

    def predictive(self, x: Array, weights: Array) -> GaussianMixture:
        """Density ``sum_i w_i N(f(x_i), Q)`` of the next state, its angles unwrapped about their mean."""
        return contract.predictive_mixture(self.model, x, weights, self.dt, self.control, self.step)

    def wrapped(self, x: Array) -> Array:
        """States with their angles in [-pi, pi)."""
        return wrap_angles(x, self.circular)


def as_it_stands(transition: Transition) -> Model:
    """Return the model of a move as it is now: attributes that are replaced later are not seen, nor another covariance.

    What is changed in place inside an array or a list that the model holds is seen all the same.
    """
    try:
        model = copy.copy(transition.model)
    except TypeError:  # a module cannot be copied, what it holds can
        names = [name for name in dir(transition.model) if name[:2] != "__"]
        model = SimpleNamespace(**{name: getattr(transition.model, name) for name in names})
    if model is not transition.model and jumps(model):
        with suppress(AttributeError):
            modes = tuple(as_it_stands(transition._replace(model=one)) for one in model.models)
            object.__setattr__(model, "models", modes)
    if model is not transition.model and has(model, ADDITIVE):
        with suppress(AttributeError):  # an object with slots has no room
            object.__setattr__(model, "transition_covariance", partial(_given, transition.covariance))
    return model


def _given(covariance: Array, dt: float, step: int) -> Array:
    return covariance
