"""Kernels and their expectations under a mixture.

Kernels have unit peak, because the normalised density overflows optimisers in high dimension; `log_normaliser` restores
the constant of the Gaussian one for reported figures.
"""

from herdfilter._repr import listing_of
from herdfilter.kernels.base import (
    KernelMean,
    as_kernel,
    density_product,
    expected_kernel,
    expected_kernel_pair,
    log_normaliser,
)
from herdfilter.kernels.radial import Energy, Gaussian, Kernel, Laplace, LocalizedCumulative, Matern

__all__ = [
    "Energy",
    "Gaussian",
    "Kernel",
    "KernelMean",
    "Laplace",
    "LocalizedCumulative",
    "Matern",
    "as_kernel",
    "density_product",
    "expected_kernel",
    "expected_kernel_pair",
    "log_normaliser",
]
__dir__ = listing_of(globals())
