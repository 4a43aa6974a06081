"""What the measures share."""

from __future__ import annotations

from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points

BLOCK = 2**22  # numbers held at once when pairs of points are summed in blocks


def check_dims(points: Points, mixture: GaussianMixture) -> None:
    """Raise a ValueError unless points and mixture have the same dimension."""
    if points.dim != mixture.dim:
        raise ValueError(f"points: expected dimension {mixture.dim} as the mixture, got {points.dim}")
