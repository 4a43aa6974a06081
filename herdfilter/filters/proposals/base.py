"""The contract of a proposal."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from herdfilter.angles import wrap_angles
from herdfilter.filters.cloud import Cloud
from herdfilter.filters.move import Move
from herdfilter.filters.observation import Observation
from herdfilter.mixture import GaussianMixture
from herdfilter.models.contract import Model, circular_dims, sample_initial
from herdfilter.samplers.base import Sampler, drawn


@runtime_checkable
class Proposal(Protocol):
    """Anything that carries weighted particles through a transition."""

    @property
    def absorbs_weights(self) -> bool:
        """Whether new particles are drawn from the weighted set as a whole, so that the filter need not resample first."""
        ...

    def check(self, model: Model) -> None:
        """Raise TypeError, naming what is missing, if the model lacks a function that the proposal needs."""
        ...

    def initial(self, model: Model, n: int, rng: np.random.Generator) -> Cloud:
        """Return n particles for the initial state, with weights that sum to 1."""
        ...

    def propose(self, move: Move, cloud: Cloud, rng: np.random.Generator) -> Cloud:
        """Return particles at the step that `move` leads to, with weights that sum to 1.

        A proposal that absorbs weights returns ``cloud.successors`` of them, any other as many as `cloud` has; these are
        the same unless the cloud is a part, or the union of several parts, of what a filter believes.
        """
        ...


@runtime_checkable
class ObservingProposal(Proposal, Protocol):
    """A proposal that looks at the observation before it moves the particles.

    Of a scan it is shown one detection at a time, each with a part of the particles, unless it has an attribute
    ``takes_scans`` that is true: it then needs no more of it than its likelihood.
    """

    def guide(self, move: Move, cloud: Cloud, seen: Observation, rng: np.random.Generator) -> Cloud:
        """Return particles at the step that `move` leads to, weighted with the likelihood of what is seen there.

        The weights are not normalised: their sum estimates the density of the observation given those before, but for the
        constant that ``seen.log_likelihood`` leaves out (`Observation.level`), which the filter adds. Entries of
        ``seen.z`` are NaN only where the model takes ``partial_observations``.
        """
        ...


def initial_points(model: Model, n: int, rng: np.random.Generator, sampler: Sampler | None = None) -> Cloud:
    """Draw the initial particles by `sampler` where the initial distribution is a mixture, else at random."""
    if sampler is None or not isinstance(model.initial, GaussianMixture):
        return Cloud.equal(sample_initial(model, n, rng))
    points = drawn(sampler, model.initial, n, rng)
    return Cloud(wrap_angles(points.x, circular_dims(model)), points.log_weights)
