"""Initial distributions that are not Gaussian mixtures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array, as_array, as_generator, as_points, check_count
from herdfilter.models._fields import assign


@dataclass(frozen=True, eq=False)
class UniformBox:
    """Uniform distribution over an axis-parallel box: the state somewhere in it, all places alike.

    Parameters
    ----------
    lower, upper : array_like, shape (d,)
        Opposite corners, in state units; ``lower < upper`` in every dimension.

    Raises
    ------
    ValueError
        If the corners differ in shape or `upper` does not exceed `lower`.

    Examples
    --------
    A room of 4 by 3 metres, and a robot that is somewhere in it:

    >>> room = hf.models.UniformBox([0, 0], [4, 3])
    >>> x = room.sample(1000, rng=0)
    >>> bool((x >= 0).all() and (x <= [4, 3]).all()), np.allclose(x.mean(axis=0), [2, 1.5], atol=0.2)
    (True, True)
    >>> np.exp(room.log_density([[1, 1], [5, 1]])).round(4).tolist()
    [0.0833, 0.0]
    """

    lower: Array
    upper: Array

    def __post_init__(self) -> None:
        lower = as_array("lower", self.lower, (None,))
        upper = as_array("upper", self.upper, (len(lower),))
        if not (lower < upper).all():
            raise ValueError(f"upper: expected more than lower {lower.tolist()}, got {upper.tolist()}")
        assign(self, lower=lower, upper=upper)

    @property
    def dim(self) -> int:
        """Dimension d of the state."""
        return len(self.lower)

    def sample(self, n: int, rng: np.random.Generator | int | None = None) -> Array:
        """Draw `n` independent points, shape (n, d)."""
        return as_generator(rng).uniform(self.lower, self.upper, (check_count("n", n), self.dim))

    def log_density(self, x: ArrayLike) -> Array:
        """Log-density at each point, minus infinity outside the box; (n, d) -> (n,)."""
        x = as_points("x", x, self.dim)
        inside = ((x >= self.lower) & (x <= self.upper)).all(axis=1)
        return np.where(inside, -np.log(self.upper - self.lower).sum(), -np.inf)
