"""The matrix of likelihood ratios that association starts from."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array, as_array, as_numbers


def ratios(
    likelihoods: ArrayLike,
    detection_probability: ArrayLike,
    clutter_density: ArrayLike,
    existence: ArrayLike = 1.0,
) -> Array:
    """Return the matrix of ratios of tracks that exist with some probability, are detected with some, in clutter.

    With existence r, detection probability P_D, likelihood g and clutter density kappa, column 0 is (1 - r) + r (1 - P_D),
    the track is dead or missed, and column 1 + j is r P_D g_j / kappa_j. After the association, the share
    ``r * (1 - P_D) / (1 - r * P_D)`` of the first column's marginal is that of a track missed, the rest of one dead.

    Parameters
    ----------
    likelihoods : array_like, shape (T, M)
        Density of each measurement given each track and that it is the track's; 0 outside the gate.
    detection_probability : float or array_like, shape (T,)
        From 0 to 1; may differ between tracks.
    clutter_density : float or array_like, shape (M,)
        Expected number of false alarms per unit volume of the measurement space, where each measurement lies.
    existence : float or array_like, shape (T,)
        Probability that the track exists, from 0 to 1.

    Returns
    -------
    ndarray, shape (T, 1 + M)

    Raises
    ------
    ValueError
        If an argument has the wrong shape or range, or a ratio overflows.

    Examples
    --------
    >>> likelihoods = [[0.8, 0.0], [0.1, 0.4]]  # of two measurements, given each of two tracks
    >>> print(hf.association.ratios(likelihoods, 0.9, clutter_density=0.1).round(3))
    [[0.1 7.2 0. ]
     [0.1 0.9 3.6]]
    """
    g = as_array("likelihoods", likelihoods, (None, None))
    if (g < 0).any():
        raise ValueError(f"likelihoods: expected no negative entry, got {g.min():g}")
    detected = _probabilities("detection_probability", detection_probability, len(g))
    r = _probabilities("existence", existence, len(g))
    clutter = as_numbers("clutter_density", clutter_density, (g.shape[1],))
    clutter = as_array("clutter_density", clutter, (g.shape[1],) if clutter.ndim else ())
    if not (clutter > 0).all():
        raise ValueError(
            f"clutter_density: expected positive densities, got {clutter.min():g}: without clutter every measurement has to "
            "be a track's, which ratios cannot say; take a small density"
        )
    with np.errstate(over="ignore"):
        matrix = np.column_stack([1.0 - r * detected, (r * detected)[:, None] * (g / clutter)])
    if not np.isfinite(matrix).all():
        raise ValueError(
            f"clutter_density: expected finite ratios of likelihood and clutter density, got inf: likelihoods are up to "
            f"{g.max():g}, clutter densities down to {clutter.min():g}"
        )
    return matrix


def _probabilities(name: str, value: ArrayLike, n: int) -> Array:
    array = as_numbers(name, value, (n,))
    array = as_array(name, array, (n,) if array.ndim else ())
    if not ((array >= 0) & (array <= 1)).all():
        wrong = array[~((array >= 0) & (array <= 1))].flat[0]
        raise ValueError(f"{name}: expected probabilities from 0 to 1, got {wrong:g}")
    return np.broadcast_to(array, (n,))
