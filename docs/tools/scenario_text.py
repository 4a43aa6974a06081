"""The page of scenarios in Markdown, from scenarios/*.toml, so that it cannot go stale: ``python docs/scenario_text.py``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from herdfilter.study.scenario import Scenario, load_scenario, scenario_files
from herdfilter.study.tables import Published


def paths() -> list[Path]:
    """Files the text depends on."""
    return list(scenario_files().values())


def markdown() -> str:
    """Describe every scenario that comes with the package."""
    return "\n\n".join(
        _section(load_scenario(name), path) for name, path in scenario_files().items()
    )


def _section(scenario: Scenario, path: Path) -> str:
    name = str(scenario.model["type"])
    model = name.replace(":", ".") if ":" in name else f"herdfilter.models.{name}"
    size = "real data" if scenario.data else f"{scenario.steps} steps of {scenario.dt:g}"
    if scenario.models is not None:
        size = f"{scenario.models} models, seeds from {scenario.first_model} on, each with as many steps as it asks for"
    facts = {
        "model": f"{{py:obj}}`~{model}`, {size}",
        "reference": _reference(scenario),
        "a run diverged": _divergence(scenario),
        "runs and particles": f"{scenario.runs} runs with {', '.join(map(str, scenario.particles))} particles",
        "filters": ", ".join(f"`{name}`" for name in scenario.filters),
    }
    if scenario.published:
        facts["published"] = "; ".join(map(_published, scenario.published))
    lines = [f"## `{scenario.name}`: {scenario.title}", "", scenario.source, ""]
    image = Path("images") / f"scenario_{scenario.name}.png"
    if (Path(__file__).parents[1] / image).is_file():
        lines += [
            f"![A run of {scenario.name}: truth, estimate and observations]({image.as_posix()})",
            "",
        ]
    lines += [f"{name}\n: {fact}\n" for name, fact in facts.items()]
    lines += [f"The file, `{path.parent.name.removeprefix('_')}/{path.name}`:", "", "```toml"]
    text = path.read_text(encoding="utf-8").rstrip()
    text = re.sub(r'^source = """.*?"""', 'source = "..."   # as above', text, flags=re.M | re.S)
    return "\n".join([*lines, text, "```"])


def _keywords(table: Mapping[str, object]) -> str:
    return ", ".join(f"`{key} = {value}`" for key, value in table.items())


def _reference(scenario: Scenario) -> str:
    match scenario.reference:
        case None:
            return "none; errors are against the surveyed truth" if scenario.data else "none"
        case {"type": "grid", "lower": lower, "upper": upper, "points": points}:
            return f"the exact posterior, on a grid of {points} points from {lower:g} to {upper:g}"
        case {"type": "large", "n": n}:
            repeats, name = (
                scenario.reference.get(k, v) for k, v in (("repeats", 4), ("filter", "bootstrap"))
            )
            if not isinstance(name, str):
                return f"the average of {repeats} filters with {n} particles, each with {_keywords(name)}"
            return f"the average of {repeats} {name} filters with {n} particles"
        case {"type": "grid-or-large", "n": n, "repeats": repeats, "filter": [first, *others]}:
            names = first + "".join(f" (or {name}, where that does not serve)" for name in others)
            average = f"the average of {repeats} {names} filters with {n} particles"
            return f"the exact posterior on the model's own grid, else {average}"
        case {"type": "kalman"}:
            return "the Kalman filter, exact here"
        case other:
            return ", ".join(f"{key} = {value}" for key, value in other.items())


def _published(entry: Published) -> str:
    measure = "RMSE" if entry.measure == "rmse" else "RMSE of a component"
    return f"{measure} {entry.value:g} with {entry.n_particles} particles ({entry.source})"


def _divergence(scenario: Scenario) -> str:
    bound = scenario.divergence
    if bound is None:
        return "only if it failed"
    unit = f" {scenario.unit}" if scenario.unit else ""
    return (
        f"if its RMSE against the truth over the last {100 * bound.final_part:.0f} % of the steps exceeds "
        f"{bound.rmse_above:g}{unit}, or if it failed"
    )


if __name__ == "__main__":
    print(markdown())
