"""Sigma points: few points with exactly the mean and covariance of the mixture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter._covariances import covariance_factor
from herdfilter.mixture import GaussianMixture, as_mixture
from herdfilter.samplers.base import MixtureSampler


@dataclass(frozen=True)
class SigmaPoints(MixtureSampler):
    r"""Sigma points of the Gaussian with the moments of the mixture.

    With :math:`F F^\top` the covariance, :math:`F_i` the columns of its Cholesky factor and m the mean, cubature
    (Arasaratnam and Haykin 2009) has :math:`m \pm \sqrt d\, F_i` with weights :math:`1 / (2 d)`. The unscented transform
    (Julier and Uhlmann 1997) has m with weight :math:`\kappa / (d + \kappa)` and :math:`m \pm \sqrt{d + \kappa}\, F_i` with
    weights :math:`1 / (2 (d + \kappa))`.

    Mean and covariance are those of the mixture exactly; expectations of polynomials up to the third degree are exact for a
    Gaussian. The number of points is not free: see `size`.

    Parameters
    ----------
    kind : {"unscented", "cubature"}
        Which set of points.
    kappa : float
        Spread of the unscented points, above -d. 3 - d makes the fourth moments along the axes those of a Gaussian too. A
        negative one makes the first weight negative: a quadrature rule still, but no particles for a filter.

    Examples
    --------
    >>> gaussian = hf.GaussianMixture([1.0], [[1, 2]], np.diag([4.0, 1.0]))
    >>> points = hf.SigmaPoints().sample(gaussian, hf.SigmaPoints().size(gaussian))
    >>> print(len(points), points.mean, points.covariance.round(12).tolist())
    5 [1. 2.] [[4.0, 0.0], [0.0, 1.0]]
    """

    kind: Literal["unscented", "cubature"] = "unscented"
    kappa: float = 1.0

    def __post_init__(self) -> None:
        _checks.one_of("kind", self.kind, ("unscented", "cubature"))
        _checks.check_fields(self, kappa=_checks.as_number)

    def size(self, mixture: GaussianMixture) -> int:
        """Return the number of sigma points for `mixture`: 2 d + 1 or 2 d."""
        return 2 * as_mixture("mixture", mixture).dim + (self.kind == "unscented")

    def draw(
        self, mixture: GaussianMixture, n: int, rng: np.random.Generator | None
    ) -> tuple[Array, Array]:
        """Return the sigma points. ValueError if `n` is not their number or `kappa` not above -d."""
        size = self.size(mixture)
        if n != size:
            raise ValueError(
                f"n: expected {size}, the number of sigma points for this mixture, got {n}"
            )
        d = mixture.dim
        spread = d + (self.kappa if self.kind == "unscented" else 0.0)
        if spread <= 0:
            raise ValueError(
                f"kappa: expected a number above {-d} in {d} dimensions, got {self.kappa}"
            )
        # +- sqrt(d + kappa) e_i, and the mean first for the unscented set
        z = np.sqrt(spread) * np.concatenate([np.eye(d), -np.eye(d)])
        w = np.full(2 * d, 0.5 / spread)
        if self.kind == "unscented":
            z = np.vstack([np.zeros(d), z])
            w = np.append(self.kappa / spread, w)
        return mixture.mean + z @ covariance_factor(mixture.covariance).T, w
