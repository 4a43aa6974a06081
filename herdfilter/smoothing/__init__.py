"""Smoothing: the distribution of every state given all observations, from the result of a filter."""

from herdfilter._repr import listing_of
from herdfilter.smoothing.fixed_lag import FixedLagSmoother, fixed_lag_smoother
from herdfilter.smoothing.particles import Trajectories, backward_simulation, marginal_smoother
from herdfilter.smoothing.results import SmoothedResult, UnreachableStateError
from herdfilter.smoothing.rts import rts_smoother

__all__: list[str] = [
    "FixedLagSmoother",
    "SmoothedResult",
    "Trajectories",
    "UnreachableStateError",
    "backward_simulation",
    "fixed_lag_smoother",
    "marginal_smoother",
    "rts_smoother",
]
__dir__ = listing_of(globals())
