"""``herdfilter scenarios`` and ``herdfilter filters``: what there is, and where it comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from herdfilter.cli.completion import FilterNames, ScenarioName
from herdfilter.cli.tables import definitions, echo, with_text

if TYPE_CHECKING:
    from herdfilter.study.scenario import Scenario


@click.command(short_help="List the scenarios, or tell the source of one.")
@click.argument("name", required=False, type=ScenarioName())
def scenarios(name: str | None) -> None:
    """List the scenarios that come with the package; of one, NAME or a TOML file, tell everything with its source."""
    from herdfilter.study.reference import check_reference
    from herdfilter.study.scenario import load_scenario, scenario_files

    if name is not None:
        scenario = load_scenario(name)
        check_reference(scenario)
        echo("\n".join(definitions(_told(scenario))))
        return
    rows = []
    for known in scenario_files():
        scenario = load_scenario(known)
        steps = "data" if scenario.data is not None else "vary" if scenario.models else str(scenario.steps)
        rows.append([known, _dim(scenario), steps, _reference(scenario), scenario.title])
    heads = ["name", "dim", "steps", "reference", "what it is"]
    echo("\n".join(with_text(heads, rows)))
    echo("\nherdfilter scenarios NAME tells where its numbers come from.")


def _dim(scenario: Scenario) -> str:
    """Dimension of the state; of a model that is built from data, by its labels; each model of a family has its own."""
    if scenario.models is not None:
        return "vary"
    if scenario.data is not None:
        return str(len(scenario.labels) or "?")
    return str(scenario.build_model().dim)


def _steps(scenario: Scenario) -> str:
    if scenario.models is not None:
        return f"as many as each model asks for, else {scenario.steps}"
    return str(scenario.steps) if scenario.data is None else "as many as the data have"


def _reference(scenario: Scenario) -> str:
    return "none" if scenario.reference is None else str(scenario.reference["type"])


def _told(scenario: Scenario) -> list[tuple[str, str]]:
    """Everything that a scenario says of itself."""
    from herdfilter.report.wording import definition, reference

    model = ", ".join(f"{key} = {value}" for key, value in scenario.model.items() if key != "type")
    entries = [
        ("name", scenario.name),
        ("what it is", scenario.title),
        ("source", " ".join(scenario.source.split())),
        ("model", f"{scenario.model['type']}: {model}" if model else str(scenario.model["type"])),
        ("dimension", _dim(scenario)),
        ("steps", _steps(scenario)),
        ("reference", reference(scenario)),
        ("runs", str(scenario.runs) if scenario.models is None else f"{scenario.runs} of each model"),
        ("particles", ", ".join(map(str, scenario.particles))),
        ("filters", ", ".join(scenario.filters)),
    ]
    if scenario.models is not None:
        last = scenario.first_model + scenario.models - 1
        entries.append(("models", f"{scenario.models}, of the seeds {scenario.first_model} to {last}"))
    if scenario.data is not None:
        data = ", ".join(f"{key} = {value}" for key, value in scenario.data.items())
        entries.append(("data", f"{data}; `herdfilter data` lists and fetches the files"))
    entries += [(name, meaning) for name, _, meaning in (line.partition(": ") for line in definition(scenario))]
    for one in scenario.published:
        figure = f"{one.value:g} to within {one.tolerance:g}, {one.statistic} of {one.measure} over {one.runs} runs"
        entries.append(("published", f"{one.filter}, n = {one.n_particles}: {figure} ({one.source})"))
    return entries


@click.command(short_help="List the filters, or tell how one is built.")
@click.argument("name", required=False, type=FilterNames())
def filters(name: str | None) -> None:
    """List the filters of the catalogue; of one, NAME, tell how it is composed."""
    from herdfilter._checks import one_of
    from herdfilter.catalogue.specifications import catalogue

    known = catalogue()
    if name is not None:
        echo("\n".join(definitions(_composed(name, known[one_of("filter", name, known)]))))
        return
    rows = [[key, table.get("about", "")] for key, table in known.items()]
    echo("\n".join(with_text(["name", "what it is"], rows)))
    echo("\nherdfilter filters NAME tells how it is composed.")


def _composed(name: str, table: dict[str, Any]) -> list[tuple[str, str]]:
    """Say what a filter is, and by which call it is built."""
    tracker = table.get("tracker")
    left_out = ("about", "tracker") if tracker else ("about", "filter")
    options = {key: value for key, value in table.items() if key not in left_out}
    arguments = ["model", *(["birth", "survival_probability"] if tracker else [])]
    arguments += [f"{key}={value}" for key, value in options.items()]
    call = f"{tracker or table.get('filter', 'ParticleFilter')}({', '.join(arguments)})"
    return [("name", name), ("what it is", table.get("about", "")), ("built as", call)]
