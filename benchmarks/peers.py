"""Peers of the package, each used as its own documentation recommends; one that is not installed is named by `missing`.

Samplers stand behind one signature, ``draw(mixture, n, width, rng) -> x (n, d)``. The filters of the package `particles`
(Chopin) come in two forms: ``"model"`` is a `StateSpaceModel` made of its distributions, the way its tutorials begin;
``"functions"`` a `FeynmanKac` class that calls the functions of our model directly, which spares the distributions' cost.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from herdfilter import GaussianMixture
from herdfilter.models import BearingsTracking, LinearGaussian, contract
from herdfilter.models.resolved import Measurement, Motion, Transition

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

# points up to which kernel thinning keeps the matrix of its n^4 kernel values: 134 MB
HALVED_BY_MATRIX = 64
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
    return mixture.means[labels] + np.einsum(
        "nij,nj->ni", np.linalg.cholesky(mixture.covariances)[labels], z
    )


def kernel_thinning(
    mixture: GaussianMixture, n: int, width: float, rng: np.random.Generator
) -> np.ndarray:
    """``goodpoints.kt.thin`` from n^2 independent draws, with the target kernel (Dwivedi and Mackey 2022)."""
    x = mixture.sample(n * n, rng)

    def kernel(y: np.ndarray, points: np.ndarray) -> np.ndarray:
        return np.exp(-0.5 / width**2 * ((y - points) ** 2).sum(axis=1))

    halvings = int(np.log2(n))
    return x[kt.thin(x, halvings, kernel, kernel, seed=_seed(rng), store_K=n <= HALVED_BY_MATRIX)]


def compress_pp(
    mixture: GaussianMixture, n: int, width: float, rng: np.random.Generator
) -> np.ndarray:
    """``goodpoints.compress.compresspp_kt`` from n^2 independent draws (Shetty, Dwivedi and Mackey 2022)."""
    x = mixture.sample(n * n, rng)
    g = next((g for most, g in OVERSAMPLED.items() if n <= most), 1)
    return x[
        compress.compresspp_kt(
            x, b"gaussian", k_params=np.array([2 * width**2]), g=g, seed=_seed(rng)
        )
    ]


def lcd(mixture: GaussianMixture, n: int, width: float, rng: np.random.Generator) -> np.ndarray:
    """deterministic-gaussian-sampling for one Gaussian: its optimal points for N(0, I), mapped."""
    points = np.empty((n, mixture.dim))
    result = dgs.GaussianToDiracApproximation().approximate_snd_double(n, mixture.dim, points)
    return mixture.means[0] + result.x @ np.linalg.cholesky(mixture.covariances[0]).T


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


def smc(model: Any, form: str, observations: np.ndarray, dt: float, n: int, qmc: bool) -> Any:
    """Return its filter, an iterator over steps, that keeps the moments of every step as ours do."""
    fk = (
        _functions(model, observations, dt)
        if form == "functions"
        else _model(model, observations, dt)
    )
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
                *(
                    distributions.Normal(loc=y[:, i], scale=model.bearing_sd)
                    for i in range(y.shape[1])
                )
            )

    return state_space_models.Bootstrap(ssm=StateSpaceModel(), data=observations)


def _functions(
    model: LinearGaussian | BearingsTracking, observations: np.ndarray, dt: float
) -> Any:
    root = np.linalg.cholesky(model.transition_covariance(dt, 1)).T
    mean, prior = model.initial.means[0], np.linalg.cholesky(model.initial.covariances[0]).T
    d = model.dim

    def flat(x: np.ndarray) -> np.ndarray:
        return x[:, 0] if d == 1 else x  # as the library sorts states on a line

    def rows(x: np.ndarray) -> np.ndarray:
        return np.reshape(x, (-1, d))

    def scaled(x: np.ndarray, factor: np.ndarray) -> np.ndarray:
        return x * factor if d == 1 else x @ factor  # a product of BLAS is slower

    class FeynmanKac(particles.FeynmanKac):
        du = d

        def M0(self, N):  # noqa: N802
            return flat(mean + np.random.standard_normal((N, d)) @ prior)  # noqa: NPY002  that package's generator

        def M(self, t, xp):  # noqa: N802
            noise = np.random.standard_normal((len(xp), d))  # noqa: NPY002
            return flat(model.transition_mean(rows(xp), dt, None, t) + scaled(noise, root))

        def Gamma0(self, u):  # noqa: N802
            return flat(mean + scaled(ndtri(rows(u)), prior))

        def Gamma(self, t, xp, u):  # noqa: N802
            return flat(model.transition_mean(rows(xp), dt, None, t) + scaled(ndtri(rows(u)), root))

        def logG(self, t, xp, x):  # noqa: N802
            return model.log_likelihood(observations[t], rows(x), t)

    return FeynmanKac(len(observations))


class ParticlesFilter:
    """A filter of `particles` as `compare` takes it, on any of our models with one observation at a step: form "functions".

    Its first step is our step 0, without an observation.
    """

    def __init__(self, model: Any, n: int, rng: np.random.Generator, qmc: bool) -> None:
        contract.require(
            model,
            "particles",
            contract.ADDITIVE,
            ("transition",),
            *([] if qmc else [("sample_transition",)]),
        )
        self.model, self.n, self.rng, self.qmc = model, n, rng, qmc

    def run(
        self, observations: np.ndarray, dt: float = 1.0, controls: np.ndarray | None = None
    ) -> Any:
        """Return means and log-likelihood."""
        np.random.seed(_seed(self.rng))  # noqa: NPY002  its resampling and its shifts
        model, rng, d, dts = (
            self.model,
            self.rng,
            self.model.dim,
            np.broadcast_to(dt, len(observations)),
        )
        noise_dim = Motion(model).noise_dim

        def given(t: int) -> tuple[float, Any, int]:
            return float(dts[t - 1]), None if controls is None else controls[t - 1], t

        def flat(x: np.ndarray) -> np.ndarray:
            return x[:, 0] if d == 1 else x  # as the library sorts states on a line

        def rows(x: np.ndarray) -> np.ndarray:
            return np.reshape(x, (-1, d))

        class FeynmanKac(particles.FeynmanKac):
            du = max(noise_dim, d + 1)  # the first picks a component of the prior

            def M0(self, N):  # noqa: N802
                return flat(Motion(model).sample_initial(N, rng))

            def M(self, t, xp):  # noqa: N802
                return flat(Transition(model, *given(t)).sample(rows(xp), rng))

            def Gamma0(self, u):  # noqa: N802
                prior = model.initial
                k = np.searchsorted(np.cumsum(prior.weights)[:-1], u[:, 0], side="right")
                factors = np.linalg.cholesky(np.broadcast_to(prior.covariances, (len(prior), d, d)))
                return flat(
                    prior.means[k] + np.einsum("nij,nj->ni", factors[k], _normal(u[:, 1 : d + 1]))
                )

            def Gamma(self, t, xp, u):  # noqa: N802
                return flat(
                    Transition(model, *given(t)).propagate(rows(xp), _normal(u[:, :noise_dim]))
                )

            def logG(self, t, xp, x):  # noqa: N802
                missing = t == 0 or np.isnan(observations[t - 1]).all()
                return (
                    np.zeros(len(x))
                    if missing
                    else Measurement(model).log_likelihood(observations[t - 1], rows(x), t)
                )

        fk = FeynmanKac(len(observations) + 1)
        moments = [collectors.Moments()]
        smc = particles.SMC(
            fk=fk, N=self.n, resampling="systematic", ESSrmin=0.5, qmc=self.qmc, collect=moments
        )
        smc.run()
        means = rows(np.array([one["mean"] for one in smc.summaries.moments[1:]]))
        return SimpleNamespace(means=means, log_likelihood=smc.logLt)


def _normal(u: np.ndarray) -> np.ndarray:
    return ndtri(np.clip(u, 1e-12, 1 - 1e-12))


FILTERS = (
    {}
    if particles is None
    else {
        "particles-bootstrap": partial(ParticlesFilter, qmc=False),
        "particles-sqmc": partial(ParticlesFilter, qmc=True),
    }
)
"""Filters of other libraries, name -> factory for `compare`."""
