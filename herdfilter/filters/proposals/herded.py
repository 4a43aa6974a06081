"""Herded prediction: points drawn from the predictive mixture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from herdfilter._checks import Array
from herdfilter.angles import wrap_angles
from herdfilter.filters.proposals.base import initial_points
from herdfilter.filters.resampling.mixture import check_parts
from herdfilter.models.contract import Model, circular_dims, predictive_mixture, require
from herdfilter.samplers.base import Sampler


@dataclass(frozen=True)
class HerdedProposal:
    """Draws from ``sum_i w_i N(f(x_i), Q)``, the predictive density of additive Gaussian transition noise.

    With a herding sampler this is sequential kernel herding (Lacoste-Julien, Lindsten and Bach 2015). The weights enter the
    mixture, so that no resampling takes place. Where Q is rank-deficient the herding samplers work on the mixture smoothed
    by their kernel, whose covariance is floored in the whitened frame (`herdfilter.kernels.floored`).

    Parameters
    ----------
    sampler : Sampler
        Mixture to points.
    """

    sampler: Sampler
    absorbs_weights: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_parts(self.sampler)

    def check(self, model: Model) -> None:
        """See `Proposal`."""
        require(model, "HerdedProposal", ("transition_mean", "transition_covariance"))

    def initial(self, model: Model, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """See `Proposal`."""
        return initial_points(model, n, rng, self.sampler)

    def propose(
        self,
        model: Model,
        particles: Array,
        log_weights: Array,
        rng: np.random.Generator,
        dt: float,
        control: Any,
        step: int,
    ) -> tuple[Array, Array]:
        """See `Proposal`."""
        predictive = predictive_mixture(model, particles, np.exp(log_weights), dt, control, step)
        points = self.sampler.sample(predictive, len(particles), rng)
        return wrap_angles(points.x, circular_dims(model)), np.log(points.weights)
