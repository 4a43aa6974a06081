"""A prediction that is put off until the observation is known, or until somebody asks."""

from __future__ import annotations

import copy
from contextlib import suppress
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from herdfilter._checks import Array
from herdfilter.filters._parts import returned
from herdfilter.filters.observation import Observation
from herdfilter.filters.particles import Particles
from herdfilter.filters.proposals import ObservingProposal
from herdfilter.filters.proposals._hypotheses import guided
from herdfilter.filters.transition import Transition
from herdfilter.models.contract import ADDITIVE, Model, has, jumps


class Pending:
    """A move that an observing proposal has to make: guided by the observation, or without one.

    It is the move of the model as it stands now, whatever becomes of the model until the observation is known.

    The particles without the observation are drawn when they are first asked for, from where the generator stands, which
    is then put back: asking does not change what follows.
    """

    def __init__(
        self, proposal: ObservingProposal, transition: Transition, start: Particles, rng: np.random.Generator
    ) -> None:
        self.proposal, self.start, self.rng = proposal, start, rng
        self.transition = transition._replace(model=as_it_stands(transition))
        self._predicted: tuple[Particles, Any] | None = None  # and the generator's state after it

    def guided(self, seen: Observation) -> Particles:
        """Particles with their weights times the likelihood, not normalised."""
        particles = guided(self.proposal, self.transition, self.start, seen, self.rng)
        return returned(particles, self.proposal, "guide", self._shape)

    def prediction(self) -> Particles:
        """Particles without the observation."""
        return self._drawn()[0]

    def kept(self) -> Particles:
        """Particles without the observation, with the generator left after their draw."""
        particles, self.rng.bit_generator.state = self._drawn()
        return particles

    @property
    def _shape(self) -> tuple[int, int]:
        n = self.start.n_next if self.proposal.absorbs_weights else len(self.start)
        return n, self.start.x.shape[1]

    def _drawn(self) -> tuple[Particles, Any]:
        if self._predicted is None:
            stream = self.rng.bit_generator
            before = stream.state
            particles = self.proposal.propose(self.transition, self.start, self.rng)
            self._predicted = returned(particles, self.proposal, "propose", self._shape), stream.state
            stream.state = before
        return self._predicted


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
