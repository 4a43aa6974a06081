"""Probability distributions of the library `particles`: their moments, and states from standard normal noise."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy
from particles import distributions as dists

from herdfilter._checks import Array
from herdfilter.mixture import GaussianMixture

# probabilities are clipped to at least this, and to below one, before quantiles are taken
SMALLEST_PROBABILITY = 1e-300


class StateGaussians(NamedTuple):
    """N(means[i], factors[i] @ factors[i].T) for each of n states."""

    means: Array  # (n, d)
    factors: Array  # (n, d, d); (1, d, d) if all states share one

    def shared(self) -> bool:
        """Return True if all states have the same covariance."""
        return bool((self.factors == self.factors[0]).all())

    @property
    def covariances(self) -> Array:
        """Covariances, (n, d, d) or (1, d, d)."""
        return self.factors @ self.factors.transpose(0, 2, 1)

    def at(self, noise: Array) -> Array:
        """Return the states (n, d) for noise (n, d) from N(0, I)."""
        if len(self.factors) == 1:
            offsets: Array = noise @ self.factors[0].T
        else:
            offsets = (self.factors @ noise[:, :, None])[:, :, 0]
        return self.means + offsets


def as_gaussians(law: Any, n: int, any_kind: bool = False) -> StateGaussians | None:
    """Return a distribution, given n states, as Gaussians; None if it is of another kind.

    With `any_kind` a distribution that is not Gaussian, but only shifted by the state, gives Gaussians of the same moments.
    """
    if type(law) in (dists.VaryingCovNormal, dists.MvNormal):
        means = law.loc
        scales = np.atleast_2d(getattr(law, "scale", 1.0))
        factors = law.L
    else:
        parts = law.dists if type(law) is dists.IndepProd else (law,)
        entries = [_line(part, any_kind) for part in parts]
        if None in entries:
            return None
        means, scales = (
            np.stack([np.broadcast_to(np.ravel(values), n) for values in column], axis=1)
            for column in zip(*entries, strict=True)
        )
        factors = np.eye(len(parts))
    # one factor shared by all states: products with it are much cheaper
    if (scales == scales[0]).all():
        scales = scales[:1]
    return StateGaussians(np.broadcast_to(means, (n, law.dim)), scales[:, :, None] * factors)


def _line(law: Any, any_kind: bool = False) -> tuple[Any, Any] | None:
    """Return mean and standard deviation of a distribution in one dimension; None if it is of another kind."""
    kind = type(law)  # exactly: a subclass may be another distribution
    if kind is dists.Normal:
        return law.loc, law.scale
    if kind is dists.Dirac:
        return law.loc, 0.0
    if kind is dists.LinearD:
        base = _line(law.base_dist)
        return base and (law.a * np.asarray(base[0]) + law.b, np.abs(law.a) * np.asarray(base[1]))
    if not any_kind:
        return None
    # the variances of a logistic, a Laplace and a Student t distribution of scale s: pi^2 s^2 / 3, 2 s^2, s^2 nu / (nu - 2)
    if kind is dists.Logistic:
        return law.loc, np.pi / np.sqrt(3) * np.asarray(law.scale)
    if kind is dists.Laplace:
        return law.loc, np.sqrt(2) * np.asarray(law.scale)
    if kind is dists.Student and np.min(law.df) > 2:
        return law.loc, np.sqrt(law.df / (law.df - 2)) * law.scale
    return None


def as_mixture_on_line(law: Any) -> GaussianMixture | None:
    """Convert a 1-D Gaussian mixture from `particles`; None for other distributions."""
    parts: list[Any] = list(map(_line, getattr(law, "components", [])))
    if type(law) is not dists.Mixture or None in parts:
        return None
    means, scales = np.array(parts).T
    return GaussianMixture(np.ravel(law.pk), means[:, None], np.square(scales)[:, None, None])


def has_quantiles(law: Any) -> bool:
    """Return True if a law is a function of standard normal noise: Gaussian, or continuous with a quantile function."""
    if type(law) is dists.IndepProd:
        return all(has_quantiles(part) for part in law.dists)
    if isinstance(law, dists.TransformedDist):
        return has_quantiles(law.base_dist)
    if isinstance(law, dists.DiscreteDist):
        return False
    # the method of the base class only raises an error
    return type(law).ppf is not dists.ProbDist.ppf


def map_noise(law: Any, noise: Array) -> Array:
    """Map standard normal noise (n, d) to states (n, d), through quantiles where the law is not Gaussian."""
    gaussians = as_gaussians(law, len(noise))
    if gaussians is not None:
        return gaussians.at(noise)
    if type(law) is dists.IndepProd:
        columns = [map_noise(part, noise[:, i : i + 1]) for i, part in enumerate(law.dists)]
        return np.hstack(columns)
    # The normal distribution function makes the noise uniform, whatever the law; quantiles then give it the law.
    u = np.clip(scipy.special.ndtr(noise), SMALLEST_PROBABILITY, 1 - 2.0**-53)
    return np.reshape(law.ppf(u[:, 0] if law.dim == 1 else u), noise.shape)


def present_law(law: Any) -> Any:
    """Return the distribution of an observation that is not missing."""
    return law.base_dist if type(law) is dists.MixMissing else law


def law_log_density(law: Any, z: Array, n: int) -> Array:
    """Return the log-density of an observation (k,), or of one for each of n states, (n, k), given the states; (n,)."""
    if isinstance(law, dists.DiscreteDist) and (z == np.round(z)).all():
        z = z.astype(np.int64)
    # these take an observation as a vector, others as a number
    vectors = law.dim > 1 or isinstance(law, dists.MvNormal | dists.IndepProd)
    densities = np.ravel(law.logpdf(z if vectors else z[..., 0]))
    values = np.broadcast_to(densities, n).astype(np.float64)
    # as the library weights them: NaN comes of an infinite rate, for example
    values[np.isnan(values)] = -np.inf
    return values


def observation_moments(law: Any, n: int) -> StateGaussians | None:
    """Return Gaussians with the moments of an observation, given n states; None if they are unknown.

    They are known for Gaussians and for laws that the state only shifts. Counts and rates are left out: their moments change
    by orders of magnitude within the spread of the state, so that Kalman's update may make a filter diverge.
    """
    return as_gaussians(present_law(law), n, any_kind=True)
