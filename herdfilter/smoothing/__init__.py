"""Smoothing: the states given all observations, earlier and later ones."""

from herdfilter.smoothing.backward import Trajectories, UnreachableStateError, backward_simulation

__all__ = ["Trajectories", "UnreachableStateError", "backward_simulation"]
