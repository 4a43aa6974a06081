"""Many targets: distances between sets of targets and of estimates, and how often labels change hands."""

from herdfilter.tracking.metrics import GOSPA, gospa, label_switches, ospa

__all__ = ["GOSPA", "gospa", "label_switches", "ospa"]
