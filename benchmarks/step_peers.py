"""The benchmarked models in the package `particles` (Chopin), as its documentation defines models.

``"model"`` is a `StateSpaceModel` made of its distributions, the way its tutorials begin; ``"functions"`` a `FeynmanKac`
class that calls the functions of our model directly, which spares the distributions' cost.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri

from herdfilter.models import BearingsTracking, LinearGaussian

try:
    import particles
    from particles import collectors, distributions, state_space_models
except (ImportError, OSError) as error:
    particles = None
    MISSING = f"particles: {error}"
else:
    MISSING = ""


def smc(model: Any, form: str, observations: np.ndarray, dt: float, n: int, qmc: bool) -> Any:
    """Return its filter, an iterator over steps, that keeps the moments of every step as ours do."""
    fk = _functions(model, observations, dt) if form == "functions" else _model(model, observations, dt)
    return particles.SMC(
        fk=fk, N=n, resampling="systematic", ESSrmin=0.5, qmc=qmc, collect=[collectors.Moments()]
    )


def _model(model: LinearGaussian | BearingsTracking, observations: np.ndarray, dt: float) -> Any:
    noise, prior = model.transition_covariance(dt, 1), model.initial

    class StateSpaceModel(state_space_models.StateSpaceModel):
        def PX0(self):  # noqa: N802
            return distributions.MvNormal(loc=prior.means[0], cov=prior.covariances[0])

        def PX(self, t, xp):  # noqa: N802
            return distributions.MvNormal(loc=model.transition_mean(xp, dt, None, t), cov=noise)

        def PY(self, t, xp, x):  # noqa: N802
            y = model.observation_mean(x, t)
            if isinstance(model, LinearGaussian):
                return distributions.MvNormal(loc=y, cov=model.R)
            return distributions.IndepProd(
                *(distributions.Normal(loc=y[:, i], scale=model.bearing_sd) for i in range(y.shape[1]))
            )

    return state_space_models.Bootstrap(ssm=StateSpaceModel(), data=observations)


def _functions(model: LinearGaussian | BearingsTracking, observations: np.ndarray, dt: float) -> Any:
    root = np.linalg.cholesky(model.transition_covariance(dt, 1)).T
    mean, prior = model.initial.means[0], np.linalg.cholesky(model.initial.covariances[0]).T
    d = model.dim

    class FeynmanKac(particles.FeynmanKac):
        du = d

        def M0(self, N):  # noqa: N802
            return mean + np.random.standard_normal((N, d)) @ prior  # noqa: NPY002  that package's generator

        def M(self, t, xp):  # noqa: N802
            return model.transition_mean(xp, dt, None, t) + np.random.standard_normal(xp.shape) @ root  # noqa: NPY002

        def Gamma0(self, u):  # noqa: N802
            return mean + ndtri(u) @ prior

        def Gamma(self, t, xp, u):  # noqa: N802
            return model.transition_mean(xp, dt, None, t) + ndtri(u) @ root

        def logG(self, t, xp, x):  # noqa: N802
            return model.log_likelihood(observations[t], x, t)

    return FeynmanKac(len(observations))
