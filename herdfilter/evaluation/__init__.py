"""Filters compared over many runs: scenarios, engine, metrics, summary."""
