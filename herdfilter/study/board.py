"""The board: any filter on random models of the day, in one row of ratios to the bootstrap filter."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from herdfilter._checks import as_array, check_count, check_flags, check_methods, one_of, short_repr
from herdfilter._version import __version__
from herdfilter.catalogue.expressions import Imports
from herdfilter.catalogue.specifications import FilterFactory, prefix_errors, resolve_filters, takes_keyword
from herdfilter.filters.progress import say
from herdfilter.models import linear_chain
from herdfilter.models.from_functions import cloudpickle
from herdfilter.models.simulation import simulate
from herdfilter.study.engine import run_study
from herdfilter.study.machine import machine
from herdfilter.study.plan import plan_study
from herdfilter.study.scenario import load_scenario
from herdfilter.study.statistics import geometric_mean, of, paired_ratios
from herdfilter.study.tables import Divergence

__all__ = ["board"]


@dataclass(frozen=True)
class BoardDefinition:
    """All that decides a row beside the filter; a change needs another version."""

    version: int = 1
    models: int = 200  # of `RandomModel`; fewer are a trial
    runs: int = 2  # of each model
    particles: tuple[int, ...] = (50, 500)
    ladder: tuple[int, ...] = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000)  # of bootstrap, for equal times
    reference: Mapping[str, Any] = field(
        default_factory=lambda: {"type": "exact-or-guided", "n": 32768, "repeats": 2, "filter": ["sqmc", "bootstrap"]}
    )
    divergence: Divergence = field(default_factory=lambda: Divergence(2.0, final_part=0.25, in_spreads=True))
    first_seed: int = 10_000_000
    seeds_per_day: int = 1000
    least_error: float = 1e-3  # posterior standard deviations, or units of log-likelihood; smaller errors count as this
    right_variance: tuple[float, float] = (0.8, 1.25)  # ratios of variances between these count as right


DEFINITION = BoardDefinition()
BASELINE = "bootstrap"
SECONDS = 6.0  # that a model takes a processor core, roughly


@dataclass(frozen=True)
class _Entrant:
    """A caller's filter, whose ``run`` may take the observations alone: random models have neither dt nor controls."""

    build: FilterFactory

    def __call__(self, model: Any, n_particles: int, rng: np.random.Generator) -> Any:
        built = self.build(model, n_particles, rng)
        check_methods("returned", built, "run")
        known = [key for key in ("dt", "controls") if takes_keyword(built.run, key)]
        return SimpleNamespace(run=lambda z, **told: built.run(z, **{key: told[key] for key in known}))


def board(
    filter: str | Callable[..., Any] | Mapping[str, Any],  # noqa: A002
    models: int = DEFINITION.models,
    seed: int | str | date | None = None,
    particles: int | Iterable[int] | None = None,
    workers: int = 1,
    progress: bool = False,
    store: str | Path | None = None,
    resume: bool = False,
) -> pd.Series[Any]:
    """Measure a filter on random models of the day, beside the bootstrap filter: a row of the board.

    The page "The board" has the definition, which only another version changes.

    Parameters
    ----------
    filter : str, callable or mapping
        A name that ``herdfilter filters`` lists; ``"file.py:name"`` or ``"module:name"`` of a function or class ``(model,
        n_particles, rng)``, or this itself; or a mapping from one name to a filter, as `compare` takes it. What its
        ``run(observations)`` returns has ``means`` (T, d), and may have ``covariances`` and ``log_likelihood``.
    models : int
        Number of models, up to 1000; with fewer than 200 the row is a trial.
    seed : int, str or datetime.date, optional
        A date, as ``"2026-11-27"``, or the seed of the first model; today unless given.
    particles : int or iterable of int, optional
        Particle counts: 50, 500, or both as by default.
    workers, progress, store, resume
        As in `compare`; so are the errors.

    Returns
    -------
    pandas.Series
        The row, whose numbers the page explains. Those with n particles end in n: ``error_n`` and ``equal_time_n`` are
        ratios to bootstrap, geometric means over models; ends of intervals at 95 % are in ``error_n_low`` and so on.

    Examples
    --------
    >>> row = hf.board("ukf", models=1, seed=11, particles=50)  # an old model; leave out the seed for those of today
    >>> print(row["board"], row["models"], row["trial"])
    1 1 True
    """
    check_flags(progress=progress, resume=resume)
    run = {"workers": workers, "progress": progress, "store": store, "resume": resume}
    return rows(dict([entrant(filter)]), models, seed, particles, **run)[0]


def rows(entrants: Mapping[str, FilterFactory], models: int, seed: Any, particles: Any, **run: Any) -> list[pd.Series[Any]]:
    """Return the rows of filters that share one study, and so the runs of the baseline; the rest as in `board`."""
    models = check_count("models", models, most=DEFINITION.seeds_per_day)
    first = first_seed(seed)
    changes: Any = {key: getattr(DEFINITION, key) for key in ("runs", "particles", "reference", "divergence")}
    scenario = replace(load_scenario("random"), name="board", **changes)
    study = plan_study(scenario, {BASELINE: BASELINE, **entrants}, particles, models=models, first_model=first)
    for n in study.particles:
        one_of("particles", str(n), map(str, DEFINITION.particles))
    study = replace(study, more={BASELINE: [n for n in DEFINITION.ladder if n not in study.particles]})
    if run["progress"]:
        workers = check_count("workers", run["workers"])
        time = f"about {max(1, models * SECONDS / workers / 60):.0f} min with {workers} workers"
        say(f"board {DEFINITION.version}: {DEFINITION.runs} runs of each of {models} models from seed {first}, {time}")
    runs = run_study(study, **run).runs
    about = {"board": DEFINITION.version, "herdfilter": __version__, "date": f"{datetime.now(UTC):%Y-%m-%d}", "seed": first}
    about |= {"models": models, "trial": models < DEFINITION.models}
    about |= {"machine": f"{machine()['processor']}, {machine()['cores']} cores"}
    return [pd.Series({"filter": name} | about | numbers(runs, name, study.particles), name=name) for name in entrants]


def entrant(filter: Any) -> tuple[str, FilterFactory]:  # noqa: A002
    """Return name and factory of a filter as `board` takes it, after three steps on a linear model of one dimension."""
    if isinstance(filter, str) and ":" in filter:
        place, _, part = filter.rpartition(":")
        found = Imports((place,)).resolve(filter)
        if place.endswith(".py"):  # no other process can import it by its name
            cloudpickle().register_pickle_by_value(sys.modules[found.__module__])
        filter = {f"{Path(place).name}:{part}": found}  # noqa: A001
    elif callable(filter):
        filter = {getattr(filter, "__name__", type(filter).__name__): filter}  # noqa: A001
    factories = resolve_filters(filter)
    ((name, factory),) = list(factories.items())[-1:]
    if len(factories) > 1 or (name == BASELINE and filter not in (name, {name: name})):
        expected = f"one, and no other called {BASELINE}, which all are measured by"
        raise ValueError(f"filter: expected {expected}, got {', '.join(factories)}")
    if isinstance(filter, Mapping) and callable(filter[name]):
        factory = _Entrant(factory)
    with prefix_errors(f"filter {name}: "):
        built = factory(linear_chain(1), DEFINITION.particles[0], np.random.default_rng(0))
        result = built.run(simulate(linear_chain(1), 3, rng=0)[1], dt=1.0, controls=None)
        if not hasattr(result, "means"):
            raise TypeError(f"run: expected a result with means (T, d), got {short_repr(result)}")
        as_array("means", result.means, (3, 1))
    return name, factory


def first_seed(seed: Any) -> int:
    """Return the seed of the first model: given, or of a day, before which nobody could tune on its models."""
    if isinstance(seed, str):
        try:
            seed = int(seed) if seed.isdecimal() else date.fromisoformat(seed)
        except ValueError:
            raise ValueError(f"seed: expected a date such as 2026-11-27, or an integer, got {short_repr(seed)}") from None
    if seed is None or isinstance(seed, date):
        return DEFINITION.first_seed + DEFINITION.seeds_per_day * (seed or datetime.now(UTC)).toordinal()
    return check_count("seed", seed, minimum=0, most=None)


def numbers(runs: pd.DataFrame, name: str, particles: Iterable[int]) -> dict[str, float]:
    """Return the numbers of a row, from the runs of a filter and of bootstrap.

    A model's error is the root mean square over its runs, less the reference's own. If less than half of the square is left,
    half stays, and the reference is too uncertain. A failed run has an infinite error.
    """
    failed = runs["error"].fillna("") != ""
    runs = runs.assign(
        failed=failed,
        lost=failed | runs["diverged"].astype(bool),
        raw=(runs["reference_error_sd"] ** 2).mask(failed & runs["reference_uncertainty"].notna(), np.inf),
        reference=runs["reference_uncertainty"] ** 2,
        log_likelihood=runs["log_likelihood_error"] ** 2,
        time=runs["ms_per_step"],
    )
    kinds = dict.fromkeys(("raw", "reference", "log_likelihood"), "mean") | {"variance_ratio": "median", "failed": "sum"}
    kinds["time"] = "min"  # what else the machine does only adds to it
    models: Any = runs.groupby(["filter", "n_particles", "model"]).agg(kinds)
    models["uncertain"] = ~(models["reference"] <= models["raw"] / 2)
    models["error"] = np.maximum(models["raw"] - models["reference"], models["raw"] / 2)
    for column in ("raw", "log_likelihood", "error"):
        models[column] = np.sqrt(models[column]).clip(lower=DEFINITION.least_error)
    lost = runs.pivot(index=["model", "run"], columns=["filter", "n_particles"], values="lost").astype(bool)
    row, (low, high) = dict[str, float](), DEFINITION.right_variance
    for n in particles:
        own, base = models.loc[name, n], models.loc[BASELINE, n]
        row |= {f"compared_{n}": int(np.isfinite(own["error"]).sum()), f"failures_{n}": int(own["failed"].sum())}
        own, base = (one[np.isfinite(base["error"])] for one in (own, base))
        equal = [in_time(ms, models.loc[BASELINE].xs(model, level="model")) for model, ms in own["time"].items()]
        own, base = own.assign(equal_time=own["error"]), base.assign(equal_time=[error for _, error in equal])
        for key in ("error", "equal_time", "raw", "time", "log_likelihood"):
            ratios = paired_ratios(own[key].to_numpy(), base[key].to_numpy())
            row |= geometric_mean(f"{key}_{n}", ratios[~np.isnan(ratios)])
        row[f"beyond_{n}"] = of(np.mean, np.array([count > DEFINITION.ladder[-1] for count, _ in equal]))
        row[f"variance_right_{n}"] = of(np.mean, own["variance_ratio"].dropna().between(low, high).to_numpy())
        row[f"lost_{n}"] = float((lost[name, n] & ~lost[BASELINE, n]).groupby(level="model").any().mean())
        row[f"uncertain_{n}"] = float((own["uncertain"] | base["uncertain"]).mean())
    return row


def in_time(time: float, ladder: pd.DataFrame) -> tuple[float, float]:
    """Return the number of bootstrap particles that take a time, and their error, from those of growing particle counts.

    The time is a line over the count, fitted with relative residuals; the number is not below the smallest count. Between
    two counts log error is linear in log n, and beyond the largest it falls with the root of n.
    """
    counts, times, errors = ladder.loc[np.isfinite(ladder["error"]), ["time", "error"]].reset_index().to_numpy(float).T
    if not len(counts):
        return np.nan, np.nan
    overhead, each = nnls(np.column_stack([1 / times, counts / times]), np.ones(len(times)))[0]
    n = float(np.fmax((time - overhead) / max(each, 1e-6 * overhead), counts[0]))  # without a time, of a failed filter, too
    return n, float(np.exp(np.interp(np.log(n), np.log(counts), np.log(errors))) * min(1.0, np.sqrt(counts[-1] / n)))
