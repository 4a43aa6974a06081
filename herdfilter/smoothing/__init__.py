"""Smoothing: the distribution of every state given all observations, from the result of a filter."""

from herdfilter.smoothing.fixed_lag import FixedLagSmoother, fixed_lag_smoother
from herdfilter.smoothing.marginal import marginal_smoother
from herdfilter.smoothing.results import SmoothedResult, UnreachableStateError
from herdfilter.smoothing.rts import rts_smoother
from herdfilter.smoothing.simulation import Trajectories, backward_simulation

__all__ = [
    "FixedLagSmoother",
    "SmoothedResult",
    "Trajectories",
    "UnreachableStateError",
    "backward_simulation",
    "fixed_lag_smoother",
    "marginal_smoother",
    "rts_smoother",
]
