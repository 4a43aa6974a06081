"""What is known of the posterior of one run, and its form on the disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from herdfilter._checks import Array, as_array
from herdfilter._repr import fields_in_line
from herdfilter.mixture import GaussianMixture

__all__ = ["LineDensity", "Reference"]

SNAPSHOTS = 10
"""Steps of a run at which the exact posterior is kept, where there is one."""


@dataclass(frozen=True, eq=False, repr=False)
class LineDensity:
    """A density on the line, constant in each cell.

    Attributes
    ----------
    edges : ndarray, shape (N + 1,)
        Of the cells, increasing.
    masses : ndarray, shape (N,)
        Probability of each cell; they sum to 1.

    Examples
    --------
    >>> from herdfilter.study.posterior import LineDensity
    >>> density = LineDensity(edges=np.array([0.0, 1.0, 3.0]), masses=np.array([0.25, 0.75]))
    >>> print(density.masses / np.diff(density.edges))  # in each cell
    [0.25  0.375]
    """

    edges: Array
    masses: Array

    __repr__ = fields_in_line


@dataclass(frozen=True, eq=False, repr=False)
class Reference:
    """What is known of the posterior of one run.

    Attributes
    ----------
    means : ndarray, shape (T, d)
        Posterior means.
    log_likelihood : float
        Log-density of all observations.
    error : ndarray, shape (T, d)
        Standard error of `means`: zero where they are exact, NaN where it is not known.
    covariances : ndarray, shape (T, d, d), or None
        Posterior covariances.
    posteriors : dict
        Place of a step, from 0 -> the exact posterior there, of a few steps (`snapshot_steps`); a grid has them in one
        dimension only.

    Examples
    --------
    >>> from herdfilter.study.posterior import Reference
    >>> reference = Reference(np.zeros((10, 2)), log_likelihood=-20.0, error=np.full((10, 2), 0.1))
    >>> round(reference.sd([0, 1]), 4)  # of a mean over both dimensions
    0.1414
    """

    means: Array
    log_likelihood: float
    error: Array
    covariances: Array | None = None
    posteriors: Mapping[int, GaussianMixture | LineDensity] = field(default_factory=dict)

    __repr__ = fields_in_line

    def sd(self, dims: Sequence[int]) -> float:
        """Return the standard error of the means over `dims`, root mean square over time, as errors of filters are taken."""
        return float(np.sqrt((self.error[:, list(dims)] ** 2).sum(axis=1).mean()))


def snapshot_steps(steps: int, count: int = SNAPSHOTS) -> list[int]:
    """Return up to `count` places of steps, from 0, evenly spaced and the last among them."""
    return sorted({-(-steps * (i + 1) // count) - 1 for i in range(count)}) if steps else []


def to_arrays(reference: Reference) -> dict[str, Array]:
    """Put a reference into arrays of numbers.

    Raises
    ------
    ValueError
        If it has posteriors that are no densities on the line.
    """
    arrays = {"means": reference.means, "error": reference.error}
    arrays["log_likelihood"] = np.array(reference.log_likelihood)
    if reference.covariances is not None:
        arrays["covariances"] = reference.covariances
    if reference.posteriors:
        densities = [density for density in reference.posteriors.values() if isinstance(density, LineDensity)]
        if len(densities) < len(reference.posteriors):
            raise ValueError("posteriors: expected densities on the line, got others")
        arrays["steps"] = np.array(list(reference.posteriors), dtype=np.float64)
        arrays["edges"] = np.array([density.edges for density in densities])
        arrays["masses"] = np.array([density.masses for density in densities])
    return arrays


def from_arrays(arrays: Mapping[str, Array], steps: int, dim: int) -> Reference:
    """Make a reference of `steps` steps in `dim` dimensions from arrays.

    Raises
    ------
    KeyError, ValueError
        If they are not those of such a reference.
    """
    covariances, posteriors = None, {}
    if "covariances" in arrays:
        covariances = as_array("covariances", arrays["covariances"], (steps, dim, dim))
    if "steps" in arrays:
        places = as_array("steps", arrays["steps"], (None,)).astype(int)
        edges = as_array("edges", arrays["edges"], (len(places), None))
        masses = as_array("masses", arrays["masses"], (len(places), edges.shape[1] - 1))
        posteriors = {int(k): LineDensity(e, m) for k, e, m in zip(places, edges, masses, strict=True)}
    return Reference(
        as_array("means", arrays["means"], (steps, dim)),
        float(as_array("log_likelihood", arrays["log_likelihood"], (), finite=False)),
        as_array("error", arrays["error"], (steps, dim), finite=False),
        covariances,
        posteriors,
    )
