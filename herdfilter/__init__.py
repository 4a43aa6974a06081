"""Nonlinear filtering with herded particles.

A particle filter whose random draws can be swapped for deterministic ones: kernel herding and continuous herded Gibbs
sampling (Wolf and Baum, "Continuous Herded Gibbs Sampling", 2021) from Gaussian-mixture approximations of the posterior.

An argument that is not as documented raises a TypeError or a ValueError that names it, and a model that lacks a function a
TypeError that names the function. Docstrings list what else is raised.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from herdfilter import (
    association,
    bandwidths,
    catalogue,
    discrepancy,
    discrete,
    filters,
    fitting,
    kernels,
    models,
    samplers,
    smoothing,
    testing,
    tracking,
)
from herdfilter._repr import listing_of
from herdfilter._version import __version__ as __version__
from herdfilter.by_name import make_filter
from herdfilter.discrepancy import *
from herdfilter.discrete.thinning import thin
from herdfilter.filters import *
from herdfilter.filters.many import TracksError, run_many
from herdfilter.fitting import *
from herdfilter.likelihood import MaximumLikelihood, RoughLikelihoodWarning, maximise_likelihood
from herdfilter.mixture import GaussianMixture
from herdfilter.models.sensors import Sensor
from herdfilter.models.simulation import simulate
from herdfilter.noise import FittedNoise, fit_noise
from herdfilter.points import Points
from herdfilter.samplers import *
from herdfilter.samplers.conditional_herded_gibbs import ConditionalError, ConditionalHerdedGibbs
from herdfilter.smoothing import *

if TYPE_CHECKING:
    from herdfilter import plotting, study
    from herdfilter.report.comparison import Comparison, compare
    from herdfilter.study.choosing import Choice, choose

# silent unless the program that uses it sets up logging
logging.getLogger(__name__).addHandler(logging.NullHandler())

__all__ = [
    "Choice",
    "Comparison",
    "ConditionalError",
    "ConditionalHerdedGibbs",
    "FittedNoise",
    "GaussianMixture",
    "MaximumLikelihood",
    "Points",
    "RoughLikelihoodWarning",
    "Sensor",
    "TracksError",
    "association",
    "bandwidths",
    "catalogue",
    "choose",
    "compare",
    "discrete",
    "fit_noise",
    "kernels",
    "make_filter",
    "maximise_likelihood",
    "models",
    "plotting",
    "run_many",
    "simulate",
    "smoothing",
    "study",
    "testing",
    "thin",
    "tracking",
]
# What these folders export is public here, too: a new sampler or proposal is listed in its folder only.
__all__ += discrepancy.__all__
__all__ += filters.__all__
__all__ += fitting.__all__
__all__ += samplers.__all__
__all__ += smoothing.__all__

# pandas and matplotlib, which take a second to load, are not needed for filtering
_ON_DEMAND = {
    "Choice": "study.choosing",
    "choose": "study.choosing",
    "Comparison": "report.comparison",
    "compare": "report.comparison",
    "plotting": "plotting",
    "study": "study",
}
"""Name -> the module that it is, or that has it."""


def __getattr__(name: str) -> Any:
    if name not in _ON_DEMAND:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_ON_DEMAND[name]}")
    value = globals()[name] = getattr(module, name, module)
    return value


__dir__ = listing_of(globals())
