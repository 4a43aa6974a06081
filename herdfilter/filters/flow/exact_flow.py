"""The exact flow of Daum and Huang, which moves particles from the prior to the posterior."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from herdfilter._checks import Array, as_array
from herdfilter.angles import wrap
from herdfilter.filters.kalman.rules import differentiate
from herdfilter.filters.kalman.update import inverse_factor
from herdfilter.filters.observation import Observation
from herdfilter.models.contract import VectorFunction
from herdfilter.samplers import compiled


def pseudo_times(steps: int, ratio: float = 1.2) -> Array:
    """Return 0 = l_0 < ... < l_steps = 1, each difference `ratio` times the one before (Li and Coates 2017).

    Examples
    --------
    >>> from herdfilter.filters.flow import pseudo_times
    >>> np.round(pseudo_times(3), 4).tolist()
    [0.0, 0.2747, 0.6044, 1.0]
    """
    times = np.concatenate([[0.0], np.cumsum(ratio ** np.arange(steps))])
    times /= times[-1]
    return times


def exact_flow(
    observation: Observation, times: Array, covariance: Array, *movers: tuple[Array, Array]
) -> tuple[list[Array], Array]:
    r"""Carry offsets from the means of a Gaussian prior along the flow to the posterior given one observation.

    With the likelihood to the power :math:`\lambda`, the prior N(0, P) of offsets y from the prior mean, the linearised
    observation H with noise R and the residual r, particles follow :math:`dy / d\lambda = A y + b` with

    .. math:: A = -\tfrac12 P H^\top (\lambda H P H^\top + R)^{-1} H, \quad
        b = (I + 2 \lambda A) (I + \lambda A) P H^\top R^{-1} r

    (Daum, Huang and Noushin 2010; Ding and Coates 2012; there about the origin of the state). H and r are computed anew
    for every step of pseudo-time and constant within it. The step is solved exactly, not by Euler's method: it is
    invertible however sharp the likelihood, and if the observation is linear one step is enough.

    Parameters
    ----------
    observation : Observation
        With a model that observes the state.
    times : ndarray
        Pseudo-times, as of `pseudo_times`.
    covariance : ndarray, shape (d, d)
        Prior covariance P.
    *movers : tuple of ndarray
        Prior means, (d,) or one per offset, and offsets from them. The observation is linearised at the m states of the
        first mover. The n states of the others are carried along: each by its own linearisation if m is n, all by the
        same if m is 1.

    Returns
    -------
    offsets : list of ndarray
        Those of each mover.
    log_determinants : ndarray, shape (m,)
        Of the derivative of each affine map, its linearisation held fixed.

    Raises
    ------
    IndefiniteCovarianceError
        If the covariance of the observation is not positive definite.

    Examples
    --------
    The prior N(0, 1) meets the observation 1 with noise 1. The flow takes the offsets -1, 0 and 1 to their places in the
    posterior N(1/2, 1/2).

    >>> from herdfilter.filters.flow import exact_flow, pseudo_times
    >>> model = hf.models.linear_chain(1)
    >>> observation = hf.Observation.read(model, [1.0], step=1)
    >>> mover = (np.zeros(1), np.array([[-1.0], [0.0], [1.0]]))
    >>> (offsets,), log_determinants = exact_flow(observation, pseudo_times(1), np.eye(1), mover)
    >>> np.allclose(offsets.ravel(), 0.5 + np.array([-1, 0, 1]) * 0.5**0.5), np.allclose(log_determinants, np.log(0.5) / 2)
    (True, True)
    """
    origins, offsets = [list(each) for each in zip(*movers, strict=True)]
    covariance = as_array("covariance", covariance, (offsets[0].shape[1],) * 2)
    scale = np.sqrt(np.diagonal(covariance))
    measurement = observation.measurement
    circular = measurement.state_circular
    jacobian = measurement.jacobian
    function = VectorFunction(
        lambda x: observation.mean(wrap(x, circular)),
        lambda _: observation.circular,
        jacobian and (lambda x: jacobian(wrap(x, circular), observation.step)),
    )
    whitenings: Array | None = None
    log_determinants = np.zeros(len(offsets[0]))
    for start, end in pairwise(times):
        centres = origins[0] + offsets[0]
        means, slopes = differentiate(function, centres, scale[None])
        residuals = observation.residuals(means)
        slopes = slopes[:, observation.observed_entries]
        # In units of the noise, R^-1/2 H and R^-1/2 r: the flow then has unit noise, however R depends on the state.
        if whitenings is None or measurement.takes_state:
            noises = observation.noises(wrap(centres, circular))
            whitenings = inverse_factor(noises, observation.step)
        if len(whitenings) == 1:
            residuals = residuals @ whitenings[0].T
            slopes = whitenings[0] @ slopes
        else:
            residuals = (whitenings @ residuals[:, :, None])[:, :, 0]
            slopes = whitenings @ slopes
        # equal slopes, as a linear observation has them, share one eigendecomposition
        distinct_slopes = slopes[:1] if (slopes == slopes[0]).all() else slopes
        drifts, pulls, logs = _flow_gains(distinct_slopes, covariance, start, end)
        for i, (origin, y) in enumerate(zip(origins, offsets, strict=True)):
            shifts = centres - origin
            offsets[i] = _move_offsets(y, shifts, residuals, distinct_slopes, drifts, pulls)
        log_determinants += logs
    return offsets, log_determinants


@compiled.njit(**compiled.CALLED)
def _flow_gains(slopes, covariance, start, end):
    """Return two gains (m, d, k) of a step, by slopes (m, k, d) in units of the noise, and log-determinants (m,).

    The first gain multiplies the residual at the prior mean, the second the observed part of the offset.
    """
    m, k, d = slopes.shape
    drifts = np.zeros((m, d, k))
    pulls = np.zeros((m, d, k))
    log_determinants = np.zeros(m)
    cross = np.empty((k, d))
    observed = np.empty((k, k))
    shares = np.empty(k)
    vectors = np.ones((1, 1))
    for i in range(m):  # loops, as BLAS does not pay for matrices this small
        for b in range(k):
            for a in range(d):
                cross[b, a] = 0.0
                for c in range(d):
                    cross[b, a] += slopes[i, b, c] * covariance[c, a]
            for c in range(b + 1):
                observed[b, c] = 0.0
                for a in range(d):
                    observed[b, c] += cross[b, a] * slopes[i, c, a]
                observed[c, b] = observed[b, c]
        # In the eigenvectors of R^-1/2 H P H' R^-1/2 the flow is one of k independent dimensions.
        if k == 1:
            shares[0] = observed[0, 0]
        else:
            shares, vectors = np.linalg.eigh(observed)
        for j in range(k):
            share = max(shares[j], 0.0)
            before = 1 + start * share
            after = 1 + end * share
            # With the likelihood to the power l the posterior has the variance 1 / (1 + l share) of the prior's, and the
            # mean l / (1 + l share) times the residual; the flow keeps an offset's distance in standard deviations.
            shrunk = np.sqrt(before / after)
            log_determinants[i] += np.log(shrunk)
            drift = end / after - shrunk * start / before
            # (1 - shrunk) / share, without 0 / 0
            pull = (end - start) / (after * (1 + shrunk))
            for a in range(d):
                reach = 0.0
                for b in range(k):
                    reach += cross[b, a] * vectors[b, j]
                for b in range(k):
                    drifts[i, a, b] += drift * reach * vectors[b, j]
                    pulls[i, a, b] += pull * reach * vectors[b, j]
    return drifts, pulls, log_determinants


@compiled.njit(**compiled.CALLED)
def _move_offsets(y, shifts, residuals, slopes, drifts, pulls):
    """Return offsets (n, d) after a step. The other arguments have one row, or one per offset."""
    n, d = y.shape
    offsets = y.copy()
    for t in range(n):
        i = min(t, len(slopes) - 1)
        shift = shifts[min(t, len(shifts) - 1)]
        # A y + b of the step, one observed entry after the other.
        for b in range(residuals.shape[1]):
            # at the prior mean, by the linearisation
            residual = residuals[min(t, len(residuals) - 1), b]
            observed = 0.0
            for a in range(d):
                residual += slopes[i, b, a] * shift[a]
                observed += slopes[i, b, a] * y[t, a]
            for a in range(d):
                offsets[t, a] += drifts[i, a, b] * residual - pulls[i, a, b] * observed
    return offsets
