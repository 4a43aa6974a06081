"""Kernel density: a Gaussian on every particle, shrunken to the particles' covariance or not (ensemble Gaussian mixture)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from herdfilter._checks import Array, as_positive
from herdfilter.angles import unwrap_angles
from herdfilter.mixture import GaussianMixture, floored

NEGLIGIBLE = 1e-8  # weight, relative to the largest, under which a particle gets no component


@dataclass(frozen=True)
class KernelDensityFit:
    """Weighted Gaussian kernel density, with West's shrinkage or without.

    Component i is N(a x_i + (1 - a) mean, h^2 C) with weight w_i, C the particles' covariance and a = sqrt(1 - h^2), so that
    mixture and particles share mean and covariance (West 1993; regularised particle filter: Musso, Oudjane and Le Gland
    2001). The width is the rule for a Gaussian, h = scale (4 / ((d + 2) n_e))^(1 / (d + 4)), at most 1, with n_e the
    effective sample size.

    Without shrinkage, a = 1: the mixture of the ensemble Gaussian mixture filter (Anderson and Anderson 1999) at Silverman's
    bandwidth, which is the rule above. Its covariance is (1 + h^2) C. It leaves the modes where they are and widens the
    whole; the shrunken one draws the modes towards the mean.

    Parameters
    ----------
    scale : float
        Factor on the rule's width; multimodal posteriors want less than 1.
    shrink : bool
        Draw the component means towards the mean, so that the covariance is kept.
    """

    scale: float = 1.0
    shrink: bool = True

    def __post_init__(self) -> None:
        as_positive("scale", self.scale)

    def fit(self, particles: Array, weights: Array, circular: Sequence[int] = ()) -> GaussianMixture:
        """Fit particles (n, d) with weights (n,) that sum to 1."""
        x = unwrap_angles(particles, weights, circular)
        d = x.shape[1]
        mean = weights @ x
        centred = x - mean
        covariance = (centred.T * weights) @ centred
        effective = 1.0 / (weights @ weights)
        h = min(self.scale * (4.0 / ((d + 2) * effective)) ** (1.0 / (d + 4)), 1.0)
        keep = weights > NEGLIGIBLE * weights.max()
        means = mean + np.sqrt(1.0 - h * h) * centred[keep] if self.shrink else x[keep]
        return GaussianMixture.trusted(
            weights[keep] / weights[keep].sum(), means, h * h * floored(covariance)
        )
