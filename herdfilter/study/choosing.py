"""Which filter, with how many particles, for a model within a time: `choose` measures it on the model itself."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from herdfilter import _checks
from herdfilter.catalogue.specifications import Filters, parameter_names, resolve_filters
from herdfilter.filters.progress import live_line
from herdfilter.study import engine, own_model, tasks
from herdfilter.study.columns import digits
from herdfilter.study.plan import Study, plan_study
from herdfilter.study.recording import Recording, feed
from herdfilter.study.statistics import LEAST_RUNS, geometric_mean, paired_ratios
from herdfilter.study.store import open_for_reading

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Choice", "choose"]

CANDIDATES = (
    "auto",
    "ranked",
    "ranked-unguided",
    "sqmc",
    "bootstrap",
    "ekf",
    "ukf",
    "augmented-gauss-kh",
    "herded-kh",
)
"""One filter of each kind that is the best for some models."""

SMALLEST_N = 10
LARGEST_N = 100_000
"""Particle counts between which the one that fits the time is looked for."""

TIMED_STEPS = 20
TIMED_SECONDS = 1.0
"""Seconds after which a particle count is timed no longer."""

PREPARATION = 0.5
"""Seconds that a first run may take longer than the others; some filters prepare their points once, in time like n^2."""

COURSE = ("truth", "dt", "times", "start", "controls")

# Errors within this factor of the smallest count as equal: then the shorter step decides.
ALIKE = 1.02

# Errors below this, in posterior standard deviations, are rounding.
SMALLEST_ERROR = 1e-6

# Particles of the reference, as a multiple of the largest particle count, between two bounds.
REFERENCE_TIMES = 4
REFERENCE_BOUNDS = (20_000, 200_000)

DEFAULT_STEPS = 50
FIRST_RUNS = LEAST_RUNS  # so that there are intervals
MOST_RUNS = 40


@dataclass(frozen=True, eq=False, repr=False)
class Choice:
    """The filter to take for a model within a time, and what it was compared with: the result of `choose`.

    Attributes
    ----------
    name : str
        The filter to take.
    n_particles : int or None
        Its number of particles; None for a Kalman filter.
    table : pandas.DataFrame
        One row per filter, the best first: ``filter``, ``n_particles``, ``error`` (to the reference, in posterior standard
        deviations, root mean square over time, geometric mean over runs) with the ends ``error_low`` and ``error_high`` of
        its 95 % interval, ``ratio`` to the chosen filter's error in the same run with its ends, ``step_time`` in seconds,
        ``evaluations`` of the model per step, ``runs``, fewer for filters shown to be worse, and ``failures`` among them.
    verdict : str
        What to take, and how sure that is, in a sentence.
    left_out : mapping
        Filters that were not compared -> why.
    step_time : float
        Seconds that a step may take, as asked.
    runs : int
        Number of runs of the chosen filter, each of a series of its own unless recorded ones were given.

    Examples
    --------
    >>> options = {"filters": ["ukf"], "steps": 10, "budget": 5, "workers": 1}
    >>> choice = hf.choose(hf.models.linear_chain(1), step_time=1e-1, **options)
    >>> choice.n_particles, type(choice.filter()).__name__
    (None, 'UnscentedKalmanFilter')
    """

    name: str
    n_particles: int | None
    table: pd.DataFrame
    verdict: str
    left_out: Mapping[str, str]
    step_time: float
    runs: int
    model: Any
    factories: Mapping[str, Callable[..., Any]]

    def filter(self, rng: _checks.SeedLike = None) -> Any:
        """Build the chosen filter, with a generator or seed if it draws at random."""
        return self.factories[self.name](
            self.model, self.n_particles or 1, _checks.as_generator(rng)
        )

    def __repr__(self) -> str:
        shown = self.table.assign(
            n=[_count_text(n) for n in self.table["n_particles"]],
            error=[_with_ends(row, "error") for row in self.table.to_dict("records")],
            ratio=[_with_ends(row, "ratio") for row in self.table.to_dict("records")],
            ms=[digits(1e3 * seconds) for seconds in self.table["step_time"]],
            evaluations=[digits(count) for count in self.table["evaluations"]],
        )
        columns = ["filter", "n", "error", "ratio", "ms", "evaluations", "runs", "failures"]
        lines = [
            f"Errors in posterior sd; at most {1e3 * self.step_time:g} ms a step",
            "",
            shown[columns].to_string(index=False),
            "",
        ]
        lines += [f"{name}: {reason}" for name, reason in self.left_out.items()]
        return "\n".join([*lines, self.verdict])


def choose(
    model: Any,
    step_time: float,
    observations: Any = None,
    filters: Filters = CANDIDATES,
    steps: int | None = None,
    budget: float = 100.0,
    seed: int = 0,
    workers: int | None = None,
    progress: bool = True,
    store: str | os.PathLike[str] | None = None,
    **course: Any,
) -> Choice:
    """Find the filter and the number of particles with the smallest error for a model, within a time for each step.

    Every filter gets the most particles that fit the time, measured here, on this machine. Then all of them run over series
    that are simulated from the model, or over recorded ones, and their errors to a reference are compared: the exact
    posterior where the model is linear, else filters with many particles. After six runs, and twice as many each time,
    filters that are shown to be worse than the best one drop out, so that the time goes to the others (a race: Maron and
    Moore 1994, "Hoeffding races"). Errors within 2 % count as equal; then the filter with the shorter step is taken.

    Parameters
    ----------
    model : object or str
        A state-space model, the text ``"file.py:function"`` of a function that makes one, or a scenario as in `compare`.
    step_time : float
        Seconds that a step may take, such as ``1e-3``.
    observations : array_like, Recording, or list of Recording, optional
        Recorded series, as in `compare`; by default every run simulates one. With a single series the intervals say how much
        the filters' own random numbers matter, but not other data.
    filters : str, iterable of str, or mapping
        The filters to choose from, as in `compare`. Those that do not support the model are named with the reason.
    steps : int, optional
        Length of series that are simulated; 50 by default, or as the scenario says.
    budget : float
        Seconds after which no further run begins. The first six runs are always made.
    seed : int
        Root of all random numbers.
    workers : int, optional
        Processes; by default one per processor core.
    progress : bool
        Show progress on the error output.
    store : str or Path, optional
        SQLite file of the runs. Started again with the same arguments, the runs in it are not repeated.
    **course
        ``dt`` of simulated series; ``truth``, ``dt``, ``times``, ``start`` and ``controls`` of a recorded one.

    Returns
    -------
    Choice
        It prints as a table; its ``filter(rng=0)`` is the filter.

    Raises
    ------
    ValueError
        If no filter supports the model, none is quick enough, or none gets through the runs.

    Examples
    --------
    >>> model = hf.models.linear_chain(1)
    >>> options = {"filters": ["ekf", "bootstrap"], "steps": 10, "budget": 5, "workers": 1}
    >>> choice = hf.choose(model, step_time=1e-1, **options)
    >>> choice.name
    'ekf'
    """
    import joblib

    begin = time.perf_counter()
    for keyword in course:
        _checks.one_of("choose", keyword, COURSE)
    step_time = _checks.as_positive("step_time", step_time)
    budget = _checks.as_positive("budget", budget)
    workers = joblib.cpu_count() if workers is None else _checks.check_count("workers", workers)
    if observations is None and own_model.without_scenario(model):
        steps = DEFAULT_STEPS if steps is None else steps
    # The filter here is never run; it stands for the candidates, some of which may not support the model.
    candidates = {"any": lambda *_: None}
    series = {"observations": observations, "steps": steps, **course}
    study = plan_study(model, candidates, 1, 1, seed, **series)
    built = study.build_model()
    factories = resolve_filters(filters)
    with live_line("timing filters", visible=progress):
        fits, left_out = _fits(study, built, factories, step_time)
    if not fits:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise ValueError(
            f"filters: expected one that can be used within step_time={step_time:g}, got none ({reasons})"
        )
    if store is not None and Path(store).is_file():
        # A step takes another time today; the runs in the store are of these counts.
        with open_for_reading(store) as storage:
            stored = storage.description()["more"]
        fits = {
            name: fit._replace(n_particles=stored[name][0] if fit.n_particles else 0)
            for name, fit in fits.items()
            if name in stored
        }
    largest = max(fit.n_particles for fit in fits.values())
    reference = dict(study.scenario.reference or own_model.REFERENCE)
    if "n" in reference:
        reference["n"] = int(np.clip(REFERENCE_TIMES * largest, *REFERENCE_BOUNDS))
    study = replace(
        study,
        runs=MOST_RUNS,
        watched=False,
        filters={name: factories[name] for name in fits},
        particles=(),
        more={name: (fit.n_particles or 1,) for name, fit in fits.items()},
        scenario=replace(study.scenario, reference=reference),
    )
    with ExitStack() as stack:
        if store is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            store = Path(folder, "study.sqlite")
        table, best = _raced(study, Path(store), fits, begin + budget, workers, progress)
    count = fits[best].n_particles or None
    runs = int(table["runs"].max())
    sentence = _sentence(table, best, count)
    return Choice(best, count, table, sentence, dict(left_out), step_time, runs, built, factories)


class Timing(NamedTuple):
    """The largest particle count of a filter that fits the time, 0 without particles; seconds of a step, and before it."""

    n_particles: int
    seconds: float
    preparation: float = 0.0


def _fits(
    study: Study, model: Any, factories: Mapping[str, Any], step_time: float
) -> tuple[dict[str, Timing], dict[str, str]]:
    """Return how each filter fits the time, and why others do not."""
    recording = study.record(model).first(TIMED_STEPS)
    fits: dict[str, Timing] = {}
    left_out: dict[str, str] = {}
    for name, build in factories.items():
        try:
            fit = _fit(build, model, recording, step_time)
        except tasks.Stopped:
            raise
        except Exception as error:
            left_out[name] = tasks.error_text(error)
            continue
        if fit.seconds > step_time:
            left_out[name] = f"a step takes {digits(1e3 * fit.seconds)} ms"
        else:
            fits[name] = fit
    return fits, left_out


def _fit(build: Callable[..., Any], model: Any, recording: Recording, step_time: float) -> Timing:
    """Find the largest particle count whose step takes at most `step_time`: by doubling, then by a line between two."""

    def timed(n: int) -> Timing:
        # The processor's time, and the least of a few runs: what else the machine does only adds to it.
        times: list[float] = []
        while len(times) < 3 and sum(times) < TIMED_SECONDS:
            estimator = build(model, n, np.random.default_rng(0))
            begin = time.process_time()
            feed(estimator, recording)
            times.append(time.process_time() - begin)
        return Timing(n, min(times) / len(recording), times[0] - min(times))

    feed(build(model, SMALLEST_N, np.random.default_rng(0)), recording)  # compiles
    above = timed(SMALLEST_N)
    cls = getattr(build, "built", lambda: build)()
    if "n_particles" not in parameter_names(cls):
        return above._replace(n_particles=0)
    # A step may take longer with fewer particles, and one measurement too long: only twice the time ends the search.
    steps = [above]
    while above.seconds <= 2 * step_time and above.n_particles < LARGEST_N:
        if above.preparation > PREPARATION:
            break
        above = timed(min(2 * above.n_particles, LARGEST_N))
        steps.append(above)
    fitting = [k for k, fit in enumerate(steps) if fit.seconds <= step_time]
    if not fitting or steps[-1].seconds <= step_time:
        return steps[-1] if fitting else steps[0]
    below, above = steps[fitting[-1] : fitting[-1] + 2]
    share = (step_time - below.seconds) / (above.seconds - below.seconds)
    count = below.n_particles + share * (above.n_particles - below.n_particles)
    return Timing(int(float(f"{0.98 * count:.2g}")), step_time)


def _raced(
    study: Study,
    store: Path,
    fits: Mapping[str, Timing],
    end: float,
    workers: int,
    progress: bool,
) -> tuple[pd.DataFrame, str]:
    """Run the filters until the time `end`, those no longer that are shown to be worse; return table and best filter."""
    contenders = {*fits}
    done = 0
    total = FIRST_RUNS
    while True:
        begin = time.perf_counter()
        engine.run_study(
            study,
            workers,
            progress,
            store,
            resume=True,
            only=lambda task: task.filter in contenders and task.run < total,  # noqa: B023
        )
        now = time.perf_counter()
        with open_for_reading(store) as storage:
            table, best = _table(storage.table(), fits)
        per_run = (now - begin) / (total - done)
        more = min(total, int((end - now) / per_run), study.runs - total)
        racing = table[table["filter"].isin(contenders)]
        worse = (racing["ratio_low"] > 1.0) | (racing["failures"] > racing["failures"].min())
        racing = racing[~worse]
        equal = (racing["ratio_low"] >= 1 / ALIKE) & (racing["ratio_high"] <= ALIKE)
        if more <= 0 or equal.all():
            return table, best
        contenders = {*racing["filter"]}
        done = total
        total += more


def _table(runs: pd.DataFrame, fits: Mapping[str, Timing]) -> tuple[pd.DataFrame, str]:
    """Return the table of a `Choice`, and the best filter, by the errors in the same runs."""
    import pandas as pd

    failed = runs["error"] != ""
    # Below the reference's own error, filters cannot be told apart.
    floor = runs["reference_uncertainty"].fillna(0.0).clip(lower=SMALLEST_ERROR)
    losses = runs["reference_error_sd"].clip(lower=floor).mask(failed, np.inf)
    errors = runs.assign(loss=losses).pivot(index="run", columns="filter", values="loss")
    rows = []
    for name, fit in fits.items():
        own = runs[runs["filter"] == name]
        rows.append(
            {"filter": name, "n_particles": fit.n_particles or None}
            | geometric_mean("error", errors[name].to_numpy())
            | {
                "step_time": fit.seconds,
                "evaluations": own["evaluations"].median(),
                "runs": len(own),
                "failures": int((own["error"] != "").sum()),
            }
        )
    table = pd.DataFrame(rows)
    usable = table[table["runs"] == table["runs"].max()]
    usable = usable[usable["failures"] <= usable["failures"].min()]
    close = usable[usable["error"] <= ALIKE * usable["error"].min()]
    if close.empty:
        raise ValueError(
            f"filters: expected one that gets through the runs, got {runs['error'].iloc[0]}"
        )
    best = str(close.loc[close["step_time"].idxmin(), "filter"])
    ratios = [
        geometric_mean("ratio", paired_ratios(errors[other].to_numpy(), errors[best].to_numpy()))
        for other in table["filter"]
    ]
    table = pd.concat([table, pd.DataFrame(ratios)], axis=1)
    return table.sort_values(["failures", "ratio"], ignore_index=True), best


def _sentence(table: pd.DataFrame, name: str, count: int | None) -> str:
    """Say what to take, and how sure that is: whether a filter is left that may be better."""
    particles = "" if count is None else f" with {count:,} particles"
    taken = f"Take {name}{particles}"
    others = table[table["filter"] != name]
    if others.empty:
        return f"{taken}; no other filter was compared."
    equal = others["ratio"].between(1 / ALIKE, ALIKE) & ~(others["ratio_high"] > ALIKE)
    # Without an interval none is shown to be worse.
    open_to_doubt = others[~equal & ~(others["ratio_low"] > 1.0)]["filter"]
    parts = [taken]
    if equal.any():
        parts.append(f"as near, but slower: {', '.join(others[equal]['filter'])}")
    if len(open_to_doubt):
        parts.append(f"not shown to be worse: {', '.join(open_to_doubt)}")
    if len(parts) == 1:
        second = others.iloc[0]
        parts.append(
            f"{second['filter']}, the next, has {_with_ends(second, 'ratio')} times its error"
        )
    return f"{'; '.join(parts)}."


def _with_ends(row: Any, name: str) -> str:
    """Write a number with its interval."""
    text = digits(float(row[name]))
    low, high = (float(row[f"{name}_{end}"]) for end in ("low", "high"))
    return f"{text} ({digits(low)}, {digits(high)})" if low < high else text


def _count_text(count: float | None) -> str:
    return "-" if count is None or np.isnan(count) else f"{int(count)}"
