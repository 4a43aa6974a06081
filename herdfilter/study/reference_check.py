"""Whether the reference of a scenario can be computed, found out before anything is begun."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from functools import cache as once
from typing import Any

import numpy as np

from herdfilter._checks import check_count, one_of, short_repr
from herdfilter.catalogue.expressions import check_keywords
from herdfilter.catalogue.specifications import blamed_on, catalogue, resolve_filters
from herdfilter.filters.results import DegenerateWeightsError
from herdfilter.models import linear_chain
from herdfilter.study import cache
from herdfilter.study.memory import NUMBER, check_fits
from herdfilter.study.recording import Recording
from herdfilter.study.reference import KEPT, reference_function, serving
from herdfilter.study.scenario import Scenario


def check_reference(scenario: Scenario) -> None:
    """Raise ValueError if the scenario's ``[reference]`` has an unknown type or key, or a value that does not fit."""
    if scenario.reference is None:
        return
    function, keywords = reference_function(scenario)
    check_keywords("[reference]", function, keywords, taken=("model", "recording", "rng"))
    for name in ("n", "repeats"):
        if name in keywords:
            check_count(f"[reference]: {name}", keywords[name], most=None)
    if "filter" in keywords:
        _check_filters(keywords["filter"])


def try_reference(scenario: Scenario, model: Any, first: Recording) -> None:
    """Raise what the reference of every run would raise, at the `first` step of one; look whether it can be kept.

    Of one with many particles a filter is built, with few. It may lose the target in any run, which is none of its faults.
    """
    if scenario.reference is None:
        return
    function, keywords = reference_function(scenario)
    rng = np.random.default_rng(0)
    if "n" in keywords:
        n = keywords["n"]
        check_fits("[reference]: n", f"{n} particles in {model.dim} dimensions", n * (model.dim + 1) * NUMBER)
        with blamed_on("[reference]: "):
            serving(keywords.get("filter", "bootstrap"), model)
    else:
        _check_grid(keywords, model.dim)
        with blamed_on("[reference]: "):
            function(model, first, rng, **keywords)
    if scenario.reference["type"] in KEPT:
        cache.warn_if_unusable()


def _check_grid(keywords: Mapping[str, Any], dim: int) -> None:
    """Raise ValueError if the points of a grid are no counts, or more than can be held."""
    if "points" not in keywords:
        return
    points = keywords["points"]
    if not isinstance(points, (int, list, tuple)):
        raise ValueError(f"[reference]: points: expected a number or one for each dimension, got {short_repr(points)}")
    counts = [points] * dim if isinstance(points, int) else points
    total = math.prod(check_count("[reference]: points", count, most=None) for count in counts)
    check_fits("[reference]: points", f"{total} in {dim} dimensions", total * (dim + 1) * NUMBER)


def _check_filters(names: Any) -> None:
    """Raise ValueError unless this names a filter of the catalogue that draws at random, or lists such names."""
    several = isinstance(names, (list, tuple))
    if several and not names:
        raise ValueError("[reference]: filter: expected at least one name, got none")
    for name in names if several else [names]:
        _check_random(one_of("[reference]: filter", name, catalogue()))


def _check_random(name: str) -> None:
    if not _draws_at_random(name):
        raise ValueError(
            f"[reference]: filter: expected a particle filter that draws at random, got {name!r}; "
            "its error could not be told"
        )


@once
def _draws_at_random(name: str) -> bool:
    """Whether a filter of the catalogue tends to the posterior with the number of particles, and uses its generator.

    It is tried on a model that every filter can do. The first step may draw the initial particles; the second counts.
    """
    if catalogue()[name].get("filter", "ParticleFilter") != "ParticleFilter":
        return False
    rng, states = np.random.default_rng(0), []
    particle_filter = resolve_filters(name)[name](linear_chain(1), 8, rng)
    for _ in range(2):
        particle_filter.predict()
        with suppress(DegenerateWeightsError):
            particle_filter.update(np.zeros(1))
        states.append(rng.bit_generator.state["state"])
    return bool(states[0] != states[1])
