"""Filters on one model contract."""

from herdfilter.filters import kalman, proposals, resampling
from herdfilter.filters.filter import ParticleFilter
from herdfilter.filters.flow import DaumHuangFilter
from herdfilter.filters.forecast import Forecast
from herdfilter.filters.grid import GridFilter
from herdfilter.filters.inspection import InputWarning
from herdfilter.filters.kalman import *  # noqa: F403
from herdfilter.filters.observation import Observation
from herdfilter.filters.proposals import *  # noqa: F403
from herdfilter.filters.replay import Replay
from herdfilter.filters.resampling import *  # noqa: F403
from herdfilter.filters.results import (
    DegeneracyWarning,
    DegenerateWeightsError,
    FilterResult,
    Outcome,
    PartialObservationWarning,
    StepRecord,
)
from herdfilter.filters.state import Particles
from herdfilter.models.resolved import Transition

__all__ = [
    "DaumHuangFilter",
    "DegeneracyWarning",
    "DegenerateWeightsError",
    "FilterResult",
    "Forecast",
    "GridFilter",
    "InputWarning",
    "Observation",
    "Outcome",
    "PartialObservationWarning",
    "ParticleFilter",
    "Particles",
    "Replay",
    "StepRecord",
    "Transition",
]
__all__ += kalman.__all__
__all__ += proposals.__all__
__all__ += resampling.__all__
