"""Kalman filters that keep one Gaussian: extended, unscented, cubature and smart sampling."""

from __future__ import annotations

from herdfilter._checks import as_array, as_positive, check_count
from herdfilter.filters.kalman import rules
from herdfilter.filters.kalman.core import KalmanFilter
from herdfilter.models import contract


class ExtendedKalmanFilter(KalmanFilter):
    """Kalman filter on the model's linearisation at the mean (Jazwinski 1970, chapter 8).

    For additive noise the Jacobians are the model's, from the optional ``transition_jacobian(x, dt, control,
    step)``, (n, d) -> (n, d, d), and ``observation_jacobian(x, step)``, (n, d) -> (n, k, d); else central
    differences. Noise that is not additive is linearised together with the state. The numbers are those of filterpy's
    ``ExtendedKalmanFilter``, which needs the Jacobians and has no nonlinear transition.

    Parameters
    ----------
    model : object
        With ``dim``, ``initial`` (that has ``mean`` and ``covariance``), ``transition_mean`` and
        ``transition_covariance`` or ``transition`` and ``noise_dim``, ``observation_mean`` and
        ``observation_covariance``.

    Examples
    --------
    On a linear model it is Kalman's filter, here written out for one number:

    >>> model = hf.models.LinearGaussian(F=[[0.9]], H=[[1]], Q=[[0.5]], R=[[2]], initial_mean=[0], initial_covariance=[[1]])
    >>> mean, variance = 0.0, 1.0
    >>> for z in [1.2, 0.4, 2.0]:
    ...     mean, variance = 0.9 * mean, 0.81 * variance + 0.5
    ...     gain = variance / (variance + 2)
    ...     mean, variance = mean + gain * (z - mean), (1 - gain) * variance
    ...
    >>> result = hf.ExtendedKalmanFilter(model).run([1.2, 0.4, 2.0])
    >>> np.allclose(result.means[-1], mean), np.allclose(result.covariances[-1], variance)
    (True, True)
    """

    rule = rules.LINEAR_RULE


class UnscentedKalmanFilter(KalmanFilter):
    r"""Kalman filter whose moments are taken over 2 m + 1 weighted sigma points.

    The points are those of `SigmaPoints`, the centre and :math:`\pm \sqrt{m + \lambda}` columns of the Cholesky
    factor, with :math:`\lambda = \alpha^2 (m + \kappa) - m`; the centre has the weight :math:`\lambda / (m +
    \lambda)` in means and :math:`1 - \alpha^2 + \beta` more in covariances (Wan and van der Merwe 2000, eq. 15). New
    points are drawn for every prediction and every update. Here m is the dimension of the state, or of state and
    noise together where the noise is not additive. The numbers are those of filterpy's ``UnscentedKalmanFilter`` since
    2.0; versions before update with the points that they predicted, whose spread lacks the transition noise.

    Parameters
    ----------
    model : object
        As for `ExtendedKalmanFilter`.
    alpha, beta, kappa : float
        With `alpha` 1 and `beta` 0 the points are the original ones (Julier and Uhlmann 1997). Small `alpha`, or `kappa`
        below zero, makes the weight of the centre negative, and covariances may then lose definiteness.

    Examples
    --------
    The state is N(1, 4), and its square is observed with noise of variance 1: the mean of the observation is 5 and its
    variance 49. A linearisation misses both; sigma points with the kurtosis of a Gaussian give both.

    >>> model = hf.models.from_functions(lambda x: x, lambda x: x**2, [[3.0]], [[1.0]], [1.0], [[1.0]])
    >>> for kf in [hf.ExtendedKalmanFilter(model), hf.UnscentedKalmanFilter(model, kappa=2.0)]:
    ...     kf.predict()
    ...     mean, covariance = kf.predicted_observation()
    ...     print(round(mean.item(), 3), round(covariance.item(), 3))
    ...
    1.0 17.0
    5.0 49.0
    """

    def __init__(
        self,
        model: contract.Model,
        alpha: float = 1.0,
        beta: float = 0.0,
        kappa: float = 1.0,
    ) -> None:
        points = rules.ScaledSigmaPoints(
            as_positive("alpha", alpha),
            float(as_array("beta", beta, ())),
            float(as_array("kappa", kappa, ())),
        )
        self.rule = rules.PointRule(points)
        super().__init__(model)
        # raises the error for a kappa out of range here, not in the first step
        self.rule.points(model.dim)


class CubatureKalmanFilter(KalmanFilter):
    r"""Kalman filter whose moments are taken over 2 m points of equal weight (Arasaratnam and Haykin 2009).

    The points are :math:`\pm \sqrt m` columns of the Cholesky factor (`SigmaPoints`), drawn anew for every prediction
    and every update. Here m is the dimension of the state, or of state and noise together where the noise is not
    additive. filterpy's ``CubatureKalmanFilter`` (2.0.0) updates with the points that it predicted, whose spread lacks the
    transition noise, so that its gain is wrong even for a linear model; the paper draws new points, as we do.

    Parameters
    ----------
    model : object
        As for `ExtendedKalmanFilter`.

    Examples
    --------
    It is the unscented filter whose centre has no weight.

    >>> model = hf.models.CoordinatedTurn()
    >>> truth, z = hf.simulate(model, steps=20, rng=1)
    >>> cubature, unscented = hf.CubatureKalmanFilter(model).run(z), hf.UnscentedKalmanFilter(model, kappa=0.0).run(z)
    >>> np.allclose(cubature.means, unscented.means), np.allclose(cubature.covariances, unscented.covariances)
    (True, True)
    """

    rule = rules.CUBATURE_RULE


class SmartSamplingKalmanFilter(KalmanFilter):
    """Kalman filter whose moments are taken over n optimal points of equal weight (Steinbring and Hanebeck 2013).

    The points are those of `LCDSampling` for N(0, I), computed once per process for each number and dimension, and
    mapped to the Gaussian for every prediction and every update. That is the Gaussian of the state, to whose image
    additive noise adds its covariance, or of state and noise together where the noise is not additive.

    Parameters
    ----------
    model : object
        As for `ExtendedKalmanFilter`.
    n_particles : int
        Number of points, at least twice the dimension of the Gaussian: of state and noise together, `predict` checks it.

    Examples
    --------
    The state is N(1, 4), and its square is observed with noise of variance 1: the mean of the observation is 5 and its
    variance 49. Points in pairs give the exact mean; the variance improves with the number of points.

    >>> model = hf.models.from_functions(lambda x: x, lambda x: x**2, [[3.0]], [[1.0]], [1.0], [[1.0]])
    >>> for n in [4, 20]:
    ...     kf = hf.SmartSamplingKalmanFilter(model, n_particles=n)
    ...     kf.predict()
    ...     mean, covariance = kf.predicted_observation()
    ...     print(round(mean.item(), 3), round(covariance.item()))
    ...
    5.0 29
    5.0 43
    """

    def __init__(self, model: contract.Model, n_particles: int = 100) -> None:
        self.rule = rules.PointRule(rules.OptimalPoints(n_particles))
        super().__init__(model)
        self.n_particles = check_count("n_particles", n_particles, minimum=2 * model.dim)


ONE_GAUSSIAN = (
    ExtendedKalmanFilter,
    UnscentedKalmanFilter,
    CubatureKalmanFilter,
    SmartSamplingKalmanFilter,
)
"""Filters that keep a single Gaussian: they can be smoothed, and run beside a particle flow."""
