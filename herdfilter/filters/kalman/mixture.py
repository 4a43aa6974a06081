"""Kalman's update of every component of a Gaussian mixture."""

from __future__ import annotations

import numpy as np

from herdfilter._checks import Array, one_of, short_repr
from herdfilter.filters.kalman.cubature import CUBATURE
from herdfilter.filters.kalman.extended import linearised
from herdfilter.filters.kalman.gaussian import MomentRule, updated_gaussians
from herdfilter.filters.kalman.unscented import UNSCENTED
from herdfilter.filters.observation import Observation
from herdfilter.mixture import GaussianMixture
from herdfilter.models.contract import Model

RULES: dict[str, MomentRule] = {"extended": linearised, "unscented": UNSCENTED, "cubature": CUBATURE}
"""The rules for moments that have a name."""


def moment_rule(rule: str | MomentRule) -> MomentRule:
    """Return the rule of that name, or the rule itself; raise ValueError, with the names known, for another."""
    if callable(rule) and not isinstance(rule, type):
        return rule
    return RULES[one_of("rule", rule, RULES)]  # type: ignore[arg-type]


def kalman_mixture(
    model: Model, prediction: GaussianMixture, z: Array, step: int, rule: str | MomentRule = "unscented"
) -> tuple[GaussianMixture, float]:
    """Posterior of a Gaussian mixture, each component updated as by a Kalman filter of its own.

    The weight of a component is multiplied by its evidence, the density of the observation that it predicts. Where the
    observation is linear in the state this is the exact posterior, the Gaussian sum of Alspach and Sorenson (1972).

    Parameters
    ----------
    model : object
        With ``observation_mean`` and ``observation_covariance``.
    prediction : GaussianMixture
        Of the state, before the observation. Means of angles may lie outside [-pi, pi).
    z : ndarray, shape (k,)
        The observation; entries that are NaN are missing, and at least one is not.
    step : int
        Time index of the observation.
    rule : {"unscented", "extended", "cubature"} or MomentRule
        How the moments of the observation are computed: as in the Kalman filter of that name.

    Returns
    -------
    posterior : GaussianMixture
        With as many components; the means of angles, moved by their corrections, are not wrapped.
    log_evidence : float
        Log-density of the finite part of the observation.

    Raises
    ------
    IndefiniteCovarianceError
        If the covariance of the observation, or an updated one, is indefinite.
    ValueError
        If `z` or what the model returns has the wrong shape or is infinite, or the rule is unknown.

    Examples
    --------
    Two guesses of a place, 0 and 4, and the observation 3 of it: what each predicts decides their weights.

    >>> from herdfilter.filters.kalman import kalman_mixture
    >>> prior = hf.GaussianMixture([0.5, 0.5], [[0.0], [4.0]], [[1.0]])
    >>> posterior, log_evidence = kalman_mixture(hf.models.linear_chain(1), prior, np.array([3.0]), step=1)
    >>> posterior.means.ravel().round(9).tolist()
    [1.5, 3.5]
    >>> density = np.exp(-0.25 * np.array([3.0 - 0.0, 3.0 - 4.0]) ** 2) / np.sqrt(4 * np.pi)
    >>> np.allclose(posterior.weights, density / density.sum()), np.allclose(log_evidence, np.log(density.mean()))
    (True, True)
    """
    seen = Observation.read(model, z, step, partial=True)
    if seen is None:
        raise ValueError(f"z: expected an entry that is not missing, got {short_repr(z)} at step {step}")
    return updated_mixture(seen, prediction, rule)


def updated_mixture(seen: Observation, prediction: GaussianMixture, rule: str | MomentRule) -> tuple[GaussianMixture, float]:
    """Posterior of a Gaussian mixture and the log-evidence; see `kalman_mixture`."""
    means, covariances, log_densities = updated_gaussians(
        seen, prediction.means, prediction.distinct_covariances, moment_rule(rule)
    )
    with np.errstate(divide="ignore"):
        log_weights = np.log(prediction.weights) + log_densities
    log_evidence = float(np.logaddexp.reduce(log_weights))
    if log_evidence == -np.inf:  # out of the reach of all, none of which is to be preferred
        return GaussianMixture.unchecked(prediction.weights, means, covariances), log_evidence
    return GaussianMixture.unchecked(np.exp(log_weights - log_evidence), means, covariances), log_evidence
