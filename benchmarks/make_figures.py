"""Every results file of the pages: the command that makes it, and the code that it measures; ``make figures`` runs them.

A part is stale when the code that it measures has changed since it was made to its end, as `dependencies.py` tells. Stale
parts are made anew, each in a process of its own: first those whose subject is time, one after the other, then the others,
two at a time, each on one core. What they print is in `results/figures`. What is started again goes on where it was. Figures
may be kept on purpose, with a reason that the pages print.

python benchmarks/make_figures.py                          make what is stale, then the pages
python benchmarks/make_figures.py PARTS                    make these, stale or not
python benchmarks/make_figures.py --together 1             one part at a time
python benchmarks/make_figures.py --list                   say what is stale, and how long each part took
python benchmarks/make_figures.py --keep REASON PARTS      keep the figures of these parts as they are
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from common import RESULTS, held, measured, stamp, write
from dependencies import ROOT, digest

SEED = 6_000_000
"""First seed of the claims; nobody had seen those from here on."""
UNSEEN = 8_000_000
"""First seed of the claims on evaluations of the model, made later."""
LATEST = 8_900_000
"""First seed of the claims on equal times, made later still."""
CHOICES = 9_100_000
"""First seed of the claim on choices of a filter."""
BOARD_DATE = "2026-11-27"
"""Day whose models the rows of the board are made on."""
LOGS = ROOT / "results" / "figures"
"""What parts print while they are made."""
OF_WORKERS = ("bench_default", "bench_known", "bench_peers", "bench_quality", "bench_study")
"""Scripts that would use all cores."""
CLAIM = f"--first-model {LATEST} --runs 2 --reference 32768"


@dataclass(frozen=True)
class Part:
    """A command, or several joined by "&&", the results files that they write, and the code that these hang on."""

    command: str
    files: str
    measures: str
    alone: bool = False
    """Whether nothing runs beside it, since it measures times."""
    stores: str = ""
    """Folder of stores that it shares with other parts: they run one after the other."""

    @property
    def made(self) -> tuple[str, ...]:
        """Names of the results files."""
        return tuple(self.files.split())

    @property
    def digest(self) -> str:
        """Digest of the code today."""
        return digest(*self.measures.split())


def known(part: str, files: str, measures: str, options: str = "") -> Part:
    """Return a part of `bench_known.py`."""
    return Part(f"python benchmarks/bench_known.py {part} {options}".rstrip(), files, measures)


def default(
    part: str, files: str, options: str, measures: str = "filters", alone: bool = False
) -> Part:
    """Return a part of `bench_default.py`."""
    return Part(
        f"python benchmarks/bench_default.py --part {part} {options}".rstrip(),
        files,
        measures,
        alone,
        "default",
    )


CATALOGUE = "filters herdfilter/catalogue/filters.toml"
SCENARIOS = [
    "ungm",
    "lorenz63",
    "bearings",
    "linear_chain",
    "manoeuvre",
    "inertial_terrain",
    "crossing",
]
SETS = f"tracking {CATALOGUE} scenarios/crossing.toml scenarios/meeting.toml"
HARBOUR = "tracking " + " ".join(
    f"scenarios/{name}"
    for name in ("harbour.py", "autoferry.py", "harbour.toml", "harbour_two.toml")
)
PARTS = {
    # times first, while nothing else runs
    "speed": Part(
        "python benchmarks/bench_speed.py samplers plain components growth --patience 40",
        "speed_samplers speed_plain speed_components speed_growth",
        "samplers",
        alone=True,
    ),
    "steps": Part(
        "python benchmarks/bench_speed.py step sqmc compiled tracks together",
        "speed_step speed_sqmc speed_compiled speed_tracks speed_together",
        CATALOGUE,
        alone=True,
    ),
    "crowd": Part(
        "python benchmarks/bench_speed.py tracker", "speed_tracker", "tracking", alone=True
    ),
    "startup": Part("python benchmarks/bench_startup.py", "import startup", CATALOGUE, alone=True),
    "times": default(
        "times", "default_times", f"--times-models 30 --first-model {LATEST}", alone=True
    ),
    "dear": Part(
        "python benchmarks/bench_known.py dear",
        "dear_model",
        f"{CATALOGUE} scenarios/lidar.py scenarios/lidar.toml",
        alone=True,
    ),
    "demo": Part("make demo", "demo", CATALOGUE, alone=True),
    # samplers
    "quality": Part(
        "python benchmarks/bench_quality.py --sizes 20 100 --mixtures 13"
        " && python benchmarks/bench_quality.py --sizes 300 --samplers kh chg --mixtures 13",
        "quality",
        "samplers discrepancy",
    ),
    "hostile": Part(
        "python benchmarks/bench_quality.py --hostile 4000", "far hostile", "samplers discrepancy"
    ),
    "kernels": Part(
        "python benchmarks/bench_quality.py --kernels Haswell Sandybridge Nehalem --mixtures 5",
        "kernels",
        "samplers discrepancy",
    ),
    "mixtures": Part(
        "python benchmarks/bench_quality.py --points sobol kh chg JointHerding JointHerdedGibbs joint-20"
        " sobol-polished support pcd pcd-500 pcd-default lcd random --dims 2 4 8 --sizes 50 100 --mixtures 4"
        " && python benchmarks/bench_quality.py --points sobol kh chg JointHerding JointHerdedGibbs support pcd random"
        " --dims 2 4 8 --sizes 400 --mixtures 4"
        " && python benchmarks/bench_quality.py --points sobol kh chg JointHerding JointHerdedGibbs joint-20"
        " sobol-polished support pcd --dims 1 --sizes 100 --mixtures 4"
        " && python benchmarks/bench_quality.py --points pcd pcd-default pcd-500 --compiled --dims 4 --sizes 100",
        "mixtures mixtures_compiled",
        "samplers discrepancy",
        alone=True,
    ),
    "points": Part(
        "python benchmarks/bench_peers.py samplers --sizes 16 64", "peers", "samplers discrepancy"
    ),
    "thinning": Part("python benchmarks/bench_peers.py thin", "thinning", "discrete discrepancy"),
    "thinning-large": Part(
        "python benchmarks/bench_peers.py large", "thinning_large", "discrete discrepancy"
    ),
    "paper": Part(
        "python docs/make_images.py paper_fig1 paper_fig2 paper_fig3 paper_fig4 paper_fig5",
        "paper_fig1 paper_fig2 paper_fig3 paper_fig4 paper_fig5",
        "paper",
    ),
    # filters on random models
    "equal": default("equal", "default default_models default_again", f"--models 200 {CLAIM}"),
    "kinds": default("kinds", "default_other_kinds", f"--kind-models 13 {CLAIM}"),
    "exponent": default(
        "exponent", "default_exponent default_growth", f"--exponent-models 40 {CLAIM}"
    ),
    "budget": default("budget", "default_budget", f"--budget-models 24 --no-peers {CLAIM}"),
    "compiled": default(
        "compiled",
        "compiled compiled_cases",
        f"--seed {LATEST} --compiled-runs 4",
        "filters compiled benchmarks/compiled_models.py benchmarks/compiled_study.py",
    ),
    "evaluations": default(
        "evaluations",
        "evaluations evaluations_spent evaluations_cases",
        f"--models 200 --first-model {UNSEEN} --seed {UNSEEN} --runs 2 --reference 32768",
        f"{CATALOGUE} benchmarks/evaluations.py",
    ),
    "modes": known("modes", "modes", CATALOGUE, "--models 40"),
    # filters on named scenarios
    "scenarios": default(
        "scenarios",
        "default_scenarios",
        f"--first-model {SEED} --reference 32768 --seed {SEED} --scenario-runs 9",
        f"{CATALOGUE} tracking scenarios",
    ),
    "study": Part(
        f"python benchmarks/bench_study.py --seed {SEED} --runs 9",
        "study break_even",
        f"{CATALOGUE} tracking {' '.join(f'scenarios/{name}.toml' for name in SCENARIOS)}",
    ),
    "linear": known("linear", "linear_parts", CATALOGUE, "--linear-runs 13"),
    "clutter": known("clutter", "clutter", CATALOGUE),
    "hidden": known("hidden", "hidden", CATALOGUE, "--targets 40"),
    "hard": known("hard", "hard_radar", CATALOGUE, "--seed 5000000"),
    "forecast": known("forecast", "forecasts", CATALOGUE, "--forecasts 240"),
    "smoothers": known("smoothers", "smoothers", "smoothing"),
    # likelihoods
    "evidence": known("evidence", "evidence", CATALOGUE),
    "likelihood": known(
        "likelihood", "likelihood likelihood_series", f"likelihood {CATALOGUE}", "--series 12"
    ),
    "noise": known("noise", "noise noise_series", f"noise {CATALOGUE}"),
    "roughness": known("roughness", "roughness", f"likelihood {CATALOGUE}"),
    "randomised": known("randomised", "randomised unbiased", CATALOGUE, "--runs 50"),
    "settling": known("settling", "settling", CATALOGUE, "--series 13"),
    "chains": known("chains", "chains", f"likelihood {CATALOGUE}", "--moves 900"),
    # association and many targets
    "association": known("association", "association association_times", "association"),
    "trackers": Part(
        f"python benchmarks/bench_peers.py trackers --runs 60 --seed {SEED}", "trackers", SETS
    ),
    "harbour": known(
        "harbour",
        "harbour harbour_two harbour_sensors",
        f"{HARBOUR} {CATALOGUE}",
        f"--runs 8 --seed {SEED}",
    ),
    "delays": known("delays", "harbour_delays harbour_late", HARBOUR),
    "misses": known("misses", "harbour_misses", HARBOUR),
    # others
    "published": known("published", "published", CATALOGUE),
    "papers": known("papers", "as_published", f"smoothing association discrepancy {CATALOGUE}"),
    "dapper": known("papers", "as_published_dapper", CATALOGUE, "--papers dapper"),
    "choice": Part(
        f"python benchmarks/bench_known.py choice --seed {CHOICES}",
        "choice choices",
        f"{CATALOGUE} herdfilter/study/choosing.py benchmarks/choices.py",
        alone=True,
    ),
    "long": known("long", "long_runs long_records", CATALOGUE, "--long-particles 100"),
    "board": Part(
        f"python benchmarks/bench_study.py --board auto ranked sqmc mixture-kh ukf --board-date {BOARD_DATE}",
        "board",
        f"{CATALOGUE} study benchmarks/board.py",
    ),
    "libraries": Part(
        f"python benchmarks/bench_peers.py filters --seed {SEED} --peer-runs 7 --seconds 12",
        "peers_filters peers_budget peers_agreement",
        CATALOGUE,
    ),
    "adapters": Part(
        "python benchmarks/bench_peers.py adapters --runs 30", "adapters", f"adapters {CATALOGUE}"
    ),
    "calls": Part(
        "python benchmarks/bench_engine.py calls",
        "engine_calls",
        "_checks filters samplers models",
        alone=True,
    ),
}
"""Name -> part. `measures` are modules or folders of the package, and other files of the project."""


def part_of(table: str) -> Part | None:
    """Return the part that writes a results file; None for a table that is on no page."""
    return next((part for part in PARTS.values() if table in part.made), None)


def done() -> pd.DataFrame:
    """Return what `figures.csv` says of each part that was made to its end, all of it text."""
    path = RESULTS / "figures.csv"
    columns = ["part", "minutes", "digest", "kept"]
    return (
        pd.read_csv(path, dtype=str, keep_default_na=False)
        if path.is_file()
        else pd.DataFrame(columns=columns)
    )


def note(name: str, minutes: str, kept: str = "") -> None:
    """Say in `figures.csv` that a part's files are of the code of today, or are kept though they are not."""
    row = pd.DataFrame(
        [{"part": name, "minutes": minutes, "digest": PARTS[name].digest, "kept": kept}]
    )
    with held(RESULTS):
        log = done()
        write(
            RESULTS / "figures.csv", pd.concat([log[log["part"] != name], row]).sort_values("part")
        )


def stale(name: str) -> bool:
    """Whether a part was not made to its end with the code of today; what is kept on purpose is not stale."""
    log = done().set_index("part")["digest"]
    return log.get(name) != PARTS[name].digest


def run(name: str) -> bool:
    """Run the commands of a part, and stamp its files; return False if one fails."""
    part, start = PARTS[name], time.monotonic()
    LOGS.mkdir(parents=True, exist_ok=True)
    with (LOGS / f"{name}.txt").open("w", encoding="utf-8") as log:
        for command in map(shlex.split, part.command.split(" && ")):
            print(f"{name}: {shlex.join(command)}", flush=True)
            full = command if command[0] == "make" else [sys.executable, *command[1:]]
            full += (
                ["--workers", "1"] if Path(command[1]).stem in OF_WORKERS and not part.alone else []
            )
            if subprocess.run(
                full, cwd=ROOT, check=False, stdout=log, stderr=subprocess.STDOUT
            ).returncode:
                print(f"{name}: failed, see {log.name}", flush=True)
                return False
    for table in part.made:
        stamp(table, RESULTS, part.command)
    minutes = f"{(time.monotonic() - start) / 60:.1f}"
    note(name, minutes)
    print(f"{name}: {minutes} minutes", flush=True)
    return True


def run_all(names: Sequence[str], together: int) -> list[str]:
    """Run parts: those that measure times alone, then the others, so many at a time. Return those that failed.

    The longest begin first, as long as they took last time, so that the end is not a wait for one of them.
    """
    failed = [name for name in names if PARTS[name].alone and not run(name)]
    took = pd.to_numeric(done().set_index("part")["minutes"], errors="coerce")
    order = [name for name in names if not PARTS[name].alone]
    order.sort(key=lambda name: -took.get(name, np.inf))
    pending, running, ready = list(order), set(), threading.Condition()

    def next_part() -> str | None:
        with ready:
            while pending:
                free = [
                    name
                    for name in pending
                    if not PARTS[name].stores or PARTS[name].stores not in running
                ]
                if free:
                    pending.remove(free[0])
                    running.add(PARTS[free[0]].stores)
                    return free[0]
                ready.wait()
        return None

    def work() -> None:
        while (name := next_part()) is not None:
            good = run(name)
            with ready:
                running.discard(PARTS[name].stores)
                failed.extend([] if good else [name])
                ready.notify_all()

    threads = [threading.Thread(target=work) for _ in range(together)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    finally:
        pending.clear()  # of an interrupt: what runs ends, nothing else begins
    return failed


def listing() -> pd.DataFrame:
    """Return every part with its date, its minutes, whether it is stale or kept, and its files."""
    log, dates = done().set_index("part"), measured(RESULTS).set_index("table")["date"]
    rows = []
    for name, part in PARTS.items():
        state = "stale" if stale(name) else log["kept"][name] and "kept"
        row = {
            "part": name,
            "date": dates.reindex(part.made).min(),
            "minutes": log["minutes"].get(name, ""),
        }
        rows.append(row | {"state": state, "files": part.files})
    return pd.DataFrame(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "parts", nargs="*", choices=[*PARTS, []], metavar="PARTS", help=", ".join(PARTS)
    )
    options.add_argument("--list", action="store_true", help="only say what is stale")
    options.add_argument("--keep", metavar="REASON", help="keep the figures of the parts named")
    options.add_argument(
        "--together", type=int, default=min(2, os.cpu_count() or 1), help="parts that run at a time"
    )
    args = options.parse_args(arguments)
    if args.list:
        print(listing().to_string(index=False, na_rep=""))
        return 0
    if args.keep:
        minutes = done().set_index("part")["minutes"]
        for name in args.parts:
            note(name, minutes.get(name, ""), args.keep)
        return 0
    failed = run_all(args.parts or [name for name in PARTS if stale(name)], args.together)
    subprocess.run([sys.executable, ROOT / "docs" / "make_pages.py"], check=True)
    if failed:
        print("failed:", ", ".join(failed), file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
