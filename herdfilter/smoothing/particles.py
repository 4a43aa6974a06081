"""Particle smoothers, which run backwards in time: weights given all observations, and trajectories.

Hürzeler and Künsch (1998), "Monte Carlo approximations for general state-space models", Journal of Computational and
Graphical Statistics 7; Doucet, Godsill and Andrieu (2000), "On sequential Monte Carlo sampling methods for Bayesian
filtering", Statistics and Computing 10, section IV; Godsill, Doucet and West (2004), "Monte Carlo smoothing for nonlinear
time series", Journal of the American Statistical Association 99, algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdfilter import _checks, angles, filters
from herdfilter._checks import Array
from herdfilter._repr import summary_repr
from herdfilter.filters import series
from herdfilter.filters.kalman import KalmanFilter
from herdfilter.filters.proposals import gaussianity
from herdfilter.filters.results import Views
from herdfilter.filters.state import Particles
from herdfilter.models.contract import ADDITIVE, Model, circular_dims, position_dims, require
from herdfilter.models.evaluations import THREAD
from herdfilter.models.returned import read_numbers
from herdfilter.smoothing import results

# Largest size of an array of residuals; more states are weighted in chunks that fit the cache.
CHUNK_SIZE = 2**16
# Smaller eigenvalues of the correlation matrix of the transition noise are rounding errors.
SMALLEST_EIGENVALUE = 1e-12
# A model has a transition density if it has all functions of one of these alternatives.
DENSITY = (ADDITIVE, ("transition_log_density",))


def marginal_smoother(
    model: Model | filters.ParticleFilter,
    result: filters.FilterResult,
    dt: series.TimeSteps | None = None,
    controls: series.Controls | None = None,
    times: ArrayLike | None = None,
) -> results.SmoothedResult:
    r"""Weight the particles of every step by all observations, without random numbers.

    The particles of the `SmoothedResult` are those of the filter. Their weights are computed from those of the next step,
    backwards from the last:

    .. math::
        w_{t|T}^i = w_t^i \sum_j w_{t+1|T}^j
            \frac{p(x_{t+1}^j \mid x_t^i)}{\sum_l w_t^l\, p(x_{t+1}^j \mid x_t^l)}.

    They are the fractions of many trajectories of `backward_simulation` that pass through each particle. Time grows as
    T n^2. Means and covariances are those of the weighted particles. In two or more dimensions, at steps whose particles
    a Gaussian fits and whose transition a linear function fits, they follow Rauch, Tung and
    Striebel (1965) instead, which is exact on linear models.

    Parameters
    ----------
    model : object or ParticleFilter
        The model that was filtered, or the filter; with `transition_log_density`, which is preferred, or `transition_mean`
        and `transition_covariance` of full rank. Residuals of angles are wrapped: their noise has to be narrow.
    result : FilterResult
        Of ``ParticleFilter.run(..., keep_particles=True)``, T rows with n particles. Rows of the same time are one state.
    dt, controls, times
        As given to ``run``, one for each row of the result; without `dt` and `times`, the times of the result are used.

    Raises
    ------
    UnreachableStateError
        If the model's own transition density vanishes from all particles to a state that has weight.

    Examples
    --------
    >>> pf = hf.ParticleFilter(hf.models.linear_chain(1), n_particles=200, proposal=hf.RankedProposal())
    >>> filtered = pf.run([[0.2], [1.5], [4.0]], keep_particles=True)
    >>> smoothed = hf.marginal_smoother(pf, filtered)
    >>> bool(smoothed.means[0] > filtered.means[0])  # later observations are larger
    True
    """
    model = _checked_model(model, "marginal_smoother")
    course = results.Course.of(model, result, dt, controls, times)
    return course.smooth(particle_steps(course))


def _checked_model(model: Any, user: str) -> Model:
    """Return the model, given by itself or as a filter's; TypeError unless it has a transition density."""
    model = model.model if isinstance(model, filters.ParticleFilter | KalmanFilter) else model
    require(model, user, *DENSITY)
    return model


def particle_steps(course: results.Course) -> list[ParticleStep]:
    """Return the steps of a result as weighted particles; ValueError if the run did not store them."""
    particles = course.result.particles
    weights = course.result.weights
    if particles is None or weights is None:
        raise ValueError(
            "result: expected particles, which ParticleFilter.run(..., keep_particles=True) keeps; got none"
        )
    return [
        ParticleStep(particles[row], weights[row], onward)
        for row, onward in zip(course.last, course.transitions, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class ParticleStep:
    """The weighted particles of a step, and the transition from there (a `FilteredStep`)."""

    particles: Array
    weights: Array
    onward: filters.Transition

    @cached_property
    def belief(self) -> results.Horizons:
        return self.weights[None], *(part[None] for part in self._moments_by(self.weights))

    def back(self, after: Any, later: results.Horizons) -> results.Horizons:
        """Return weights (K, n) and moments of this step from the weights (K, m) and moments of the next one."""
        x = self.particles
        weights, next_means, next_covariances = later
        # The equation of `marginal_smoother`: each next particle j shares out its weight among the particles i.
        smoothed = np.zeros((len(weights), len(x)))
        for part in in_chunks(np.flatnonzero(weights.any(axis=0)), x):
            shares = self.backward_weights(after.particles[part])
            # Each row has a constant of its own, which cancels.
            shares -= shares.max(axis=1, keepdims=True)
            np.exp(shares, out=shares)
            smoothed += (weights[:, part] / shares.sum(axis=1)) @ shares
        smoothed /= smoothed.sum(axis=1, keepdims=True)
        # By the weights alone, means of many dimensions would be as rough as their few effective particles.
        if self._regression is None:
            parts = zip(*map(self._moments_by, smoothed), strict=True)
            return smoothed, *map(np.array, parts)
        # m + G (m^s - m^-) and P - G C' + G P^s G', as in `rts_smoother`.
        mean, gain, residual_covariance = self._regression
        means = self.belief[1] + (next_means - mean) @ gain.T
        return smoothed, means, residual_covariance + gain @ next_covariances @ gain.T

    @cached_property
    def _regression(self) -> tuple[Array, Array, Array] | None:
        """Regression of this state on the next: mean of the next, gain, and covariance of the residual.

        None unless the particles look Gaussian and the transition linear.
        """
        x = self.particles
        w = self.weights
        transition = self.onward
        # A model's own density may differ from that of its noise, and on a circle a regression has no meaning; it knows no
        # limits either.
        if transition.circular or transition.motion.has_density or not transition.additive:
            return None
        if transition.motion.limited:
            return None
        if x.shape[1] == 1 or not gaussianity.Gaussianity(Particles.weighted(x, w), ()).gaussian:
            return None
        predicted = transition.mean(x)
        # A nonlinear share of the variance below 1 / n does not show with n particles.
        if len(x) * gaussianity.nonlinear_share(predicted, x) > 1:
            return None
        _, mean, covariance = (part[0] for part in self.belief)
        predicted_mean = w @ predicted
        centred = predicted - predicted_mean
        cross = ((x - mean).T * w) @ centred
        gain = np.linalg.solve((centred.T * w) @ centred + transition.covariance, cross.T).T
        return predicted_mean, gain, covariance - gain @ cross.T

    def backward_weights(self, x_next: Array) -> Array:
        """Return the logarithms of w_i p(x_next_j | x_i) for next states (m, d), (m, n), each row up to a constant.

        Raises UnreachableStateError if a next state cannot be reached.
        """
        x = self.particles
        transition = self.onward
        circular = transition.circular
        if transition.motion.has_density:
            # a closed form of the mean of the states before, whatever the number of states after
            THREAD.evaluations.add(transition=len(x))
            values = transition.model.transition_log_density(
                _checks.read_only(x_next),
                _checks.read_only(x),
                *transition.arguments,
            )
            shape = (len(x_next), len(x))
            log_densities = read_numbers("transition_log_density", values, shape, transition.step)
            if not log_densities.max() < np.inf:
                raise ValueError(
                    f"transition_log_density: expected values below infinity from the model at step {transition.step}, got "
                    f"{log_densities.max()}"
                )
        else:
            mean, whitening = self._predicted
            if circular:
                z = angles.wrap_angles(x_next[:, None] - mean, circular) @ whitening.T
                log_densities = -0.5 * np.einsum("mni,mni->mn", z, z)
            else:
                from scipy.spatial.distance import cdist

                centre = mean[0]  # differences of large coordinates would lose digits
                log_densities = -0.5 * cdist(
                    (x_next - centre) @ whitening.T, (mean - centre) @ whitening.T, "sqeuclidean"
                )
        with np.errstate(divide="ignore"):  # weights of 0
            backward: Array = np.log(self.weights) + log_densities
        if (backward.max(axis=1) == -np.inf).any():
            raise results.UnreachableStateError(transition.step - 1, len(x))
        return backward

    @cached_property
    def _predicted(self) -> tuple[Array, Array]:
        """Predicted means (n, d) of the next state, and W with W' W = Q^-1."""
        # By way of correlations: the units in Q may differ by many orders of magnitude.
        covariance = self.onward.covariance
        scale = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
        divisor = np.where(scale > 0, scale, 1.0)
        correlation = covariance / np.outer(divisor, divisor)
        rank = np.count_nonzero(np.linalg.eigvalsh(correlation) > SMALLEST_EIGENVALUE)
        if rank < len(scale):
            raise ValueError(
                "transition_covariance: particle smoothing needs a transition density, so a covariance of full rank, "
                f"{len(scale)}; got rank {rank} at step {self.onward.step}"
            )
        whitening = np.linalg.inv(np.linalg.cholesky(correlation)) / scale
        return self.onward.mean(self.particles), whitening

    def _moments_by(self, weights: Array) -> tuple[Array, Array]:
        return angles.moments(self.particles, weights, circular_dims(self.onward.model))

    def moments(self, belief: results.Horizons) -> tuple[Array, Array]:
        return belief[1][0], belief[2][0]


def in_chunks(indices: NDArray[Any], x: Array) -> list[NDArray[Any]]:
    """Divide indices of next states into chunks, for states x (n, d)."""
    size = max(CHUNK_SIZE // x.size, 1)
    return [indices[start : start + size] for start in range(0, len(indices), size)]


@dataclass(frozen=True, eq=False, repr=False)
class Trajectories(Views):
    """Trajectories drawn independently from the particles, given all observations.

    Attributes
    ----------
    x : ndarray, shape (m, T, d)
        States of m trajectories, one for each row of the filter's result; angles in [-pi, pi).
    circular, position_dims : tuple of int
        Indices of the angle-valued dimensions, and of those that the model calls positions.
    steps, times : ndarray, shape (T,), or None
        Time index and time of each row, from the filter's result.

    Examples
    --------
    >>> pf = hf.ParticleFilter(hf.models.linear_chain(2), n_particles=50, rng=0)
    >>> filtered = pf.run([[0.5, 0.1], [1.0, -0.2], [0.3, 0.4]], keep_particles=True)
    >>> drawn = hf.backward_simulation(pf, filtered, n_trajectories=30, rng=0)
    >>> drawn.x.shape, drawn.means.shape, drawn.covariances.shape, drawn.steps.tolist()
    ((30, 3, 2), (3, 2), (3, 2, 2), [1, 2, 3])
    """

    x: Array
    circular: tuple[int, ...] = ()
    times: np.ndarray | None = None
    steps: np.ndarray | None = None
    position_dims: tuple[int, ...] = ()

    def __repr__(self) -> str:
        m, steps, d = self.x.shape
        return summary_repr(self, n=m, steps=steps, dim=d)

    @property
    def means(self) -> Array:
        """Smoothed mean at every step, shape (T, d); circular in angle-valued dimensions."""
        return self._moments(0)

    @property
    def covariances(self) -> Array:
        """Smoothed covariance at every step, shape (T, d, d)."""
        return self._moments(1)

    def _moments(self, which: int) -> Array:
        weights = np.full(len(self.x), 1.0 / len(self.x))
        return np.array(
            [angles.moments(x, weights, self.circular)[which] for x in self.x.swapaxes(0, 1)]
        )


def backward_simulation(
    model: Model | filters.ParticleFilter,
    result: filters.FilterResult,
    n_trajectories: int,
    rng: np.random.Generator | int | None,
    dt: series.TimeSteps | None = None,
    controls: series.Controls | None = None,
    times: ArrayLike | None = None,
) -> Trajectories:
    r"""Draw trajectories from the joint distribution of all states given all observations.

    The last state of a trajectory is a filtering particle of the last step, drawn by its weight. Backwards from there,
    with :math:`\tilde x_{t+1}` chosen, particle i of step t is chosen with probability

    .. math:: \propto w_t^i\, p(\tilde x_{t+1} \mid x_t^i).

    The filter may use any proposal and resampling. Time grows as T m n. Errors are those of `marginal_smoother`.

    Parameters
    ----------
    model, result, dt, controls, times
        As for `marginal_smoother`.
    n_trajectories : int
        Number of trajectories m.
    rng : numpy.random.Generator or int or None
        Source of the random draws, or a seed.

    Examples
    --------
    The maximum of a trajectory exceeds the maximum of the means.

    >>> pf = hf.ParticleFilter(hf.models.linear_chain(1), n_particles=200, rng=0)
    >>> filtered = pf.run([[0.2], [1.5], [4.0], [1.1]], keep_particles=True)
    >>> drawn = hf.backward_simulation(pf, filtered, n_trajectories=300, rng=0)
    >>> bool(drawn.means.max() < drawn.x.max(axis=1).mean())
    True
    """
    model = _checked_model(model, "backward_simulation")
    m = _checks.check_count("n_trajectories", n_trajectories)
    rng = _checks.as_generator(rng)
    course = results.Course.of(model, result, dt, controls, times)
    steps = particle_steps(course)
    x = np.empty((m, len(steps), model.dim))
    with np.errstate(divide="ignore"):  # particles of weight zero are never drawn
        log_weights = np.log(steps[-1].weights[None])
    indices = _draw_by_inversion(log_weights, np.zeros(m, dtype=int), rng.random(m))
    x[:, -1] = steps[-1].particles[indices]
    for k in range(len(steps) - 2, -1, -1):
        later_indices = indices
        u = rng.random(m)
        indices = np.empty(m, dtype=int)
        # Sorted, because trajectories in the same next state share its backward weights.
        for part in in_chunks(np.argsort(later_indices), steps[k].particles):
            states, row = np.unique(later_indices[part], return_inverse=True)
            log_weights = steps[k].backward_weights(steps[k + 1].particles[states])
            indices[part] = _draw_by_inversion(log_weights, row, u[part])
        x[:, k] = steps[k].particles[indices]
    return Trajectories(
        x[:, course.step_of_row],
        circular_dims(model),
        result.times,
        result.steps,
        position_dims(model),
    )


def _draw_by_inversion(log_weights: Array, row: np.ndarray, u: Array) -> NDArray[np.intp]:
    """Return the index that each u (m,) in [0, 1) draws by inversion from the log-weights (r, n) of its `row` (m,)."""
    # The first particle at which the cumulative weight exceeds u times the total; none of weight zero.
    cumulative = np.cumsum(np.exp(log_weights - log_weights.max(axis=1, keepdims=True)), axis=1)
    index: NDArray[np.intp] = np.count_nonzero(
        cumulative[row] <= (u * cumulative[row, -1])[:, None], axis=1
    )
    return index
