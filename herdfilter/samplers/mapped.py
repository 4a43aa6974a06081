"""Points herded once from the standard normal, mapped into each component of a mixture."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from herdfilter._checks import UNDERFLOW, Array, as_generator, check_flags
from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points
from herdfilter.samplers.base import Sampler, as_sampler, check_request, draw_points
from herdfilter.samplers.herding.frame import principal_axes


@dataclass(frozen=True)
class MappedSampling:
    r"""Another sampler's points for N(0, I), moved into each component by an affine map.

    Component m gets a share of the n points by largest remainders of :math:`n w_m`, at :math:`\mu_m + F_m z` with
    :math:`F_m F_m^\top = \Sigma_m` and z the base sampler's points for N(0, I), drawn once for every number and dimension.
    Components with too few points to span the space get successive points of the one set of n, in the order of their means
    along the mixture's main axis, so that neighbouring components get different points. Points do not avoid those of other
    components.

    Parameters
    ----------
    sampler : Sampler
        Draws the points from N(0, I). Use a deterministic one: a random one would repeat itself.
    match_moments : bool
        Give the points for N(0, I) the mean 0 and the covariance I exactly (the mean only, if they are too few to span the
        space). Moments of components with more than d points are then exact.

    Examples
    --------
    >>> narrow = hf.GaussianMixture([0.75, 0.25], [[-50, 0], [50, 0]], 0.01 * np.eye(2))
    >>> points = hf.MappedSampling(hf.KernelHerding()).sample(narrow, 20)
    >>> print(points.mean[0].round(6), np.sum(points.x[:, 0] < 0))
    -25.0 15
    """

    sampler: Sampler
    match_moments: bool = True
    _cache: dict[tuple[int, int], Points] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_flags(match_moments=self.match_moments)
        as_sampler("sampler", self.sampler)

    def sample(self, mixture: GaussianMixture, n: int, rng: np.random.Generator | int | None = None) -> Points:
        """Map `n` points into `mixture`; `rng` is passed on when the base sampler is first asked for a size."""
        n, d, rng = check_request(mixture, n, rng), mixture.dim, rng if rng is None else as_generator(rng)
        if len(mixture) == 1:
            base = self._standard(n, d, rng)
            return Points.unchecked(mixture.means[0] + base.x @ mixture.factors[0].T, base.weights.copy())
        shares = largest_remainders(mixture.weights, n)
        x, weights, dealt = [], [], 0
        for m in along_main_axis(mixture) if ((shares > 0) & (shares <= d)).any() else range(len(mixture)):
            share = shares[m]
            if share == 0:
                continue
            if share > d:
                base = self._standard(int(share), d, rng)
                z, w = base.x, base.weights
            else:
                base = self._standard(n, d, rng)
                z, w = base.x[dealt : dealt + share], base.weights[dealt : dealt + share]
                dealt += share
            x.append(mixture.means[m] + z @ mixture.factors[0 if mixture.shared else m].T)
            weights.append(w * (share / (n * w.sum())))
        return Points.unchecked(np.concatenate(x), np.concatenate(weights))

    def _standard(self, n: int, dim: int, rng: np.random.Generator | None) -> Points:
        key = (n, dim)
        if key not in self._cache:
            normal = GaussianMixture.unchecked(np.ones(1), np.zeros((1, dim)), np.eye(dim))
            points = draw_points(self.sampler, normal, n, rng)
            if self.match_moments:
                points = Points(standardise(points.x, points.weights), points.weights)
            self._cache[key] = points
        return self._cache[key]


def standardise(x: Array, weights: Array) -> Array:
    """Move weighted points (n, d) to mean 0 and, where their covariance has full rank, scale them to covariance I."""
    x = x - weights @ x
    values, vectors = np.linalg.eigh((weights[:, None] * x).T @ x)
    if len(x) > x.shape[1] and values[0] > 1e-6 * values[-1]:
        x = x @ (vectors / np.sqrt(values)) @ vectors.T  # the symmetric root: the least change to the points
    return x


def along_main_axis(mixture: GaussianMixture) -> np.ndarray:
    """Return the order of the components by their means along the mixture's main axis, independent of rounding."""
    values, axes = principal_axes(mixture.covariance, np.zeros(mixture.dim))
    places = (mixture.means - mixture.mean) @ axes[:, -1]
    return np.argsort(np.round(places / np.sqrt(max(values[-1], UNDERFLOW)), 9), kind="stable")


def largest_remainders(weights: Array, n: int) -> np.ndarray:
    """Return whole shares that sum to `n`, each within one of ``n * weights``; ties go to the earlier component."""
    exact = n * weights
    shares = np.floor(exact).astype(np.int64)
    order = np.argsort(np.round(shares - exact, 9), kind="stable")
    shares[order[: n - shares.sum()]] += 1
    return shares
