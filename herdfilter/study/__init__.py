"""Filters compared over many runs: scenarios, engine, columns, statistics."""

from herdfilter.study.bounds import posterior_cramer_rao_bound
from herdfilter.study.claims import claims
from herdfilter.study.compare import compare
from herdfilter.study.over_models import over_models
from herdfilter.study.over_time import over_time
from herdfilter.study.scenario import Scenario
from herdfilter.study.summary import summarise

__all__ = [
    "Scenario",
    "claims",
    "compare",
    "over_models",
    "over_time",
    "posterior_cramer_rao_bound",
    "summarise",
]
