"""``herdfilter compare``."""

from __future__ import annotations

from pathlib import Path

from click import argument, command, option

from herdfilter._checks import as_positive, check_count
from herdfilter.cli import terminal
from herdfilter.cli.findings import output_options, print_findings, write_findings
from herdfilter.filters.progress import live_line


# What is left out is None: then the scenario decides, or `run_study`.
@command("compare", short_help="Compare filters on a scenario.")
@argument("scenario", shell_complete=terminal.complete_scenario)
@option(
    "--filters",
    shell_complete=terminal.complete_filters,
    metavar="NAMES",
    help="Names, separated by commas. [default: the scenario's]",
)
@option(
    "--particles",
    metavar="COUNTS",
    help="Particle counts, such as 50,100. [default: the scenario's]",
)
@option(
    "--runs",
    type=int,
    metavar="N",
    help="Runs; for a family, of each model. [default: the scenario's]",
)
@option(
    "--models",
    type=int,
    metavar="M",
    help="Models of a family, such as `random`. [default: the scenario's]",
)
@option(
    "--first-model",
    type=int,
    metavar="S",
    help="Seed of the first model: to 9,999 to tune, from 1,000,000 to claim. [default: the scenario's]",
)
@option("--seed", default=0, show_default=True, help="Root of all random numbers.")
@option("--workers", type=int, metavar="W", help="Processes. [default: one per processor core]")
@option("--data", metavar="DIR", help="Folder of the real data, for scenarios that need them.")
@option(
    "--out",
    type=terminal.PATH,
    metavar="DIR",
    help="Folder for report, tables, figures; study.sqlite stores every run.",
)
@option(
    "--resume",
    is_flag=True,
    help="Continue the comparison in --out, with more --runs or --models if you like.",
)
@option(
    "--run-timeout",
    type=float,
    metavar="SECONDS",
    help="A run whose filter takes longer has failed. [default: no limit]",
)
@option(
    "--scheduler",
    metavar="WHERE",
    help="local, dask (here) or a cluster, tcp://host:8786. [default: local]",
)
@output_options
def compare_command(
    scenario: str,
    filters: str | None,
    particles: str | None,
    runs: int | None,
    seed: int,
    workers: int | None,
    data: str | None,
    out: Path | None,
    resume: bool,
    run_timeout: float | None,
    scheduler: str | None,
    wide: bool,
    quiet: bool,
    verbose: bool,
    **family: int | None,
) -> None:
    """Compare filters on a SCENARIO: a name that `herdfilter scenarios` lists, or a TOML file.

    A TOML file runs the code that it names: Python files beside it in `type`, modules under `imports`. Read both keys
    of a file from elsewhere first; without them it uses herdfilter's own classes alone.
    """
    # loaded here, as `herdfilter --help` needs none of it
    import joblib

    from herdfilter.study.engine import run_study
    from herdfilter.study.plan import plan_study
    from herdfilter.study.store import FILE_NAME
    from herdfilter.study.workers import check_scheduler

    if resume and out is None:
        raise terminal.InputError("resume: needs --out, the folder of the comparison to continue")
    # What is wrong with an option is said before the scenario is prepared, which may take seconds.
    if run_timeout is not None:
        as_positive("run_timeout", run_timeout)
    if "://" in check_scheduler(scheduler) and workers is not None:
        raise terminal.InputError(
            f"workers: the cluster at {scheduler} has its own; leave out --workers"
        )
    workers = joblib.cpu_count() if workers is None else check_count("workers", workers)
    # A comma too many is no mistake.
    names = (
        None if filters is None else [name.strip() for name in filters.split(",") if name.strip()]
    )
    try:
        counts = None if particles is None else [int(count) for count in particles.split(",")]
    except ValueError:
        raise terminal.InputError(
            f"particles: expected integers separated by commas, got {particles!r}"
        ) from None
    with live_line(f"preparing {scenario}", visible=not quiet):
        study = plan_study(scenario, names, counts, runs, seed, data, **family)
    # Every finished run is written at once, and so nothing is lost if the machine stops.
    store = None if out is None else out / FILE_NAME
    # Interrupted from here on, the command says how to continue.
    with terminal.finishing(out, FILE_NAME):
        result = run_study(study, workers, not quiet, store, resume, scheduler, run_timeout)
    print_findings(result, wide, quiet, verbose)
    if out is not None:
        write_findings(result, out, quiet, [FILE_NAME])
