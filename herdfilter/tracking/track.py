"""What a tracker believes about one target."""

from __future__ import annotations

from dataclasses import dataclass

from herdfilter._checks import Array
from herdfilter._repr import summary_repr
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

    Examples
    --------
    A target that is there with probability 1/2, until a detection comes from where it should be.

    >>> walk = hf.models.ConstantVelocity(0.01, 0.5, initial_mean=[0, 1], initial_covariance=np.eye(2))
    >>> model = hf.models.WithClutter(walk, detection_probability=0.9, clutter_density=0.01)
    >>> tracker = hf.tracking.LMBTracker(model, filter="ukf", initial=[hf.tracking.Birth(0.5, walk.initial)])
    >>> tracker.predict()
    >>> record = tracker.update([[1.2]])
    >>> (track,) = tracker.tracks
    >>> track.label, round(track.existence, 2), track.filter.mean.shape
    ((0, 0), 0.96, (2,))
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
        return summary_repr(self, label=self.label, existence=self.existence, filter=self.filter)
