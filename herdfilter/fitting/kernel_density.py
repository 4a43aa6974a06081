"""Kernel density: a Gaussian for every particle, whose width follows the particle's mode, with or without shrinkage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter._covariances import plain_and_regular
from herdfilter.fitting import base
from herdfilter.fitting.em import EMFit
from herdfilter.mixture import GaussianMixture

NEGLIGIBLE_WEIGHT = 1e-8  # relative to the largest: a lighter particle gets no component


@dataclass(frozen=True)
class KernelDensityFit(base.Fit):
    r"""Weighted Gaussian kernel density, with West's shrinkage or without.

    Component i is :math:`N(a x_i + (1 - a) \bar x, h^2 C)` with weight :math:`w_i`, C the particles' covariance and
    :math:`a = \sqrt{1 - h^2}`, so that mixture and particles share mean and covariance (West 1993; regularised particle
    filter: Musso, Oudjane and Le Gland 2001). The width is the rule for a Gaussian, h the scale times
    :math:`(4 / ((d + 2) n_e))^{1 / (d + 4)}`, at most 1, with n_e the effective sample size.

    If the particles form several modes, C would blur them. `EMFit` with the Bayesian information criterion separates the
    modes, each particle belongs to its most probable one, and both C and the mean are taken within the modes: component i is
    :math:`N(a x_i + (1 - a) \bar x_k, h^2 C_w)` for a particle of mode k, C_w the covariance of the particles about the
    means of their modes. Mean and covariance of the mixture are still those of the particles.

    Without shrinkage, a = 1, and with ``modes=1``, it is the mixture of the ensemble Gaussian mixture filter (Anderson and
    Anderson 1999) with Silverman's bandwidth, which is the rule above. Its covariance is :math:`(1 + h^2) C`: the modes stay
    and the mixture widens, whereas shrinkage draws the modes towards the mean.

    Parameters
    ----------
    scale : float
        Factor on the rule's width.
    shrink : bool
        Draw the component means towards the mean, so that the covariance is kept.
    modes : int
        Largest number of modes; with 1 the width follows the covariance of all particles.

    Examples
    --------
    >>> x = np.linspace(-3, 3, 61)[:, None]
    >>> mixture = hf.KernelDensityFit().fit(x, np.full(61, 1 / 61))
    >>> print(len(mixture), mixture.covariance[0, 0].round(3), x.var().round(3))  # shrinkage keeps the covariance
    61 3.1 3.1
    """

    scale: float = 1.0
    shrink: bool = True
    modes: int = 4

    def __post_init__(self) -> None:
        _checks.check_flags(shrink=self.shrink)
        _checks.as_positive("scale", self.scale)
        _checks.check_count("modes", self.modes)

    def fit(
        self, particles: Array, weights: Array | None = None, circular: Sequence[int] = ()
    ) -> GaussianMixture:
        x, weights = base.unwrap_particles(particles, weights, circular)
        d = x.shape[1]
        effective = 1.0 / (weights @ weights)
        h = min(self.scale * (4.0 / ((d + 2) * effective)) ** (1.0 / (d + 4)), 1.0)
        # Mean of each particle's mode, (n, d); (d,) if there is only one mode.
        centres = weights @ x
        mixture = EMFit("bic", self.modes).fit(x, weights) if self.modes > 1 else None
        if mixture is not None and len(mixture) > 1:
            mode = (mixture.component_log_densities(x) + np.log(mixture.weights)).argmax(axis=1)
            mode_weights = np.where(mode[:, None] == np.arange(len(mixture)), weights[:, None], 0.0)
            # 0 for a component that no particle belongs to.
            totals = mode_weights.sum(axis=0)
            centres = ((mode_weights.T @ x) / np.where(totals > 0, totals, 1.0)[:, None])[mode]
        centred = x - centres
        covariance = plain_and_regular(x, weights, centred)[1]
        keep = weights > NEGLIGIBLE_WEIGHT * weights.max()
        means = (centres + np.sqrt(1.0 - h * h) * centred)[keep] if self.shrink else x[keep]
        return GaussianMixture.unchecked(
            weights[keep] / weights[keep].sum(), means, h * h * covariance
        )
