"""Residual resampling: whole numbers of copies first, random draws for the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from herdfilter._checks import Array, one_of
from herdfilter.filters.resampling.base import CopyingResampling, Indices, picked, whole_and_rest


@dataclass(frozen=True)
class ResidualResampling(CopyingResampling):
    """Particle i is copied ``floor(n weights[i])`` times for certain, the rest is drawn (Liu and Chen 1998).

    The draws for the r places left go to particle i with probability ``(n weights[i] - floor(n weights[i])) / r``, so that
    it has ``n weights[i]`` copies in the mean.

    Parameters
    ----------
    rest : {"multinomial", "systematic"}
        How the places left are drawn: independently, as published, or by a comb of one random number; then the number of
        copies is ``n weights[i]`` rounded up or down.

    Raises
    ------
    ValueError
        If `rest` is unknown.

    Examples
    --------
    Ten particles, of which 5, 3 and 2 copies of the first three are expected: nothing is left to chance.

    >>> weights = np.array([0.5, 0.3, 0.2, 0, 0, 0, 0, 0, 0, 0])
    >>> hf.ResidualResampling().ancestors(weights, np.random.default_rng(0)).tolist()
    [0, 0, 0, 0, 0, 1, 1, 1, 2, 2]

    Of 1.5, 0.9 and 0.6 copies one of the first particle is certain, and two places are drawn.

    >>> rng = np.random.default_rng(0)
    >>> draws = [hf.ResidualResampling().ancestors(weights[:3], rng).tolist() for _ in range(400)]
    >>> {draw.count(0) for draw in draws}
    {1, 2, 3}
    """

    rest: Literal["multinomial", "systematic"] = "multinomial"

    def __post_init__(self) -> None:
        one_of("rest", self.rest, ("multinomial", "systematic"))

    def ancestors(self, weights: Array, rng: np.random.Generator) -> Indices:
        """See `CopyingResampling`."""
        copies, rest = whole_and_rest(weights)
        n = len(rest)
        places = n - int(copies.sum())
        if places:
            u = np.sort(rng.random(places)) if self.rest == "multinomial" else (np.arange(places) + rng.random()) / places
            copies += np.bincount(picked(rest, u), minlength=n)
        return np.repeat(np.arange(n), copies)
