r"""The posterior Cramer-Rao bound: a lower bound on the error of every filter.

With :math:`\bar F = \mathrm E[F]` and :math:`C = \mathrm E[(F - \bar F)^\top Q^{-1} (F - \bar F)]` the recursion of
`posterior_cramer_rao_bound` is, by the matrix inversion lemma,

.. math:: J_{k+1} = (Q + \bar F (J_k + C)^{-1} \bar F^\top)^{-1} + \mathrm E[H^\top R^{-1} H].

That is computed, on covariances: Q may be singular where F does not vary outside its range.

The bound is on the average over all truths. It is attained where the model is linear and Gaussian, and loose where the
posterior has several modes. Errors of angles count as small: nothing is wrapped. If :math:`\mathrm E[H^\top R^{-1} H]` is
infinite, as for bearings from a sensor that the target may approach arbitrarily closely, the nearest simulated targets
dominate the mean, and the bound falls slowly with `runs`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter._covariances import covariance_factor
from herdfilter.filters.kalman.rules import differentiate
from herdfilter.mixture import GaussianMixture
from herdfilter.models import contract, resolved

# Eigenvalues of a correlation matrix up to this share of the largest count as zero.
_NOISELESS = 1e-10


def posterior_cramer_rao_bound(
    model: Any,
    steps: int,
    dt: float = 1.0,
    runs: int = 1000,
    rng: np.random.Generator | int | None = None,
) -> Array:
    r"""Return the least mean squared error matrix of every filter (Tichavsky, Muravchik and Nehorai 1998, eq. 21).

    For :math:`x_{k+1} = f(x_k) + N(0, Q)`, :math:`z_k = h(x_k) + N(0, R)` the information obeys

    .. math::
        J_{k+1} = Q^{-1} + \mathrm E[H^\top R^{-1} H]
        - Q^{-1} \mathrm E[F] \left(J_k + \mathrm E[F^\top Q^{-1} F]\right)^{-1} \mathrm E[F]^\top Q^{-1}

    with the Jacobians F of f at the state at step k, and H of h at step k + 1. Expectations are means over simulated states.
    The bound at step k, of 1 to T, is the inverse of J_k, (d, d): the mean over truths and observations of the outer
    product of the error exceeds it by a positive semi-definite matrix.

    Parameters
    ----------
    model : object
        With ``dim``, ``initial`` (a `GaussianMixture`), ``transition_mean``, ``transition_covariance``,
        ``observation_mean`` and ``observation_covariance``; Jacobians are its own where it has them, else central
        differences.
    steps, dt : int, float
        Number of steps T, and the time between them.
    runs : int
        Simulated truths. For a linear model the bound does not depend on them: it is the Kalman filter's covariance.
    rng : numpy.random.Generator or int, optional
        Source of the random draws.

    Raises
    ------
    ValueError
        If R is singular, or Q is and F varies outside its range, where the recursion has no finite terms.

    Examples
    --------
    >>> one = np.eye(1)
    >>> model = hf.models.LinearGaussian(one, one, 0.1 * one, one, [0.0], one)
    >>> bound = hf.study.posterior_cramer_rao_bound(model, steps=5, runs=10, rng=0)
    >>> kalman = hf.ExtendedKalmanFilter(model).run(np.zeros((5, 1)))
    >>> print(np.allclose(bound, kalman.covariances))  # reached where everything is Gaussian and linear
    True
    """
    contract.require(
        model, "the Cramer-Rao bound", ("dim", "initial", *contract.ADDITIVE, *contract.OBSERVED)
    )
    contract.require_constant_noise(model, "the Cramer-Rao bound")
    contract.refuse_limits(model, "the Cramer-Rao bound")
    if not isinstance(model.initial, GaussianMixture):
        raise TypeError(
            f"initial: expected a GaussianMixture for the Cramer-Rao bound, got {_checks.short_repr(model.initial)}"
        )
    T = _checks.check_count("steps", steps)
    dt = _checks.as_positive("dt", dt)
    rng = _checks.as_generator(rng)
    x = model.initial.sample(_checks.check_count("runs", runs), rng)
    P = _initial_bound(model.initial, x)
    motion = resolved.Motion(model)
    measurement = resolved.Measurement(model)
    bounds = np.empty((T, model.dim, model.dim))
    for step in range(1, T + 1):
        transition = resolved.Transition(motion, dt, None, step)
        F = differentiate(transition.function, x, x.std(axis=0)[None])[1]
        Q = transition.noise.matrix
        # Prediction, the first term of the recursion above, with P = J^-1.
        P = _informed(P, _variation(F, Q, step))
        mean = F.mean(axis=0)
        P = Q + mean @ P @ mean.T
        x = transition.sample(x, rng)
        # Update: adds E[H' R^-1 H], with the Jacobians at the states after the transition.
        H = differentiate(measurement.at(step), x, x.std(axis=0)[None])[1]
        R = measurement.noise(H.shape[1], step).matrix
        try:
            whitened = np.linalg.solve(np.linalg.cholesky(R), H)
        except np.linalg.LinAlgError:
            raise ValueError(
                f"observation_covariance: expected a positive definite matrix at step {step}, got {R.tolist()}"
            ) from None
        P = _informed(P, np.einsum("rij,rik->jk", whitened, whitened) / len(x))
        bounds[step - 1] = P
    return bounds


def _initial_bound(initial: GaussianMixture, x: Array) -> Array:
    """Return the inverse Fisher information of the initial density: exact for one Gaussian, else over draws x (runs, d)."""
    from scipy.special import softmax

    if len(initial) == 1:
        return initial.covariance
    # The score of a mixture is the mean of its components' scores, weighted by their responsibilities.
    responsibilities = softmax(initial.component_log_densities(x) + np.log(initial.weights), axis=1)
    components = zip(initial.means, initial.covariances, strict=True)
    gradients = np.stack(
        [np.linalg.solve(covariance, (mean - x).T).T for mean, covariance in components], axis=1
    )
    scores = (responsibilities[:, :, None] * gradients).sum(axis=1)
    return np.linalg.inv(scores.T @ scores / len(x))


def _informed(P: Array, information: Array) -> Array:
    """Return ``(P^-1 + information)^-1`` for P that may be singular."""
    # With P = L L': L (I + L' information L)^-1 L', which never inverts P.
    L = covariance_factor(P)
    inner_factor = np.linalg.cholesky(np.eye(len(P)) + L.T @ information @ L)
    root = np.linalg.solve(inner_factor, L.T)
    return root.T @ root


def _variation(F: Array, Q: Array, step: int) -> Array:
    """Return ``E[(F - E F)' Q^-1 (F - E F)]`` of Jacobians (runs, d, d), with the pseudo-inverse of Q."""
    sd = np.sqrt(np.diagonal(Q))
    # Correlations, because the pseudo-inverse must not take a small unit for a missing direction.
    scale = np.where(sd > 0, sd, 1.0)
    correlations = Q / np.outer(scale, scale)
    inverse = np.linalg.pinv(correlations, rcond=_NOISELESS, hermitian=True)
    centred = (F - F.mean(axis=0)) / scale[:, None]
    # The part of F outside the range of Q must be constant, or the expectation is infinite.
    outside = centred - correlations @ inverse @ centred
    if (np.abs(outside) > 1e-6 * np.abs(F / scale[:, None]).max()).any():
        raise ValueError(
            "transition_covariance: expected noise in every direction in which the transition is nonlinear, "
            f"got a singular matrix at step {step}"
        )
    return np.asarray(np.einsum("rji,jk,rkl->il", centred, inverse, centred) / len(F))
