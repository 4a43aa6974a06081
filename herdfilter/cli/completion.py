"""Names of scenarios and filters that the shell completes."""

from __future__ import annotations

from typing import Any

import click
from click.shell_completion import CompletionItem


class ScenarioName(click.ParamType):
    """The name of a scenario, or a path to a TOML file."""

    name = "scenario"

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[CompletionItem]:
        """Give the scenarios that come with the package, and let the shell add files."""
        from herdfilter.study.scenario import scenario_files

        found = [CompletionItem(name) for name in scenario_files() if name.startswith(incomplete)]
        return found or [CompletionItem(incomplete, type="file")]


class FilterNames(click.ParamType):
    """Names of filters, separated by commas."""

    name = "filters"

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[CompletionItem]:
        """Complete the last of the names."""
        from herdfilter.catalogue.specifications import catalogue

        before, comma, last = incomplete.rpartition(",")
        taken = before.split(",")
        return [
            CompletionItem(f"{before}{comma}{name}") for name in catalogue() if name.startswith(last) and name not in taken
        ]
