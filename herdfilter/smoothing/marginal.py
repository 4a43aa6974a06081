"""Marginal smoothing by backward weights: the filter's particles, weighted anew by all observations.

Hürzeler and Künsch (1998), "Monte Carlo approximations for general state-space models", Journal of Computational and
Graphical Statistics 7; Doucet, Godsill and Andrieu (2000), "On sequential Monte Carlo sampling methods for Bayesian
filtering", Statistics and Computing 10, section IV.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array
from herdfilter.angles import moments
from herdfilter.filters import FilterResult, ParticleFilter, Transition
from herdfilter.models.contract import Model, circular_dims
from herdfilter.smoothing._backward import Belief, collected
from herdfilter.smoothing._course import Course, checked, model_of, particles_of
from herdfilter.smoothing._density import backward_weights, require_density, rows_at_once
from herdfilter.smoothing.results import SmoothedResult


def marginal_smoother(
    model: Model | ParticleFilter,
    result: FilterResult,
    dt: float | Sequence[float] | Array | None = None,
    controls: Sequence[Any] | Array | None = None,
    times: ArrayLike | None = None,
) -> SmoothedResult:
    r"""Weigh the particles of every step by all observations, without a random number.

    The particles stay where they are. Their weights follow from those of the step after, backwards from the last:

    .. math::
        w_{t|T}^i = w_t^i \sum_j w_{t+1|T}^j
            \frac{p(x_{t+1}^j \mid x_t^i)}{\sum_l w_t^l\, p(x_{t+1}^j \mid x_t^l)}.

    They are the shares that trajectories of `backward_simulation` have in each particle, in the limit of many. Where the
    filter is deterministic, so is all of it. Time grows as T n^2.

    Parameters
    ----------
    model : object or ParticleFilter
        The model that was filtered, or the filter; with `transition_mean` and `transition_covariance`, or
        `transition_log_density`, which comes first where it exists. Residuals of angles are wrapped, which takes the noise
        to be narrow on the circle.
    result : FilterResult
        Of ``ParticleFilter.run(..., keep_particles=True)``, T rows with n particles. Rows of the same time are one state.
    dt, controls, times
        As given to ``run``, one for each row of the result; without `dt` and `times`, the times of the result are used.

    Returns
    -------
    SmoothedResult
        With the particles and their smoothed weights.

    Raises
    ------
    TypeError
        If the model has no transition density, or `result` is not a `FilterResult`.
    ValueError
        If `result` has no particles, a length does not fit, or the transition noise is rank-deficient: then no particle
        but the ancestor leads to a state, and there is no density to weigh by.
    UnreachableStateError
        If a transition density of the model's own vanishes from all particles to a state that has weight.

    Examples
    --------
    Particles with weights by all observations come close to what the exact smoother says of a linear Gaussian model.

    >>> model = hf.models.linear_chain(1)
    >>> truth, z = hf.simulate(model, steps=20, rng=1)
    >>> pf = hf.ParticleFilter(model, n_particles=200, proposal=hf.RankedProposal())
    >>> smoothed = hf.marginal_smoother(pf, pf.run(z, keep_particles=True))
    >>> kf = hf.ExtendedKalmanFilter(model)
    >>> exact = hf.rts_smoother(kf, kf.run(z))
    >>> np.allclose(smoothed.means, exact.means, atol=0.1), np.allclose(smoothed.covariances, exact.covariances, atol=0.1)
    (True, True)
    """
    model, user = model_of(model), "marginal_smoother"
    require_density(model, user)
    course = Course.of(model, checked(result, model), dt, controls, times)
    return collected(model, result, course, particle_steps(model, result, course, user))


def particle_steps(model: Model, result: FilterResult, course: Course, user: str) -> list[ParticleStep]:
    """Return the steps of a result as weighted particles."""
    particles, weights = particles_of(result)
    onward = [*course.moves, Transition(model)]  # the last leads nowhere
    return [
        ParticleStep(particles[row], weights[row], transition, user)
        for row, transition in zip(course.last, onward, strict=True)
    ]


class ParticleStep(NamedTuple):
    """The weighted particles of a step, and the move from there (see `Filtered`)."""

    particles: Array
    weights: Array
    onward: Transition
    user: str

    @property
    def belief(self) -> Belief:
        """The filtered weights."""
        return (self.weights[None],)

    def back(self, after: Any, later: Belief) -> Belief:
        """Carry weights (K, m) of the m particles of the next step to the n of this one, (K, n)."""
        x, (weights,) = self.particles, later
        backward = backward_weights(self.onward, x, self.weights, self.user)
        used = np.flatnonzero(weights.any(axis=0))
        found = np.zeros((len(weights), len(x)))
        size = rows_at_once(x)
        for part in (used[start : start + size] for start in range(0, len(used), size)):
            shares = backward(after.particles[part])
            shares -= shares.max(axis=1, keepdims=True)
            np.exp(shares, out=shares)
            found += (weights[:, part] / shares.sum(axis=1)) @ shares
        return (found / found.sum(axis=1, keepdims=True),)

    def moments(self, belief: Belief) -> tuple[Array, Array]:
        """Mean and covariance by the weights of the first horizon."""
        return moments(self.particles, belief[0][0], circular_dims(self.onward.model))
