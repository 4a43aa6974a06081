"""What the measures share."""

from __future__ import annotations

from herdfilter.mixture import GaussianMixture, as_mixture
from herdfilter.points import Points

BLOCK = 2**22  # numbers held at once when pairs of points are summed in blocks


def check_pair(points: Points, mixture: GaussianMixture | Points, samples: bool = False) -> None:
    """Raise an error unless these are points and a mixture, in this order and of the same dimension.

    With `samples`, points may stand in place of the mixture.
    """
    if not isinstance(points, Points):
        advice = "points come first, then the mixture" if isinstance(points, GaussianMixture) else "take Points(x)"
        raise TypeError(f"points: expected herdfilter.Points, got an object {type(points).__name__}; {advice}")
    if not (samples and isinstance(mixture, Points)):
        mixture = as_mixture("mixture", mixture)
    if points.dim != mixture.dim:
        raise ValueError(f"points: expected dimension {mixture.dim} as the mixture, got {points.dim}")
