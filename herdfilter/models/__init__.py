"""State-space models, one file each; `herdfilter.models.contract` says what a filter may call on one."""

from herdfilter.models.bearings import BearingsTracking
from herdfilter.models.linear_gaussian import LinearGaussian, linear_chain
from herdfilter.models.lorenz63 import Lorenz63
from herdfilter.models.priors import UniformBox
from herdfilter.models.range_only import RangeOnly
from herdfilter.models.ungm import UNGM

__all__ = [
    "UNGM",
    "BearingsTracking",
    "LinearGaussian",
    "Lorenz63",
    "RangeOnly",
    "UniformBox",
    "linear_chain",
]
