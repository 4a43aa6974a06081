"""A family of models: each run of a study has the model that its seed draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from herdfilter._checks import check_count, short_repr


@dataclass(frozen=True)
class Family:
    """Which model each run of a study has.

    Parameters
    ----------
    first : int
        Seed of the first model; the next ones have the next seeds.
    runs : int
        Runs of each model, one after the other.
    """

    first: int = 0
    runs: int = 1

    def __post_init__(self) -> None:
        check_count("first_model", self.first, minimum=0, most=None)
        check_count("runs", self.runs)

    def seed(self, run: int) -> int:
        """Seed of the model of a run."""
        return self.first + run // self.runs

    def place(self, run: int) -> tuple[int, int]:
        """Seed of the model of a run, and the number of the run among those of this model."""
        return self.seed(run), run % self.runs

    def models(self, runs: int) -> int:
        """Count the models of so many runs altogether."""
        return -(-runs // self.runs)


def planned_family(scenario: Any, models: int | None, first_model: int | None, runs: int) -> tuple[Family | None, int]:
    """Return the family of a comparison, and the runs of all its models together; of a scenario of one model none.

    Parameters
    ----------
    scenario : Scenario
        Says how many models there are, and which is the first, unless given.
    models, first_model : int, optional
        See `herdfilter.compare`.
    runs : int
        Of each model.

    Raises
    ------
    ValueError
        If one is given though the scenario has one model only, or does not fit.
    """
    if scenario.models is None:
        for name, value in (("models", models), ("first_model", first_model)):
            if value is not None:
                raise ValueError(
                    f"{name}: expected none, since scenario {short_repr(scenario.name)} has one model, "
                    f"got {short_repr(value)}; use --runs for more runs of it"
                )
        return None, runs
    count = check_count("models", scenario.models if models is None else models)
    return Family(scenario.first_model if first_model is None else first_model, runs), count * runs


def kind_of(model: Any) -> str:
    """Say of which kinds a model of a family is, by its `labels`; empty where it has none."""
    return ", ".join(map(str, getattr(model, "labels", None) or ()))
