"""The cubature Kalman filter."""

from __future__ import annotations

import numpy as np

from herdfilter._checks import Array
from herdfilter.filters.kalman.core import KalmanFilter
from herdfilter.filters.kalman.gaussian import GaussianBelief
from herdfilter.filters.kalman.points import PointRule
from herdfilter.mixture import GaussianMixture
from herdfilter.models.contract import Model
from herdfilter.samplers.sigma_points import SigmaPoints


class CubatureKalmanFilter(KalmanFilter):
    r"""Kalman filter whose moments are taken over 2 m points of equal weight (Arasaratnam and Haykin 2009).

    The points are :math:`\pm \sqrt m` columns of the Cholesky factor (`SigmaPoints`), drawn anew for every prediction
    and every update. Here m is the dimension of the state, or of state and noise together where the noise is not
    additive.

    Parameters
    ----------
    model : object
        With ``dim``, ``initial`` (that has ``mean`` and ``covariance``), ``transition_mean`` and
        ``transition_covariance`` or ``transition`` and ``noise_dim``, ``observation_mean`` and
        ``observation_covariance``.

    Raises
    ------
    TypeError
        If the model lacks a function.

    Notes
    -----
    filterpy's ``CubatureKalmanFilter`` (2.0.0) updates with the points that it predicted, whose spread lacks the
    transition noise. Its gain is therefore wrong even for a linear model; the paper draws new points, as we do.

    Examples
    --------
    It is the unscented filter whose centre has no weight.

    >>> model = hf.models.CoordinatedTurn()
    >>> truth, z = hf.simulate(model, steps=20, rng=1)
    >>> cubature, unscented = hf.CubatureKalmanFilter(model).run(z), hf.UnscentedKalmanFilter(model, kappa=0.0).run(z)
    >>> np.allclose(cubature.means, unscented.means), np.allclose(cubature.covariances, unscented.covariances)
    (True, True)
    """

    def __init__(self, model: Model) -> None:
        super().__init__(model, GaussianBelief.initial(model, "CubatureKalmanFilter", CUBATURE))


def _cubature(m: int) -> tuple[Array, Array, Array]:
    """Cubature points of N(0, I)."""
    normal = GaussianMixture.unchecked(np.ones(1), np.zeros((1, m)), np.eye(m))
    points = SigmaPoints("cubature").sample(normal, 2 * m)
    return points.x, points.weights, points.weights


CUBATURE = PointRule(_cubature)
"""The rule for moments."""
