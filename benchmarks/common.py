"""What the benchmarks share: the mixtures, timing, what is printed, and the results files that the pages are made of."""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import numba
import numpy as np
import pandas as pd
import scipy
from dependencies import digest
from rich.console import Console
from rich.table import Table

from herdfilter import GaussianMixture, __version__

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

RESULTS = Path(__file__).parent / "results"
MEASURED = ["table", "version", "date", "machine", "command", "digest"]
WHERE = ("--data", "--results", "--stores", "--workers", "--environments", "--pcd")


def parser(text: str | None) -> argparse.ArgumentParser:
    """Return a parser that shows a script's docstring, with the options that all scripts have."""
    made = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--results", type=Path, default=RESULTS, help="folder of the results files")
    made.add_argument("--seed", type=int, default=0)
    return made


def save(name: str, table: pd.DataFrame, folder: Path, keys: Sequence[str] = ()) -> pd.DataFrame:
    """Write a results file in one go, note in `measured.csv` when and by which command it was measured, and return it.

    Rows of the file that differ from all new ones in `keys` stay, if they are of the same code; without keys, none do.
    """
    folder.mkdir(parents=True, exist_ok=True)
    table = _merged(current(name, folder), table.map(_rounded), list(keys))
    write(folder / f"{name}.csv", table)
    stamp(name, folder, _command(sys.argv))
    return table


def _command(words: Sequence[str]) -> str:
    """Return the command of a script without the options that say where and not what."""
    script, kept = Path(words[0]).resolve(), list(words[1:])
    for option in WHERE:
        while option in kept:
            place = kept.index(option)
            del kept[place : place + 2]
    return shlex.join(["python", f"{script.parent.name}/{script.name}", *kept])


def stamp(name: str, folder: Path, command: str) -> None:
    """Note in `measured.csv` that a results file was made by a command, here and now, with the code of today."""
    machine = f"{_processor()}, {os.cpu_count()} cores"
    values = (name, __version__, f"{datetime.now(UTC):%Y-%m-%d}", machine, command, _digest(name))
    note = pd.DataFrame([dict(zip(MEASURED, values, strict=True))])
    with held(folder):
        write(
            folder / "measured.csv", _merged(measured(folder), note, ["table"]).sort_values("table")
        )


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold a folder, so that no other script of ours changes its lists in the meantime; not on Windows."""
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def current(name: str, folder: Path) -> pd.DataFrame:
    """Return a results file if it is of the code of today, else an empty table."""
    log = measured(folder)
    same = (log.loc[log["table"] == name, "digest"] == _digest(name)).all()
    return load(name, folder) if same else pd.DataFrame()


def measured(folder: Path) -> pd.DataFrame:
    """Return what `measured.csv` says of each results file: the columns of `MEASURED`, all of them text."""
    path = folder / "measured.csv"
    return (
        pd.read_csv(path, dtype=str, keep_default_na=False)
        if path.is_file()
        else pd.DataFrame(columns=MEASURED)
    )


def _digest(name: str) -> str:
    from make_figures import part_of

    part = part_of(name)
    return "" if part is None else part.digest


def stores_of(name: str) -> Path:
    """Return the folder of a script's stores: of other filters, it is another."""
    return Path("results") / f"{name}-{digest('filters')}"


def _merged(old: pd.DataFrame, new: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    if old.empty or not keys:
        return new
    known = set(new[keys].astype(str).itertuples(index=False, name=None))
    stays = [row not in known for row in old[keys].astype(str).itertuples(index=False, name=None)]
    return pd.concat([old[stays], new], ignore_index=True) if any(stays) else new


def stored(path: Path, compute: Callable[[], np.ndarray]) -> np.ndarray:
    """Return numbers from a file, where they are computed first if it is not there: references that several parts need."""
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}.npy")
        np.save(part, compute())
        part.replace(path)
    return np.load(path)


def load(name: str, folder: Path) -> pd.DataFrame:
    """Return a results file, an empty table if there is none."""
    path = folder / f"{name}.csv"
    return pd.read_csv(path) if path.is_file() else pd.DataFrame()


def _rounded(value: object) -> object:
    return float(f"{value:.4g}") if isinstance(value, (float, np.floating)) else value


def write(path: Path, table: pd.DataFrame) -> None:
    """Write a table in one go."""
    part = path.with_suffix(f".{os.getpid()}.part")
    table.to_csv(part, index=False)
    part.replace(path)


def particle_mixture(
    dim: int, components: int, modes: int, rng: np.random.Generator
) -> GaussianMixture:
    """Return what a filter herds from: particles of a Gaussian or a two-mode posterior, random weights, one covariance.

    The modes, of weights 0.6 and 0.4, are unit Gaussians six apart; the shared covariance has standard deviation 0.3.
    """
    means = rng.standard_normal((components, dim))
    if modes == 2:
        means[rng.random(components) < 0.4, 0] += 6.0
    return GaussianMixture(rng.dirichlet(np.ones(components)), means, 0.09 * np.eye(dim))


def whitened(mixture: GaussianMixture) -> GaussianMixture:
    """Return the mixture in coordinates in which its covariance is I."""
    w = np.linalg.inv(np.linalg.cholesky(mixture.covariance))
    return GaussianMixture(mixture.weights, mixture.means @ w.T, w @ mixture.covariances @ w.T)


def timed(function: Callable[[], object]) -> tuple[float, object]:
    """CPU seconds that this thread spends on one call, and what the call returns."""
    start = time.thread_time()
    result = function()
    return time.thread_time() - start, result


def cpu_seconds(functions: Sequence[Callable[[], object]], repeats: int) -> np.ndarray:
    """Median CPU seconds of each call, shape (len(functions),), after one round that is not counted.

    The calls take turns, so that what disturbs the machine disturbs all alike, and so that no call finds what the one
    before it left in the caches.
    """
    for function in functions:
        function()
    return np.median([[timed(f)[0] for f in functions] for _ in range(repeats)], axis=0)


def mean_with_interval(values: np.ndarray) -> tuple[float, float, float]:
    """Mean over runs (n,), with the 95 % interval of 2,000 bootstrap samples of them."""
    rng = np.random.default_rng(0)
    means = values[rng.integers(len(values), size=(2000, len(values)))].mean(axis=1)
    return float(values.mean()), *(float(q) for q in np.quantile(means, (0.025, 0.975)))


def announce(seed: int | None = None) -> None:
    """Print the command, the seed, and the machine."""
    print("$ python", *sys.argv)
    versions = ", ".join(f"{m.__name__} {m.__version__}" for m in (np, numba, scipy))
    print(
        f"{'' if seed is None else f'seed {seed}; '}{os.cpu_count()} cores, {_processor()}; ",
        end="",
    )
    print(f"python {platform.python_version()}, {versions}", flush=True)


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(
                line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")
            )
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def show(title: str, table: pd.DataFrame, width: int = 150) -> None:
    """Print a table of at most `width` characters."""
    printed = Table(title=title, title_justify="left")
    for k, column in enumerate(table):
        printed.add_column(str(column), justify="left" if k == 0 else "right")
    for row in table.itertuples(index=False):
        printed.add_row(*(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row))
    Console(width=width).print(printed)
