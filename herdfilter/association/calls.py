"""Functions that turn likelihoods into a matrix of ratios, and the ratios into marginals of the association."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter.association import base, gibbs
from herdfilter.association.belief_propagation import BeliefPropagation
from herdfilter.association.exact import Exact
from herdfilter.association.k_best import KBest

METHODS: dict[str, Callable[[], base.ClusterMethod]] = {
    "exact": Exact,
    # Two million ways take about a tenth of a second.
    "auto": partial(Exact, max_ways=2_000_000, otherwise=BeliefPropagation()),
    "belief-propagation": BeliefPropagation,
    "k-best": KBest,
    "random-gibbs": gibbs.RandomGibbs,
    "herded-gibbs": gibbs.HerdedGibbs,
}
"""Name -> method, with its default options."""

PROBABILITIES = "probabilities from 0 to 1"


def ratios(
    likelihoods: ArrayLike,
    detection_probability: ArrayLike,
    clutter_density: ArrayLike,
    existence: ArrayLike = 1.0,
) -> Array:
    """Return the matrix of likelihood ratios from which association starts, (T, 1 + M).

    With existence r, detection probability P_D, likelihood g and clutter density kappa, column 0 is (1 - r) + r (1 - P_D):
    the track is dead or missed. Column 1 + j is r P_D g_j / kappa_j. After the association, the fraction
    ``r * (1 - P_D) / (1 - r * P_D)`` of the first column's marginal belongs to a missed track, the rest to a dead one.

    Parameters
    ----------
    likelihoods : array_like, shape (T, M)
        Density of each measurement if it comes from the track; 0 outside the gate.
    detection_probability : float or array_like, shape (T,)
        From 0 to 1; may differ between tracks.
    clutter_density : float or array_like, shape (M,)
        Expected number of false alarms per unit volume of the measurement space, at each measurement.
    existence : float or array_like, shape (T,)
        Probability that the track exists, from 0 to 1.

    Examples
    --------
    >>> likelihoods = [[0.8, 0.0], [0.1, 0.4]]  # of two measurements, given each of two tracks
    >>> print(hf.association.ratios(likelihoods, 0.9, clutter_density=0.1).round(3))
    [[0.1 7.2 0. ]
     [0.1 0.9 3.6]]
    """
    g = _checks.as_array("likelihoods", likelihoods, (None, None))
    if (g < 0).any():
        raise ValueError(f"likelihoods: expected no negative entry, got {g.min():g}")
    tracks, measurements = g.shape
    detected = _for_each("detection_probability", detection_probability, tracks, PROBABILITIES)
    r = _for_each("existence", existence, tracks, PROBABILITIES)
    clutter = _for_each("clutter_density", clutter_density, measurements, "positive densities")
    with np.errstate(over="ignore"):  # an infinite ratio raises an error below
        matrix = np.column_stack([1.0 - r * detected, (r * detected)[:, None] * (g / clutter)])
    if not np.isfinite(matrix).all():
        raise ValueError(
            f"clutter_density: expected finite ratios of likelihood and clutter density, got inf: likelihoods are up to "
            f"{g.max():g}, clutter densities down to {clutter.min():g}"
        )
    return matrix


def _for_each(name: str, values: ArrayLike, n: int, expected: str) -> Array:
    """Return a number, or one for each of n, as an array (n,); ValueError unless they are as expected."""
    array = np.broadcast_to(_checks.as_array(name, values, (n,) if np.ndim(values) else ()), (n,))
    valid = (array >= 0) & (array <= 1) if expected == PROBABILITIES else array > 0
    if not valid.all():
        raise ValueError(f"{name}: expected {expected}, got {array[~valid][0]:.16g}")
    return array


def marginals(
    ratios: ArrayLike,
    method: str | base.ClusterMethod = "exact",
    rng: np.random.Generator | int | None = None,
) -> Array:
    """Return the marginal probabilities that each measurement belongs to each track, (T, 1 + M); rows sum to 1.

    An assignment gives every track a measurement or none, and no measurement to two tracks. Its weight is the product over
    the tracks t of ``ratios[t, a]``, with a = 0 for no measurement and a = 1 + j for measurement j. Each cluster of tracks
    that compete for measurements, even indirectly, is solved independently of the others.

    Parameters
    ----------
    ratios : array_like, shape (T, 1 + M)
        Nonnegative weights, from `herdfilter.association.ratios`; rows may have any scale. Column 0: the track has no
        measurement. Column 1 + j: likelihood of measurement j relative to clutter; 0 outside the gate.
    method : str or object
        ``"exact"``, ``"auto"`` (exact for clusters that take up to about a tenth of a second, else belief propagation),
        ``"belief-propagation"``, ``"k-best"``, ``"random-gibbs"``, ``"herded-gibbs"``, or an instance of one of the classes
        with options, such as ``HerdedGibbs(sweeps=1000)``.
    rng : numpy.random.Generator, int or None
        For the methods that draw.

    Raises
    ------
    ValueError
        If `ratios` has the wrong shape, a negative or infinite entry, or a row of zeros; if no assignment has a positive
        weight; if the method is unknown, or a cluster is too large for it.

    Examples
    --------
    >>> p = hf.association.marginals([[0.1, 2.0, 0.0], [0.1, 1.0, 2.0]])
    >>> print(p.round(3))  # a row for each track; the first column: no measurement
    [[0.069 0.931 0.   ]
     [0.047 0.022 0.931]]
    """
    return associate(ratios, method, rng).marginals


def associate(
    ratios: ArrayLike,
    method: str | base.ClusterMethod = "exact",
    rng: np.random.Generator | int | None = None,
) -> base.Association:
    """Return the marginals of `marginals` together with the log evidence, as an `Association`.

    Examples
    --------
    >>> found = hf.association.associate([[0.1, 2.0]])  # one track, one detection
    >>> print(found.marginals.round(3), round(found.log_evidence, 3))  # log(0.1 + 2.0)
    [[0.048 0.952]] 0.742
    """
    _checks.as_generator(rng)
    return base.solve_clusters(as_method("method", method), base.as_ratios(ratios), rng)


def as_method(name: str, method: Any) -> base.ClusterMethod:
    """Return the method with this name, or the method itself."""
    if isinstance(method, str):
        return METHODS[_checks.one_of(name, method, METHODS)]()
    base.check_method(name, method)
    return cast(base.ClusterMethod, method)
