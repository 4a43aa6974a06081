"""Marginal smoothing: the filter's particles are weighted anew by all observations, backwards in time.

Hürzeler and Künsch (1998), "Monte Carlo approximations for general state-space models", Journal of Computational and
Graphical Statistics 7; Doucet, Godsill and Andrieu (2000), "On sequential Monte Carlo sampling methods for Bayesian
filtering", Statistics and Computing 10, section IV.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array
from herdfilter.angles import moments, wrap_angles
from herdfilter.filters import FilterResult, ParticleFilter, Transition
from herdfilter.models.contract import ADDITIVE, Model, circular_dims, read_numbers, require
from herdfilter.smoothing.results import Course, Horizons, SmoothedResult, UnreachableStateError, model_of, particles_of

CHUNK_SIZE = 2**16
"""Most numbers in one array of residuals; more states are weighed in chunks that fit the cache."""

SMALLEST_EIGENVALUE = 1e-12
"""An eigenvalue of the correlation matrix of the transition noise below it is rounding."""


def marginal_smoother(
    model: Model | ParticleFilter,
    result: FilterResult,
    dt: float | Sequence[float] | Array | None = None,
    controls: Sequence[Any] | Array | None = None,
    times: ArrayLike | None = None,
) -> SmoothedResult:
    r"""Weight the particles of every step by all observations, without a random number.

    The particles stay where they are. Their weights follow from those of the next step, backwards from the last:

    .. math::
        w_{t|T}^i = w_t^i \sum_j w_{t+1|T}^j
            \frac{p(x_{t+1}^j \mid x_t^i)}{\sum_l w_t^l\, p(x_{t+1}^j \mid x_t^l)}.

    In the limit of many trajectories of `backward_simulation` these are the shares that pass through each particle. Time
    grows as T n^2.

    Parameters
    ----------
    model : object or ParticleFilter
        The model that was filtered, or the filter; with `transition_mean` and `transition_covariance`, or
        `transition_log_density`, which is preferred. Residuals of angles are wrapped, which assumes that the noise is
        narrow on the circle.
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
        If `result` has no particles, a number or a length does not fit, or the transition noise is rank-deficient, so that
        it has no density.
    UnreachableStateError
        If the model's own transition density vanishes from all particles to a state that has weight.

    Examples
    --------
    On a linear Gaussian model the weighted particles come close to the exact smoother.

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
    course = Course.of(model, result, dt, controls, times)
    return course.smooth(model, result, particle_steps(model, result, course, user))


def particle_steps(model: Model, result: FilterResult, course: Course, user: str) -> list[ParticleStep]:
    """Return the steps of a result as weighted particles."""
    particles, weights = particles_of(result)
    onward = [*course.transitions, Transition(model)]  # the last leads nowhere
    return [
        ParticleStep(particles[row], weights[row], transition, user)
        for row, transition in zip(course.last, onward, strict=True)
    ]


class ParticleStep(NamedTuple):
    """The weighted particles of a step, and the transition from there (a `FilteredStep`)."""

    particles: Array
    weights: Array
    onward: Transition
    user: str

    @property
    def belief(self) -> Horizons:
        """See `FilteredStep`."""
        return (self.weights[None],)

    def back(self, after: Any, later: Horizons) -> Horizons:
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

    def moments(self, belief: Horizons) -> tuple[Array, Array]:
        """See `FilteredStep`."""
        return moments(self.particles, belief[0][0], circular_dims(self.onward.model))


def require_density(model: Model, user: str) -> None:
    """Raise TypeError unless the model's transition has a density."""
    require(model, user, ADDITIVE, ("transition_log_density",))


def rows_at_once(x: Array) -> int:
    """Return the number of next states to weigh states x (n, d) by at a time."""
    return max(CHUNK_SIZE // x.size, 1)


def backward_weights(transition: Transition, x: Array, weights: Array, user: str) -> Callable[[Array], Array]:
    """Return the function of next states that gives the backward log-weights of states x (n, d) with weights (n,).

    It takes x_next (m, d) to the logarithms of w_i p(x_next_j | x_i), (m, n), each row up to a constant. It raises
    UnreachableStateError if no state leads to one of the next ones.
    """
    log_density = _log_density_from(transition, x, user)
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)

    def log_backward_weights(x_next: Array) -> Array:
        backward = log_weights + log_density(x_next)
        if (backward.max(axis=1) == -np.inf).any():
            raise UnreachableStateError(transition.step - 1, len(x))
        return backward

    return log_backward_weights


def _log_density_from(transition: Transition, x: Array, user: str) -> Callable[[Array], Array]:
    """Return the function x_next (m, d) -> log p(x_next | x) (m, n), up to a constant, for states x (n, d)."""
    from scipy.spatial.distance import cdist

    model, step, circular = transition.model, transition.step, transition.circular
    if hasattr(model, "transition_log_density"):

        def own_log_density(x_next: Array) -> Array:
            values = model.transition_log_density(x_next, x, transition.dt, transition.control, step)
            values = read_numbers("transition_log_density", values, (len(x_next), len(x)), step)
            invalid = np.count_nonzero(np.isnan(values) | (values == np.inf))
            if invalid:
                raise ValueError(
                    f"transition_log_density: expected values below infinity from the model at step {step}, got {invalid} "
                    f"NaN or +inf of {values.size}"
                )
            return values

        return own_log_density
    mean = transition.mean(x)
    # W with W' W the inverse of the covariance, whose units may differ by many orders of magnitude
    scale = np.sqrt(np.maximum(np.diagonal(transition.covariance), 0.0))
    divisor = np.where(scale > 0, scale, 1.0)
    correlation = transition.covariance / np.outer(divisor, divisor)
    rank = np.count_nonzero(np.linalg.eigvalsh(correlation) > SMALLEST_EIGENVALUE)
    if rank < len(scale):
        raise ValueError(
            f"transition_covariance: {user} needs a transition density, so a covariance of full rank, {len(scale)}; "
            f"got rank {rank} at step {step}"
        )
    whitening = np.linalg.inv(np.linalg.cholesky(correlation)) / scale

    def log_density(x_next: Array) -> Array:
        if circular:
            z = wrap_angles(x_next[:, None] - mean, circular) @ whitening.T
            exponents: Array = -0.5 * np.einsum("mni,mni->mn", z, z)
            return exponents
        centre = mean[0]  # large numbers of one sign would leave their differences few digits
        return -0.5 * cdist((x_next - centre) @ whitening.T, (mean - centre) @ whitening.T, "sqeuclidean")

    return log_density
