"""Fits, which turn weighted particles into a Gaussian mixture; one file per method."""

from herdfilter.fitting.base import Fit
from herdfilter.fitting.em import EMFit
from herdfilter.fitting.gaussian import GaussianFit
from herdfilter.fitting.kernel_density import KernelDensityFit

__all__ = ["EMFit", "Fit", "GaussianFit", "KernelDensityFit"]
