"""Filters compared over many runs: scenarios, engine, columns, statistics."""

from herdfilter.evaluation.bounds import posterior_cramer_rao_bound
from herdfilter.evaluation.claims import claims
from herdfilter.evaluation.compare import compare
from herdfilter.evaluation.over_models import over_models
from herdfilter.evaluation.over_time import over_time
from herdfilter.evaluation.scenario import Scenario
from herdfilter.evaluation.summary import summarise

__all__ = [
    "Scenario",
    "claims",
    "compare",
    "over_models",
    "over_time",
    "posterior_cramer_rao_bound",
    "summarise",
]
