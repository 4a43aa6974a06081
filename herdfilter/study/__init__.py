"""Filters compared over many runs: scenarios, engine, columns, statistics."""

from herdfilter._repr import listing_of
from herdfilter.study.bounds import posterior_cramer_rao_bound
from herdfilter.study.families import over_models
from herdfilter.study.recording import Recording
from herdfilter.study.scenario import Scenario
from herdfilter.study.summary import claims, over_time, summarise

__all__ = [
    "Recording",
    "Scenario",
    "claims",
    "over_models",
    "over_time",
    "posterior_cramer_rao_bound",
    "summarise",
]
__dir__ = listing_of(globals())
