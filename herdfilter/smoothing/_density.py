"""The density of a transition, as weights that lead backwards need it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from herdfilter._checks import Array
from herdfilter.angles import wrap_angles
from herdfilter.filters import Transition
from herdfilter.models.contract import ADDITIVE, Model, read_numbers, require
from herdfilter.smoothing.results import UnreachableStateError

CHUNK = 2**16
"""Most numbers in one array of residuals; states beyond it are taken in turns, each of which the cache holds."""

LEAST_EIGENVALUE = 1e-12
"""Below it, the smallest eigenvalue of the correlation matrix of the transition noise is rounding."""


def require_density(model: Model, user: str) -> None:
    """Raise TypeError unless the model's transition has a density."""
    require(model, user, ADDITIVE, ("transition_log_density",))


def rows_at_once(x: Array) -> int:
    """How many next states to weigh states x (n, d) by at a time."""
    return max(CHUNK // x.size, 1)


def backward_weights(transition: Transition, x: Array, weights: Array, user: str) -> Callable[[Array], Array]:
    """Return the function of next states that weighs the states x (n, d), of weights (n,), by which leads there.

    It takes x_next (m, d) to the logarithms of w_i p(x_next_j | x_i), (m, n), each row up to a constant.

    Raises
    ------
    UnreachableStateError
        From the function, if no state leads to one of the next ones.
    """
    log_density = _transition_from(transition, x, user)
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)

    def weighed(x_next: Array) -> Array:
        backward = log_weights + log_density(x_next)
        if (backward.max(axis=1) == -np.inf).any():
            raise UnreachableStateError(transition.step - 1, len(x))
        return backward

    return weighed


def _transition_from(transition: Transition, x: Array, user: str) -> Callable[[Array], Array]:
    """Return the function x_next (m, d) -> log p(x_next | x) (m, n), up to a constant, for states x (n, d)."""
    from scipy.spatial.distance import cdist

    if hasattr(transition.model, "transition_log_density"):
        return lambda x_next: _own_density(transition, x_next, x)
    mean, circular = transition.mean(x), transition.circular
    whitening = _whitening(transition.covariance, transition.step, user)

    def log_density(x_next: Array) -> Array:
        if circular:
            z = wrap_angles(x_next[:, None] - mean, circular) @ whitening.T
            return -0.5 * np.einsum("mni,mni->mn", z, z)
        centre = mean[0]  # large numbers of one sign would leave their differences few digits
        return -0.5 * cdist((x_next - centre) @ whitening.T, (mean - centre) @ whitening.T, "sqeuclidean")

    return log_density


def _own_density(transition: Transition, x_next: Array, x: Array) -> Array:
    """Return the model's own transition density, (m, n), checked."""
    step = transition.step
    values = transition.model.transition_log_density(x_next, x, transition.dt, transition.control, step)
    values = read_numbers("transition_log_density", values, (len(x_next), len(x)), step)
    invalid = np.count_nonzero(np.isnan(values) | (values == np.inf))
    if invalid:
        raise ValueError(
            f"transition_log_density: expected values below infinity from the model at step {step}, got {invalid} "
            f"NaN or +inf of {values.size}"
        )
    return values


def _whitening(covariance: Array, step: int, user: str) -> Array:
    """Return W with ``W.T @ W`` the inverse of a covariance (d, d); its units may differ by many orders of magnitude."""
    scale = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    divisor = np.where(scale > 0, scale, 1.0)
    correlation = covariance / np.outer(divisor, divisor)
    rank = np.count_nonzero(np.linalg.eigvalsh(correlation) > LEAST_EIGENVALUE)
    if rank < len(scale):
        raise ValueError(
            f"transition_covariance: {user} needs a transition density, so a covariance of full rank, {len(scale)}; "
            f"got rank {rank} at step {step}"
        )
    return np.linalg.inv(np.linalg.cholesky(correlation)) / scale
