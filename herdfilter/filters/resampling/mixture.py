"""Resampling from a mixture fitted to the weighted particles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from herdfilter._checks import Array
from herdfilter.angles import wrap_angles
from herdfilter.fitting.base import Fit
from herdfilter.samplers.base import Sampler


@dataclass(frozen=True)
class MixtureResampling:
    """Fit a Gaussian mixture to the posterior and draw the new particles from it.

    Parameters
    ----------
    fit : Fit
        Weighted particles to mixture, for instance `KernelDensityFit`.
    sampler : Sampler
        Mixture to points: random draws give the regularised particle filter, a herding sampler a deterministic one.
    """

    fit: Fit
    sampler: Sampler

    def __post_init__(self) -> None:
        check_parts(self.sampler, self.fit)

    def resample(
        self, particles: Array, weights: Array, rng: np.random.Generator, circular: Sequence[int] = ()
    ) -> tuple[Array, Array]:
        """Return points of the fitted mixture; see `Resampling`."""
        points = self.sampler.sample(self.fit.fit(particles, weights, circular), len(weights), rng)
        return wrap_angles(points.x, circular), np.log(points.weights)


def check_parts(sampler: object, fit: object | None = None) -> None:
    """Raise TypeError unless `sampler` (and `fit`, when given) have the methods that they are used for."""
    if not isinstance(sampler, Sampler):
        raise TypeError(f"sampler: expected an object with sample(mixture, n, rng), got {sampler!r}")
    if fit is not None and not isinstance(fit, Fit):
        raise TypeError(f"fit: expected an object with fit(particles, weights, circular), got {fit!r}")
