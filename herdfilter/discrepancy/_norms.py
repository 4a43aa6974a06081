"""Expected Euclidean norms of Gaussian vectors, by a trapezoidal rule with corrected ends."""

from __future__ import annotations

import numpy as np
import scipy

from herdfilter._checks import Array

# E|Z| = (1 / 2 sqrt(pi)) int (1 - phi(s)) s^(-3/2) ds with phi(s) = E exp(-s |Z|^2). With s = exp(u) / E|Z|^2 the
# integrand is analytic in a strip of half-width pi / 2 around the real u, so that the trapezoidal rule errs by about
# exp(-pi^2 / _STEP). Beyond the ends the sum over nodes is geometric: below, 1 - phi is two terms of its series in s;
# above, phi is negligible.
_STEP = 0.45
_LOW = -9.0
_HIGH = 24.0
_NEGLIGIBLE = 1e-12
_SPAN = 4.0  # one set of nodes serves norms whose E|Z|^2 differ by up to a factor exp(_SPAN)
_BLOCK = 2**16  # numbers held at once: fits in the cache


def expected_norms(means: Array, covariances: Array) -> Array:
    """``E|Z|`` for Z from N(means[i], covariances[i]), relative error below 1e-9.

    Parameters
    ----------
    means : ndarray, shape (n, d)
    covariances : ndarray, shape (n, d, d), or (1, d, d) where all have the same

    Returns
    -------
    ndarray, shape (n,)
    """
    if means.shape[1] == 1:
        return _folded_normal(means[:, 0], np.sqrt(covariances[:, 0, 0]))
    values, squared = _principal(means, covariances)
    moment = squared.sum(1) + values.sum(1)
    result = np.zeros(len(means))
    if len(values) == 1:
        some = np.flatnonzero(moment > 0)
        if some.size:
            group = np.floor(np.log(moment[some] / moment[some].min()) / _SPAN)
            for g in np.unique(group):
                rows = some[group == g]
                result[rows] = _same_values(squared[rows], values[0], moment[rows])
        return result
    rows_at_once = max(1, _BLOCK // means.shape[1])
    for start in range(0, len(means), rows_at_once):
        rows = np.arange(start, min(start + rows_at_once, len(means)))
        rows = rows[moment[rows] > 0]
        if rows.size:
            result[rows] = _own_values(squared[rows], values[rows], moment[rows])
    return result


def _folded_normal(mean: Array, sd: Array) -> Array:
    """``E|Z|`` in one dimension."""
    z = np.divide(mean, sd, out=np.zeros(len(mean)), where=sd > 0)
    spread = np.sqrt(2 / np.pi) * sd * np.exp(-0.5 * z * z)
    return spread + np.where(sd > 0, mean * scipy.special.erf(z / np.sqrt(2)), np.abs(mean))


def _principal(means: Array, covariances: Array) -> tuple[Array, Array]:
    """Eigenvalues of the covariances and squared components of the means along their eigenvectors."""
    if not (covariances * (1 - np.eye(means.shape[1]))).any():
        return np.diagonal(covariances, axis1=1, axis2=2), means**2
    values, vectors = np.linalg.eigh(covariances)
    along = means @ vectors[0] if len(vectors) == 1 else (means[:, None, :] @ vectors)[:, 0, :]
    return np.maximum(values, 0.0), along**2


def _same_values(squared: Array, values: Array, moment: Array) -> Array:
    """Norms with one covariance: the exponents at all nodes are a matrix product."""
    low, high = _LOW - np.log(moment.max()), _HIGH - np.log(moment.min())
    u = low + _STEP * np.arange(np.ceil((high - low) / _STEP) + 1)
    s = np.exp(u)
    spread = 1 + 2 * np.multiply.outer(values, s)
    log_root = 0.5 * np.log(spread).sum(0)
    bound = -squared.sum(1).min() * s / spread.max(0) - log_root - 0.5 * (u + np.log(moment.min()))
    last = int(np.argmax(bound < np.log(_NEGLIGIBLE))) or len(u)  # the bound on phi falls with u
    u, s, spread, log_root = u[:last], s[:last], spread[:, :last], log_root[:last]
    slope = s / spread
    weight = np.exp(-0.5 * u)
    total = np.empty(len(squared))
    rows = max(1, _BLOCK // len(u))
    for start in range(0, len(squared), rows):
        part = slice(start, start + rows)
        exponent = squared[part] @ slope
        exponent += log_root
        np.negative(exponent, out=exponent)
        total[part] = weight.sum() - np.exp(exponent, out=exponent) @ weight
    return _completed(total, u[0], u[-1], squared, values, moment)


def _own_values(squared: Array, values: Array, moment: Array) -> Array:
    """Norms with a covariance each; every row has nodes of its own."""
    values, squared = values / moment[:, None], squared / moment[:, None]
    u = np.arange(_LOW, _HIGH, _STEP)
    total = np.zeros(len(squared))
    # The product of d factors may overflow; its phi is then 0, as it should be.
    with np.errstate(over="ignore"):
        for node in u:
            s = np.exp(node)
            spread = 1 + 2 * s * values
            phi = np.exp(-s * (squared / spread).sum(1)) / np.sqrt(spread.prod(1))
            total += (1 - phi) * np.exp(-0.5 * node)
            if phi.max() * np.exp(-0.5 * node) < _NEGLIGIBLE:
                break
    return _completed(total, u[0], node, squared, values, np.ones(len(squared))) * np.sqrt(moment)


def _completed(total: Array, first: float, last: float, squared: Array, values: Array, moment: Array) -> Array:
    """Complete the sum over the nodes between two ends by what lies beyond them."""
    fourth = moment**2 + 2 * (values**2).sum(-1) + 4 * (values * squared).sum(-1)  # E|Z|^4

    def below(power: float) -> float:
        return float(np.exp(power * (first - _STEP)) / -np.expm1(-power * _STEP))

    above = np.exp(-0.5 * (last + _STEP)) / -np.expm1(-0.5 * _STEP)
    return (total + moment * below(0.5) - 0.5 * fourth * below(1.5) + above) * _STEP / (2 * np.sqrt(np.pi))
