"""Filters compared over many runs: scenarios, engine, metrics, summary."""

from herdfilter.evaluation.compare import compare
from herdfilter.evaluation.scenario import Scenario
from herdfilter.evaluation.summary import summarise

__all__ = ["Scenario", "compare", "summarise"]
