"""Points herded once from the standard normal, mapped into each component of a mixture."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter._covariances import standardise
from herdfilter.mixture import GaussianMixture, largest_remainders
from herdfilter.samplers import base
from herdfilter.samplers.herding.frame import principal_axes


@dataclass(frozen=True)
class MappedSampling(base.MixtureSampler):
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

    sampler: base.Sampler
    match_moments: bool = True
    _cache: dict[tuple[int, int], tuple[Array, Array]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        _checks.check_flags(match_moments=self.match_moments)
        _checks.check_methods("sampler", self.sampler, "sample")

    def draw(
        self, mixture: GaussianMixture, n: int, rng: np.random.Generator | None
    ) -> tuple[Array, Array]:
        """Map points into `mixture`; `rng` is passed on when the base sampler is first asked for a size."""
        d = mixture.dim
        if len(mixture) == 1:
            z, w = self._standard(n, d, rng)
            return mixture.means[0] + z @ mixture.factors[0].T, w.copy()
        shares = largest_remainders(mixture.weights, n)
        order = np.arange(len(mixture))
        if ((shares > 0) & (shares <= d)).any():
            order = along_main_axis(mixture)
        x = []
        weights = []
        dealt = 0
        for m in order[shares[order] > 0]:
            share = int(shares[m])
            if share > d:
                z, w = self._standard(share, d, rng)
            else:
                # Too few to span the space: the next ones of the set of n.
                all_z, all_w = self._standard(n, d, rng)
                z = all_z[dealt : dealt + share]
                w = all_w[dealt : dealt + share]
                dealt += share
            x.append(mixture.means[m] + z @ mixture.factors[0 if mixture.shared else m].T)
            weights.append(w * (share / (n * w.sum())))
        return np.concatenate(x), np.concatenate(weights)

    def _standard(self, n: int, dim: int, rng: np.random.Generator | None) -> tuple[Array, Array]:
        """Return points (n, dim) and weights (n,) for N(0, I)."""
        key = (n, dim)
        if key not in self._cache:
            normal = GaussianMixture.unchecked(np.ones(1), np.zeros((1, dim)), np.eye(dim))
            points = base.draw_points(self.sampler, normal, n, rng)
            z = points.x
            w = points.weights
            if self.match_moments:
                z = standardise(z, w)
                w = w / w.sum()
            self._cache[key] = (z, w)
        return self._cache[key]


def along_main_axis(mixture: GaussianMixture) -> np.ndarray:
    """Return the order of the components by their means along the mixture's main axis, independent of rounding."""
    values, axes = principal_axes(mixture.covariance, np.zeros(mixture.dim))
    positions = (mixture.means - mixture.mean) @ axes[:, -1]
    deviation = np.sqrt(max(values[-1], _checks.UNDERFLOW))
    return np.argsort(np.round(positions / deviation, 9), kind="stable")
