"""Peers of the package, each used as its own documentation recommends; one that is not installed is named by `missing`.

Samplers stand behind one signature, ``draw(mixture, n, width, rng) -> x (n, d)``. The filters of the package `particles`
(Chopin) come in two forms: ``"model"`` is a `StateSpaceModel` made of its distributions, the way its tutorials begin;
``"functions"`` a `FeynmanKac` class that calls the functions of our model directly, which spares the distributions' cost.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from herdfilter import GaussianMixture
from herdfilter.models import BearingsTracking, LinearGaussian

try:
    from goodpoints import compress, kt
except (ImportError, OSError) as error:
    compress = kt = None
    GOODPOINTS = f"goodpoints: {error}"
else:
    GOODPOINTS = ""
try:
    import deterministic_gaussian_sampling as dgs
except (ImportError, OSError, RuntimeError) as error:
    dgs = None
    DGS = f"deterministic-gaussian-sampling: {error}"
else:
    DGS = ""
try:
    import particles
    from particles import collectors, distributions, state_space_models
except (ImportError, OSError) as error:
    particles = None
    PARTICLES = f"particles: {error}"
else:
    PARTICLES = ""

HALVED_BY_MATRIX = 64  # points up to which kernel thinning keeps the matrix of its n^4 kernel values: 134 MB
OVERSAMPLED = {
    64: 4,
    256: 2,
}  # g of Compress++ up to that many points; beyond, 1: its time grows as 4^g, errors fall with g


def missing() -> list[str]:
    """Return one line for each package that is not there."""
    return [line for line in (GOODPOINTS, DGS, PARTICLES) if line]


def sobol(mixture: GaussianMixture, n: int, width: float, rng: np.random.Generator) -> np.ndarray:
    """Scrambled Sobol points: the first coordinate picks the component, the others are turned into its normal."""
    u = qmc.Sobol(mixture.dim + 1, rng=rng).random(n)
    labels = np.searchsorted(np.cumsum(mixture.weights)[:-1], u[:, 0], side="right")
    z = ndtri(np.clip(u[:, 1:], 1e-12, 1 - 1e-12))
    return mixture.means[labels] + np.einsum("nij,nj->ni", np.linalg.cholesky(mixture.covariances)[labels], z)


def kernel_thinning(mixture: GaussianMixture, n: int, width: float, rng: np.random.Generator) -> np.ndarray:
    """``goodpoints.kt.thin`` from n^2 independent draws, with the target kernel (Dwivedi and Mackey 2022)."""
    x = mixture.sample(n * n, rng)

    def kernel(y: np.ndarray, points: np.ndarray) -> np.ndarray:
        return np.exp(-0.5 / width**2 * ((y - points) ** 2).sum(axis=1))

    halvings = int(np.log2(n))
    return x[kt.thin(x, halvings, kernel, kernel, seed=_seed(rng), store_K=n <= HALVED_BY_MATRIX)]


def compress_pp(mixture: GaussianMixture, n: int, width: float, rng: np.random.Generator) -> np.ndarray:
    """``goodpoints.compress.compresspp_kt`` from n^2 independent draws (Shetty, Dwivedi and Mackey 2022)."""
    x = mixture.sample(n * n, rng)
    g = next((g for most, g in OVERSAMPLED.items() if n <= most), 1)
    return x[compress.compresspp_kt(x, b"gaussian", k_params=np.array([2 * width**2]), g=g, seed=_seed(rng))]


def lcd(mixture: GaussianMixture, n: int, width: float, rng: np.random.Generator) -> np.ndarray:
    """deterministic-gaussian-sampling for one Gaussian: its optimal points for N(0, I), mapped."""
    points = np.empty((n, mixture.dim))
    result = dgs.GaussianToDiracApproximation().approximate_snd_double(n, mixture.dim, points)
    return mixture.means[0] + result.x @ np.linalg.cholesky(mixture.covariances[0]).T


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


def smc(model: Any, form: str, observations: np.ndarray, dt: float, n: int, qmc: bool) -> Any:
    """Return its filter, an iterator over steps, that keeps the moments of every step as ours do."""
    fk = _functions(model, observations, dt) if form == "functions" else _model(model, observations, dt)
    return particles.SMC(fk=fk, N=n, resampling="systematic", ESSrmin=0.5, qmc=qmc, collect=[collectors.Moments()])


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
