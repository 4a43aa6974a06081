"""Filters and association against what is known: figures of the literature, exact log-likelihoods and marginals.

published   every ``[[published]]`` entry of every scenario is run as it says; the last column tells whether ours is within
            the entry's tolerance.
papers      figures of papers beside ours, with a verdict: all papers of the modules published_*.py, or those that --papers
            names, as in --papers classic or --papers classic.gordon. Written paper by paper. `dapper` only if it is named.
evidence    the log-likelihood that filters estimate against the exact one. One series of observations for each model, the
            same for all filters, and a fresh seed of the filter in every run. The logarithm of the mean of exp(error) is 0
            where the likelihood is unbiased. Filters without random numbers repeat one value.
likelihood  where the maximum of a filter's log-likelihood lies, over three parameters of stochastic volatility, in standard
            errors from the exact one, in --series series.
noise       coverage of the intervals of fitted noise, over --noise-series series of five models; and the time of a search
            by hand and of pykalman's EM, on --noise-others of them.
roughness   how rough log-likelihoods are along a parameter: the standard deviation of second differences of (estimate -
            exact) on a grid, and on a grid ten times as fine. Of a smooth one they fall by 1000, of jumps hardly.
randomised  the spread of the log-likelihood of randomised ranked particles over bootstrap's, with as many particles and at
            equal time; and that its likelihood is unbiased, by 6,000 runs.
settling    how the log-likelihood of four-dimensional bearings settles as n grows, against a million random particles.
chains      particle Metropolis-Hastings with these filters: how often it moves, and independent draws a second.
smoothers   smoothed means against the exact ones, of series whose seeds are claims.
harbour     real radar and lidar against GPS: what the sensors are like, and filters and trackers on their scans.
delays      how late the harbour's radar and lidar are, by GPS in all recordings in the folder, and as a state of a filter.
misses      what the errors of trackers of the harbour's vessels are made of, and what nobody could have found.
clutter     lost tracks of one target in clutter, over --targets random tracks.
hard        lost tracks and errors in random scenes of clutter and manoeuvres, over --scene-runs scenes from --seed on.
hidden      the same where nothing is detected in a shadow: P_D as a function of the state beside numbers.
association marginals of association by every method against the exact ones, over --matrices random matrices.
association_times  of these only the times, on gated scans, bands and dense matrices, and what auto takes beyond its method.
modes       filters of random models that jump between modes, against the exact posterior; herded modes over random ones.
forecast    coverage of forecasts of states and observations 1, 5 and 20 steps ahead, over --forecasts runs.
linear      Rao-Blackwellised filters of two conditionally linear scenarios against plain ones, at equal n and at equal time.
dear        filters of a model that casts rays on a map, by poses asked and by CPU time, with --dear-beams rays.
choice      the filter that `choose` takes within a millisecond a step, and its error on fresh series over the best one's.
long        errors of random and deterministic filters over --long-steps steps of five models, against the exact posterior.

python benchmarks/bench_known.py [PARTS] [--filters bootstrap ...] [--particles 100] [--runs 50]    all unless some are named
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, product
from pathlib import Path

import as_published
import associations
import choices
import clutter as cluttered
import dear as dearer
import forecasts
import harbour as harbours
import harbour_delays
import harbour_misses
import hard_radar
import likelihoods
import linear_parts
import long_models
import long_runs
import manoeuvres
import noises
import numpy as np
import pandas as pd
import smoothers as smoothed
from common import announce, current, save, show, stamp
from scipy.special import logsumexp
from scipy.stats import sem
from studies import filter_tables, study_parser

import herdfilter as hf
from herdfilter.study.engine import run_study
from herdfilter.study.plan import plan_study
from herdfilter.study.recording import DataSet, Recording
from herdfilter.study.scenario import Scenario, load_scenario, scenario_files
from herdfilter.study.tables import Published

FILTERS = [
    "bootstrap",
    "sqmc",
    "auxiliary",
    "guided",
    "herded-random",
    "mixture-random",
    "augmented-random",
]
FILTERS += ["mixture-kh", "herded-kh", "herded-chg", "augmented-kh", "kalman-mixture-kh"]
FILTERS += ["guided-augmented-em-kh", "guided-augmented-gauss-kh", "auto"]
FAMILIES = ["linear", "nonlinear"]
STATISTICS = {
    "mean": np.mean,
    "median": np.median,
    "rms": lambda values: np.sqrt(np.mean(np.square(values))),
}


def published(args) -> None:
    """Write the figures of the literature beside ours."""
    rows = []
    for name in args.scenarios or scenario_files():
        shown = load_scenario(name)
        for k, entry in enumerate(shown.published):
            values = measured(shown, entry, args.stores / f"published-{name}-{k}.sqlite", args)
            ours = float(STATISTICS[entry.statistic](values))
            rows.append(
                {
                    "scenario": name,
                    "filter": entry.filter,
                    "n": entry.n_particles,
                    "runs": len(values),
                }
                | {
                    "theirs": entry.value,
                    "ours": ours,
                    "least": min(values),
                    "greatest": max(values),
                }
                | {
                    "tolerance": entry.tolerance,
                    "holds": abs(ours - entry.value) <= entry.tolerance,
                }
                | {"source": entry.source}
            )
    if rows:
        save("published", pd.DataFrame(rows), args.results, ["scenario", "filter", "n"])
        show("Figures of the literature", pd.DataFrame(rows).drop(columns="source"))


def measured(shown: Scenario, entry: Published, store, args) -> np.ndarray:
    """Return the entry's measure in every run."""
    own = replace(
        shown, model=shown.model | entry.model, steps=entry.steps or shown.steps, reference=None
    )
    study = plan_study(
        own, [entry.filter], entry.n_particles, min(entry.runs, args.most), args.seed
    )
    result = run_study(study, args.workers, store=store, resume=True)
    squared = result.series[entry.filter, entry.n_particles]["truth"][:, entry.skip :]
    if entry.measure == "mean_component_rmse":
        return np.sqrt(squared / len(study.scenario.dims(study.build_model().dim))).mean(axis=1)
    return np.sqrt(squared.mean(axis=1))


def papers(args) -> None:
    """Write the figures of papers beside ours."""
    for name in args.papers:
        for paper, rows in groupby(as_published.rows(name, args), key=lambda row: row["paper"]):
            table = pd.DataFrame(rows)
            end = as_published.suffix(name)
            keys = ["paper", "place", "quantity"]
            save(f"as_published{end}", table, args.results, keys)
            show(paper, table.drop(columns=["paper", "note"]), 180)


def linear(d: int) -> Scenario:
    """Return a damped chain of d states, each drawn along by the next and all observed."""
    one = np.eye(d).tolist()
    model = {"F": (0.7 * np.eye(d) + 0.2 * np.eye(d, k=1)).tolist(), "H": one, "Q": one}
    model |= {"R": (2.0 * np.eye(d)).tolist(), "initial_mean": [0.0] * d, "initial_covariance": one}
    return Scenario(
        name=f"linear {d}",
        title=f"Linear chain, d = {d}",
        model={"type": "LinearGaussian", **model},
        reference={"type": "kalman"},
    )


def evidence(args) -> None:
    """Write the errors of the log-likelihood."""
    rows = []
    for shown in (linear(1), linear(2), linear(4), load_scenario("ungm")):
        shown = replace(shown, steps=args.steps)
        model = shown.build_model()
        truth, observations = hf.simulate(model, args.steps, np.random.default_rng([args.seed, 0]))
        for name in args.filters:
            study = plan_study(shown, filter_tables(name), args.particles, args.runs, args.seed)
            study = replace(study, data=DataSet(Recording(truth, observations)))
            store = args.stores / f"evidence-{shown.name.replace(' ', '')}-{name}.sqlite"
            table = run_study(study, args.workers, store=store, resume=True).runs
            for n, runs in table.groupby("n_particles"):
                errors = runs["log_likelihood_error"].dropna().to_numpy()
                rows.append(
                    {"model": shown.name, "filter": name, "n": int(n)} | bias_and_spread(errors)
                )
    save("evidence", pd.DataFrame(rows), args.results, ["model", "filter", "n"])
    show(f"Log-likelihood of {args.steps} steps, error", pd.DataFrame(rows))


def bias_and_spread(errors: np.ndarray) -> dict[str, float]:
    """Mean and standard deviation; log of the mean of exp(error) and its 95 % interval by the delta method."""
    found = {"runs": len(errors), "mean": errors.mean(), "sd": errors.std(ddof=1)}
    if np.ptp(errors) == 0:  # no random number in it
        return found | {"log_mean": np.nan, "low": np.nan, "high": np.nan}
    ratios = np.exp(errors - errors.max())
    centre = float(logsumexp(errors) - np.log(len(errors)))
    half = 1.96 * sem(ratios) / ratios.mean()
    return found | {"log_mean": centre, "low": centre - half, "high": centre + half}


MAXIMA = {"herded-quantile": 400, "augmented-gauss-kh": 100, "sqmc": 1024, "bootstrap": 1000}
"""Filters and particle counts of the maxima."""

SMOOTH = ("herded-quantile", "augmented-gauss-kh")
BATCH = 2
"""Series after which what was found is written; a script that is started anew goes on there."""


def likelihood(args) -> None:
    """Write how far the maxima of log-likelihoods are from the exact ones."""
    for name in args.maxima:
        # a rough curve has maxima everywhere: they are not counted
        starts = args.starts if name in SMOOTH else 1
        missing = sorted(
            {*range(likelihoods.CLAIMS, likelihoods.CLAIMS + args.series)}
            - done(name, starts, args.results)
        )
        for k in range(0, len(missing), BATCH):
            table = likelihoods.maxima(
                name,
                MAXIMA[name],
                missing[k : k + BATCH],
                args.workers,
                starts,
                args.stores / "exact",
            )
            save("likelihood_series", table, args.results, ["filter", "n", "seed"])
    shown = likelihoods.overview(current("likelihood_series", args.results))
    save("likelihood", shown, args.results)
    show("Maxima of the log-likelihood", shown)


def noise(args) -> None:
    """Write how often the intervals of fitted noise cover the truth."""
    seeds = range(args.noise_seed, args.noise_seed + args.noise_series)
    for name in args.noise_models:
        missing = [*seeds]
        table = current("noise_series", args.results)
        if not table.empty:
            missing = [
                seed for seed in seeds if seed not in set(table.loc[table["model"] == name, "seed"])
            ]
        for k in range(0, len(missing), BATCH):
            batch = missing[k : k + BATCH]
            others = sum(seed < args.noise_seed + args.noise_others for seed in batch)
            save("noise_series", noises.fits(name, batch, others), args.results, ["model", "seed"])
    shown = noises.overview(current("noise_series", args.results))
    save("noise", shown, args.results)
    show("Fitted noise", shown, 180)


def done(name: str, starts: int, folder: Path) -> set[int]:
    """Seeds of the series that have been measured."""
    table = current("likelihood_series", folder)
    if table.empty:
        return set()
    table = table[(table["filter"] == name) & (table["n"] == MAXIMA[name])]
    return set((table if starts == 1 else table[table["apart"].notna()])["seed"])


def rough(args) -> None:
    """Write how rough log-likelihoods are."""
    table = likelihoods.roughness(100, 50, args.seed, args.workers)
    save("roughness", table, args.results, ["model", "filter", "n"])
    show("Second differences of the error", table)


def randomised(args) -> None:
    """Write how much less the log-likelihoods of randomised ranked particles spread, and that they have no bias."""
    unbiased = save(
        "unbiased", likelihoods.unbiased(args.seed), args.results, ["model", "filter", "n"]
    )
    show("Mean of the estimated over the exact likelihood", unbiased)
    table = likelihoods.randomised(args.known_particles, args.steps, args.runs, args.seed)
    table = save("randomised", table, args.results, ["model", "filter", "n"])
    show("Spread of the log-likelihood", table)


def settling(args) -> None:
    """Write how the log-likelihood settles as n grows."""
    table = likelihoods.settling(
        args.settling, args.series, args.seed, args.reference, args.stores / "exact"
    )
    save("settling", table, args.results, ["filter", "n"])
    show("Log-likelihood of bearings, error", table)


def chains(args) -> None:
    """Write how well chains of particle Metropolis-Hastings mix."""
    table = save("chains", likelihoods.chains(args.seed, args.moves), args.results, ["filter"])
    show("Particle Metropolis-Hastings", table)


def smoothers(args) -> None:
    """Write the errors of smoothed means."""
    tables = [
        smoothed.overview(name, n, args.runs, smoothed.CLAIMS + args.seed)
        for name in args.smoothed
        for n in args.particles
    ]
    table = save("smoothers", pd.concat(tables), args.results, ["model", "filter", "smoother", "n"])
    show("Smoothed means, error", table)


def association(args) -> None:
    """Write the errors of the marginals of association."""
    seeds = range(associations.CLAIMS + args.seed, associations.CLAIMS + args.seed + args.matrices)
    cases = [
        (family, tracks, associations.SWEEPS)
        for family in associations.FAMILIES
        for tracks in args.tracks
    ]
    cases += [
        (family, tracks, (300,))
        for family in associations.CLOSE
        for tracks in associations.CLOSE_TRACKS
    ]
    for family, tracks, sweeps in cases:
        if family in (args.matrices_of or [family]):
            table = associations.measured(family, tracks, seeds, sweeps)
            save("association", table, args.results, ["family", "tracks", "method", "sweeps"])
            show(f"Marginals of association, {family}, {tracks} tracks", table, 180)
    association_times(args)


def association_times(args) -> None:
    """Write the times of association on matrices of many shapes."""
    seeds = range(
        associations.CLAIMS + args.seed, associations.CLAIMS + args.seed + min(args.matrices, 20)
    )
    table = save("association_times", associations.times(seeds), args.results, ["matrices"])
    show("Times of association", table, 180)


def clutter(args) -> None:
    """Write how many tracks of one target in clutter are lost."""
    for in_gate in args.in_gate:
        for name, n in cluttered.FILTERS:
            table = cluttered.lost(in_gate, name, n, args.targets, args.seed, args.workers)
            table = save("clutter", table, args.results, ["in_gate", "filter", "n"])
            show("Lost tracks in clutter", table)


def hard(args) -> None:
    """Write how the default does in random scenes of clutter and manoeuvres, beside the mixture Kalman filter."""
    for kind, in_gate in hard_radar.SCENES:
        table = hard_radar.compared(kind, in_gate, args.scene_runs, args.seed, args.workers)
        table = save("hard_radar", table, args.results, ["scene", "in_gate", "filter", "n"])
        show("Clutter and manoeuvres in random scenes", table)


def hidden(args) -> None:
    """Write how many tracks of one target are lost behind a shadow."""
    for name, n in cluttered.HIDDEN_FILTERS:
        table = cluttered.hidden(1.0, name, n, args.targets, args.seed, args.workers)
        table = save("hidden", table, args.results, ["in_gate", "filter", "n", "detection"])
        show("Lost tracks behind a shadow", table)


def harbour(args) -> None:
    """Write what the sensors of the harbour are like, and how filters and trackers do with them."""
    table = save("harbour_sensors", harbours.sensors(args.data), args.results)
    show("Sensors of the harbour", table)
    if args.runs:
        table = save("harbour", harbours.filters(args), args.results)
        show("One vessel", table)
        both = harbours.trackers(args)
        table = save("harbour_two", both, args.results)
        show("Two vessels", table)


def delays(args) -> None:
    """Write how late the sensors of the harbour are."""
    recordings = harbour_delays.by_recording(args.data)
    show("Delays by GPS", save("harbour_delays", recordings, args.results, ["recording"]))
    show(
        "Delays as states", save("harbour_late", harbour_delays.as_states(args.data), args.results)
    )


def misses(args) -> None:
    """Write what the errors of trackers of the harbour's vessels are made of."""
    table = harbour_misses.decomposed(args.data)
    show("What trackers miss", save("harbour_misses", table, args.results))


def modes(args) -> None:
    """Write the errors of filters of models that jump."""
    first = manoeuvres.CLAIMS + args.seed
    for family in args.families:
        table = manoeuvres.overview(family, range(first, first + args.models), args.mode_particles)
        save("modes", table, args.results, ["family", "filter", "n"])
        show(f"Modes, {family}", table)


def forecast(args) -> None:
    """Write the coverage of forecasts."""
    for name in args.forecast_cases:
        table = forecasts.coverage(name, args.forecasts, args.seed)
        table = save("forecasts", table, args.results, ["model", "filter", "of", "horizon", "mass"])
        wide = table[table["model"] == name].pivot_table(
            "share", ["filter", "of", "horizon"], "mass", sort=False
        )
        show(f"Coverage of forecasts, {name}", wide.reset_index())


def linear_models(args) -> None:
    """Write the errors of Rao-Blackwellised filters over those of plain ones."""
    for name in linear_parts.SCENARIOS:
        seeds = range(args.seed, args.seed + args.linear_runs)
        table = linear_parts.overview(name, seeds, args.linear_particles, args.linear_reference)
        save("linear_parts", table, args.results, ["scenario", "filter", "n"])
        show(f"Linear parts, {name}", table)


def dear(args) -> None:
    """Write the errors of filters of a dear model, at as many evaluations and at as much time as bootstrap."""
    for beams, runs in zip(args.dear_beams, args.dear_runs, strict=True):
        seeds = range(args.seed, args.seed + runs)
        table = dearer.overview(
            beams, args.dear_most, seeds, args.dear_reference, args.stores, args.workers
        )
        save("dear_model", table, args.results, ["beams", "filter", "n"])
        show(f"A dear model, {beams} rays", table)


def long(args) -> None:
    """Write the errors of filters over very many steps; the models take turns, and go on where they were left."""
    stages = [*range(long_runs.STAGE, args.long_steps, long_runs.STAGE), args.long_steps]
    for n, steps, name in product(args.long_particles, stages, args.long_models):
        path = args.stores / f"long-{name.replace(' ', '-')}-{n}-{args.seed}.pickle"
        run = long_runs.resumed(path, name, n, long_runs.CLAIMS + args.seed)
        if run.done < steps:
            run.advance(steps)
            rows, curves = run.tables()
            save("long_records", curves, args.results, ["model", "filter", "n", "t"])
            save("long_runs", rows, args.results, ["model", "filter", "n"])
            long_runs.keep(run, path)
            show(f"{steps:,} steps, {name}", rows[long_runs.SHOWN])


def choice(args) -> None:
    """Write how good the choices of `choose` are, and the choice for the pendulum as it prints it."""
    made = choices.on_the_pendulum(args.seed, args.choice_budget, args.workers)
    print(made)
    args.results.mkdir(parents=True, exist_ok=True)
    (args.results / "choice.txt").write_text(f"{made!r}\n", encoding="utf-8")
    stamp("choice", args.results, "python benchmarks/bench_known.py choice")
    for name in args.choices:
        row = choices.judged(name, args.seed, args.choice_budget, args.workers)
        table = save("choices", pd.DataFrame([row]), args.results, ["scenario"])
        show("Choices within a millisecond a step", table)


PARTS = {
    "published": published,
    "papers": papers,
    "evidence": evidence,
    "likelihood": likelihood,
    "noise": noise,
    "roughness": rough,
    "randomised": randomised,
    "settling": settling,
    "chains": chains,
    "smoothers": smoothers,
    "harbour": harbour,
    "delays": delays,
    "misses": misses,
    "clutter": clutter,
    "hard": hard,
    "hidden": hidden,
    "association": association,
    "association_times": association_times,
    "modes": modes,
    "forecast": forecast,
    "linear": linear_models,
    "dear": dear,
    "choice": choice,
    "long": long,
}


def main(arguments: Sequence[str] | None = None) -> None:
    options = study_parser(__doc__, "known")
    options.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all unless one is named")
    options.add_argument(
        "--scenarios", nargs="+", help="of the published figures; all unless some are named"
    )
    options.add_argument("--most", type=int, default=1000, help="most runs of a published figure")
    options.add_argument(
        "--papers",
        nargs="+",
        default=[name for name in as_published.MODULES if name not in as_published.SUFFIXES],
        help="as classic or classic.gordon",
    )
    options.add_argument("--filters", nargs="+", default=FILTERS, help="of the evidence")
    options.add_argument("--particles", type=int, nargs="+", default=[100])
    options.add_argument(
        "--known-particles", type=int, nargs="+", default=[100, 1000], help="of the randomised"
    )
    options.add_argument(
        "--settling",
        type=int,
        nargs="+",
        default=[100, 1000, 10_000, 30_000],
        help="particles of that",
    )
    options.add_argument(
        "--reference", type=int, default=1_000_000, help="particles of its reference"
    )
    options.add_argument("--moves", type=int, default=1500, help="of the chains")
    options.add_argument("--runs", type=int, default=50)
    options.add_argument("--steps", type=int, default=25)
    options.add_argument(
        "--series", type=int, default=20, help="of the maxima, and of what settles"
    )
    options.add_argument(
        "--maxima", nargs="+", choices=MAXIMA, default=list(MAXIMA), help="filters of the maxima"
    )
    options.add_argument("--noise-series", type=int, default=20, help="of each model of the noise")
    options.add_argument("--noise-others", type=int, default=3, help="of them by other ways, too")
    options.add_argument("--noise-seed", type=int, default=noises.CLAIMS, help="of the first")
    options.add_argument(
        "--noise-models", nargs="+", choices=noises.CASES, default=list(noises.CASES)
    )
    options.add_argument(
        "--starts", type=int, default=2, help="of each search; 1 spares the count of maxima"
    )
    options.add_argument(
        "--smoothed",
        nargs="+",
        choices=smoothed.CASES,
        default=list(smoothed.CASES),
        help="models of the smoothers",
    )
    options.add_argument("--targets", type=int, default=100, help="of the clutter")
    options.add_argument("--scene-runs", type=int, default=60, help="of each kind of hard scene")
    options.add_argument(
        "--in-gate", type=float, nargs="+", default=[5.0, 1.0], help="false detections in a gate"
    )
    options.add_argument("--matrices", type=int, default=100, help="of the association")
    options.add_argument(
        "--matrices-of", nargs="+", choices=[*associations.FAMILIES, *associations.CLOSE]
    )
    options.add_argument("--tracks", type=int, nargs="+", default=list(associations.TRACKS))
    options.add_argument("--models", type=int, default=100, help="that jump, of each family")
    options.add_argument(
        "--families", nargs="+", choices=FAMILIES, default=FAMILIES, help="of those models"
    )
    options.add_argument("--mode-particles", type=int, nargs="+", default=[50, 200])
    options.add_argument(
        "--forecasts", type=int, default=400, help="of each model, for their coverage"
    )
    options.add_argument(
        "--forecast-cases", nargs="+", choices=forecasts.CASES, default=list(forecasts.CASES)
    )
    options.add_argument("--linear-runs", type=int, default=20, help="of the linear parts")
    options.add_argument("--linear-particles", type=int, nargs="+", default=[100, 300])
    options.add_argument(
        "--linear-reference", type=int, default=5000, help="particles of their reference"
    )
    options.add_argument(
        "--dear-beams", type=int, nargs="+", default=[36, 12], help="rays of the dear model"
    )
    options.add_argument(
        "--dear-runs", type=int, nargs="+", default=[8, 12], help="for each of these numbers"
    )
    options.add_argument(
        "--dear-most", type=int, default=3200, help="most particles of its filters"
    )
    options.add_argument(
        "--dear-reference", type=int, default=4000, help="particles of its reference"
    )
    options.add_argument("--choices", nargs="+", default=list(choices.SCENARIOS))
    options.add_argument("--choice-budget", type=float, default=100.0, help="seconds of a choice")
    options.add_argument("--long-steps", type=int, default=1_000_000, help="of the long runs")
    options.add_argument(
        "--long-models",
        nargs="+",
        choices=long_models.MODELS,
        default=long_models.MODELS,
        help="of them",
    )
    options.add_argument("--long-particles", type=int, nargs="+", default=[100, 20], help="of them")
    args = options.parse_args(arguments)
    announce(args.seed)
    args.stores.mkdir(parents=True, exist_ok=True)
    for part in args.parts or PARTS:
        PARTS[part](args)


if __name__ == "__main__":
    main()
