"""Peers of the herding samplers behind one signature: ``draw(mixture, n, width, rng) -> x (n, d)``.

Each is used as its own documentation recommends. A package that is not installed, or does not load, is named by `missing`.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from herdfilter import GaussianMixture

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

HALVED_BY_MATRIX = 64  # points up to which kernel thinning keeps the matrix of its n^4 kernel values: 134 MB
OVERSAMPLED = {
    64: 4,
    256: 2,
}  # g of Compress++ up to that many points; beyond, 1: its time grows as 4^g, errors fall with g


def missing() -> list[str]:
    """Return one line for each package that is not there."""
    return [line for line in (GOODPOINTS, DGS) if line]


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
