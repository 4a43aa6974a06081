"""Samplers: a mixture in, n points out; one file per method."""

from herdfilter.samplers.base import Sampler
from herdfilter.samplers.continuous_herded_gibbs import ContinuousHerdedGibbs
from herdfilter.samplers.improved import Polished, Reweighted
from herdfilter.samplers.joint_herded_gibbs import JointHerdedGibbs
from herdfilter.samplers.joint_herding import JointHerding
from herdfilter.samplers.kernel_herding import KernelHerding
from herdfilter.samplers.lcd import LCDSampling
from herdfilter.samplers.mapped import MappedSampling
from herdfilter.samplers.quantile import QuantileSampling
from herdfilter.samplers.random import RandomSampling
from herdfilter.samplers.sigma_points import SigmaPoints
from herdfilter.samplers.sobol import SobolSampling

__all__ = [
    "ContinuousHerdedGibbs",
    "JointHerdedGibbs",
    "JointHerding",
    "KernelHerding",
    "LCDSampling",
    "MappedSampling",
    "Polished",
    "QuantileSampling",
    "RandomSampling",
    "Reweighted",
    "Sampler",
    "SigmaPoints",
    "SobolSampling",
]
