"""Filters compared over many runs: scenarios, engine, metrics, summary."""

from herdfilter.evaluation.bounds import posterior_cramer_rao_bound
from herdfilter.evaluation.compare import compare
from herdfilter.evaluation.scenario import Scenario
from herdfilter.evaluation.summary import claims, over_time, summarise

__all__ = ["Scenario", "claims", "compare", "over_time", "posterior_cramer_rao_bound", "summarise"]
