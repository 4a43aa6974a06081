"""Resampling from a mixture fitted to the weighted particles."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from herdfilter._checks import check_methods, short_repr
from herdfilter.angles import wrap_angles
from herdfilter.filters.state import Particles
from herdfilter.fitting.base import Fit
from herdfilter.samplers.base import Sampler, draw_points


@dataclass(frozen=True)
class MixtureResampling:
    """Fit a Gaussian mixture to the posterior and draw the new particles from it.

    Parameters
    ----------
    fit : Fit
        Takes weighted particles to a mixture, for instance `KernelDensityFit`.
    sampler : Sampler
        Takes the mixture to points: random draws give the regularised particle filter, herding a deterministic one.

    Raises
    ------
    TypeError
        If a part is not of its kind; from `resample`, if the sampler does not return `Points`.
    ValueError
        From `resample`, if the sampler returns another number of points than asked for, or negative weights.

    Examples
    --------
    New particles herded from one Gaussian are all different and keep the weighted mean.

    >>> x, weights = np.arange(10.0)[:, None], np.arange(1.0, 11.0) / 55
    >>> scheme = hf.MixtureResampling(hf.GaussianFit(), hf.MappedSampling(hf.KernelHerding()))
    >>> new = scheme.resample(hf.Particles.weighted(x, weights), rng=None)
    >>> len(np.unique(new.x)), np.allclose(new.weights @ new.x, weights @ x)
    (10, True)
    """

    fit: Fit
    sampler: Sampler

    def __post_init__(self) -> None:
        check_methods("sampler", self.sampler, "sample")
        check_fit(self.fit)

    def resample(
        self,
        particles: Particles,
        rng: np.random.Generator,
        circular: Sequence[int] = (),
    ) -> Particles:
        """Return points of the fitted mixture, with the sampler's weights; see `Resampling`."""
        n = particles.n_next
        name = type(self.sampler).__name__
        points = draw_points(
            self.sampler, self.fit.fit(particles.x, particles.weights, circular), n, rng
        )
        if len(points) != n:
            raise ValueError(f"sampler: expected {n} points from {name}, got {len(points)}")
        if (points.weights < 0).any():
            raise ValueError(
                f"sampler: expected non-negative weights from {name}, got {points.weights.min():g}"
            )
        return Particles(wrap_angles(points.x, circular), points.log_weights)


def check_fit(fit: object) -> None:
    """Raise TypeError unless `fit` is a Fit."""
    if isinstance(fit, type) or not isinstance(fit, Fit):
        expected = "an object with fit(particles, weights, circular)"
        raise TypeError(f"fit: expected {expected}, got {short_repr(fit)}")
    # A fit without the argument `circular` would fail only at the first resampling, steps later.
    try:
        inspect.signature(fit.fit).bind(None, None, ())
    except TypeError:
        raise TypeError(
            f"fit: expected arguments (particles, weights, circular), got fit{inspect.signature(fit.fit)} of "
            f"{type(fit).__name__}"
        ) from None
