"""The linear Gaussian model, for which the Kalman filter is exact."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array, as_array, as_positive, check_count
from herdfilter.models import parts
from herdfilter.models.contract import gaussian_log_density


@parts.frozen
class LinearGaussian(parts.LinearMotion, parts.GaussianStart):
    r"""Linear model with Gaussian noise, of any dimension.

    .. math:: x_k = F x_{k-1} + N(0, Q), \qquad y_k = H x_k + N(0, R), \qquad x_0 \sim N(m_0, P_0)

    Time is discrete: `dt` and `control` have no meaning and are not used.

    Parameters
    ----------
    F : array_like, shape (d, d)
        Transition matrix.
    H : array_like, shape (k, d)
        Observation matrix.
    Q : array_like, shape (d, d)
        Covariance of the transition noise; may be singular.
    R : array_like, shape (k, k)
        Covariance of the observation noise. If it is singular there is no likelihood: take a Kalman filter.
    initial_mean, initial_covariance : array_like, shapes (d,) and (d, d)
        Mean and covariance of the state at step 0.

    Notes
    -----
    Kalman (1960), "A new approach to linear filtering and prediction problems", Journal of Basic
    Engineering 82.

    Examples
    --------
    A target moves on a line, and only its position is observed; the Kalman filter, which is exact, also estimates its
    velocity.

    >>> Q, P0 = [[0.02, 0.01], [0.01, 0.02]], np.eye(2)
    >>> model = hf.models.LinearGaussian([[1, 1], [0, 1]], [[1, 0]], Q, [[0.25]], initial_mean=[0, 1], initial_covariance=P0)
    >>> hf.ExtendedKalmanFilter(model).run([0.9, 2.1, 3.0]).means.round(2)[-1].tolist()
    [3.04, 1.03]
    """

    F: Array
    H: Array
    Q: Array
    R: Array
    initial_mean: Array
    initial_covariance: Array

    partial_observations = True

    def __post_init__(self) -> None:
        super().__post_init__()
        d = self.dim
        H = as_array("H", self.H, (None, d))
        Q = parts.as_matrix_covariance("Q", self.Q, d)
        R = parts.as_matrix_covariance("R", self.R, len(H))
        parts.assign(self, F=as_array("F", self.F, (d, d)), H=H, Q=Q, R=R)

    def motion_matrix(self, dt: float) -> Array:
        """F, (d, d), whatever `dt` is."""
        return self.F

    def transition_covariance(self, dt: float, step: int) -> Array:
        """Covariance Q of the transition noise, (d, d)."""
        return self.Q

    def observation_mean(self, x: Array, step: int) -> Array:
        """``H x`` for each state, (n, d) -> (n, k)."""
        return x @ self.H.T

    def observation_jacobian(self, x: Array, step: int) -> Array:
        """H for each state, (n, k, d)."""
        return parts.repeated(self.H, x)

    def observation_covariance(self, step: int) -> Array:
        """Covariance R of the observation noise, (k, k)."""
        return self.R

    def log_likelihood(self, z: ArrayLike, x: Array, step: int) -> Array:
        """Log-density of the finite part of observation `z`, shape (k,), at each state; (n, d) -> (n,)."""
        # entries that are NaN drop out of the density
        z = parts.as_observation(z, len(self.H), missing=True)
        return gaussian_log_density(z - self.observation_mean(x, step), self.R[None], step)


def linear_chain(dim: int = 4, coupling: float = 0.42) -> LinearGaussian:
    r"""Return a linear Gaussian benchmark of any dimension, in which neighbours are coupled.

    .. math:: F_{ij} = \alpha^{|i - j| + 1}, \qquad H = Q = R = P_0 = I, \qquad m_0 = 0

    Parameters
    ----------
    dim : int
        Dimension d of the state, and of the observation.
    coupling : float
        The number alpha, below 1.

    Notes
    -----
    Guarniero, Johansen and Lee (2017), "The iterated auxiliary particle filter", Journal of the American Statistical
    Association 112, the linear Gaussian example. Their initial distribution holds for the first observed state, ours for
    the state one step before.

    Examples
    --------
    >>> hf.models.linear_chain(3).F.round(3).tolist()
    [[0.42, 0.176, 0.074], [0.176, 0.42, 0.176], [0.074, 0.176, 0.42]]
    """
    alpha = as_positive("coupling", coupling)
    if alpha >= 1:
        raise ValueError(f"coupling: expected a number below 1, got {coupling!r}")
    indices = np.arange(check_count("dim", dim))
    # |i - j| of all pairs of coordinates
    distances = np.abs(indices[:, None] - indices)
    eye = np.eye(dim)
    return LinearGaussian(alpha ** (distances + 1.0), eye, eye, eye, np.zeros(dim), eye)
