"""``herdfilter choose``: which filter to take for a model, and with how many particles."""

from __future__ import annotations

from pathlib import Path

from click import argument, command, option

from herdfilter.cli import terminal


def seconds(name: str, text: str) -> float:
    """Return a duration such as ``1ms``, ``500 us`` or ``0.001``, a number of seconds."""
    import pandas as pd

    try:
        return float(text)
    except ValueError:
        pass
    try:
        return float(pd.Timedelta(text).total_seconds())
    except ValueError:
        raise terminal.InputError(
            f"{name}: expected a duration such as 1ms or 0.001, got {text!r}"
        ) from None


@command("choose", short_help="Find the best filter for a model within a time.")
@argument("model", metavar="FILE:FUNCTION")
@option("--step-time", required=True, metavar="TIME", help="Time of a step, such as 1ms.")
@option(
    "--filters",
    shell_complete=terminal.complete_filters,
    metavar="NAMES",
    help="Names, separated by commas. [default: one of each kind]",
)
@option("--steps", type=int, help="Length of the simulated series. [default: 50]")
@option("--dt", type=float, help="Duration of a step, in the model's unit. [default: 1]")
@option("--budget", default="100s", show_default=True, help="Time for all.")
@option("--seed", default=0, show_default=True, help="Root of all random numbers.")
@option("--workers", type=int, metavar="W", help="Processes. [default: one per processor core]")
@option("--store", type=terminal.PATH, metavar="FILE", help="Keep the runs, to continue later.")
@option("-q", "--quiet", is_flag=True, help="Only the table.")
def choose_command(
    model: str,
    step_time: str,
    filters: str | None,
    steps: int | None,
    dt: float | None,
    budget: str,
    seed: int,
    workers: int | None,
    store: Path | None,
    quiet: bool,
) -> None:
    """Find the filter with the smallest error for a model, with as many particles as fit the time of a step.

    FILE:FUNCTION is a function without arguments, or a class, in a Python file; it makes the model. Its code is run.
    """
    # loaded here, as `herdfilter --help` needs none of it
    from herdfilter.study.choosing import CANDIDATES, choose

    course = {} if dt is None else {"dt": dt}
    times = (seconds("step-time", step_time), seconds("budget", budget))
    with terminal.finishing(None, ""):
        choice = choose(
            model,
            times[0],
            filters=filters or CANDIDATES,
            steps=steps,
            budget=times[1],
            seed=seed,
            workers=workers,
            progress=not quiet,
            store=store,
            **course,
        )
    terminal.echo(str(choice))
