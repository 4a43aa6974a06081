"""What a tracker believes about one target."""

from __future__ import annotations

from dataclasses import dataclass

from herdfilter._checks import Array
from herdfilter._one_line import one_line
from herdfilter.filters.hypotheses import Supposing

Label = tuple[int, int]
"""Step of the birth, and number among the births of that step."""


@dataclass(frozen=True, eq=False, repr=False)
class Track:
    """A labelled Bernoulli component: a target that may be there or not, and where it is if it is there.

    Attributes
    ----------
    label : tuple of int
        Step of the birth and number among the births of that step; never changes.
    existence : float
        Probability that the target is there.
    filter : object
        A filter of the catalogue that holds the density of its state. It is replaced in the next step, not changed.
    """

    label: Label
    existence: float
    filter: Supposing

    @property
    def mean(self) -> Array:
        """Mean of the state, shape (d,)."""
        return self.filter.mean

    @property
    def covariance(self) -> Array:
        """Covariance of the state, shape (d, d)."""
        return self.filter.covariance

    def __repr__(self) -> str:
        return one_line(self, label=self.label, existence=self.existence, filter=self.filter)
