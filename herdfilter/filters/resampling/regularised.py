"""Systematic resampling with noise on particles that are copied more than once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from herdfilter._checks import as_positive
from herdfilter._covariances import covariance_factor
from herdfilter.angles import moments, wrap_angles
from herdfilter.filters.resampling.base import SystematicResampling
from herdfilter.filters.state import Particles

SMALLEST_REST = 1e-10  # if all other particles together weigh less than this, one particle counts as having all the weight


@dataclass(frozen=True)
class RegularisedResampling:
    """Systematic resampling, after which every particle copied more than once gets noise from a Gaussian kernel.

    The kernel's covariance is :math:`h^2 C`, with C the particles' covariance and h the scale times
    :math:`n^{-1 / (d + 4)}`, the rule of Scott (1992). It serves systems with little or no transition noise, where copies
    would stay copies. A particle copied once stays where it is, and means are not shrunk; `MixtureResampling` with
    `KernelDensityFit` and `RandomSampling` moves every particle (Musso, Oudjane and Le Gland 2001). As in the particle
    filter of DAPPER (Raanes and others, 2024), C is the unbiased estimate. If one particle has all the weight, C is the
    covariance of the unweighted particles, so that a filter that has lost its target can find it again.

    Parameters
    ----------
    scale : float
        Factor on the rule's width.

    Examples
    --------
    Eight of ten new particles are copies of the first, and are spread; those copied once stay where they were.

    >>> particles = hf.Particles.weighted(np.arange(10.0)[:, None], np.array([0.8, 0.1, 0.1, 0, 0, 0, 0, 0, 0, 0]))
    >>> copied = hf.SystematicResampling().resample(particles, np.random.default_rng(0)).x
    >>> spread = hf.RegularisedResampling().resample(particles, np.random.default_rng(0)).x
    >>> len(np.unique(copied)), len(np.unique(spread)), spread[-2:].tolist()
    (3, 10, [[1.0], [2.0]])
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        as_positive("scale", self.scale)

    def resample(
        self,
        particles: Particles,
        rng: np.random.Generator,
        circular: Sequence[int] = (),
    ) -> Particles:
        """Return equally weighted particles; see `Resampling`."""
        x = particles.x
        weights = particles.weights
        n, d = x.shape
        spread = np.full(n, 1 / n) if weights.max() > 1 - SMALLEST_REST else weights
        # Unbiased for independent particles with these weights: division by 1 - sum w^2, which is 1 - 1/n for equal ones.
        covariance = moments(x, spread, circular)[1] / max(1 - spread @ spread, SMALLEST_REST)
        ancestors: Any = SystematicResampling().resample(particles, rng).ancestors
        x = x[ancestors]
        repeated = np.bincount(ancestors, minlength=n)[ancestors] > 1
        width = self.scale * n ** (-1 / (d + 4))  # Scott's rule
        noise = rng.standard_normal((np.count_nonzero(repeated), d))
        x[repeated] += width * noise @ covariance_factor(covariance).T
        copies = Particles.equal(wrap_angles(x, circular), ancestors)
        copies.modes = None if particles.modes is None else particles.modes[ancestors]
        return copies
