"""The store of a study: one SQLite file, which one process writes task by task, and any number may read.

The schema, version 4 (``PRAGMA user_version``; ``PRAGMA application_id`` marks a file of this kind):

``study (name, value)``
    ``configuration``: the description of the study, JSON (`Study.describe`).
``sessions (session)``
    One row for every session of computing: start in UTC, executor, package versions and machine, JSON.
``runs (filter, n_particles, run, reference, diverged, error, traceback, kind, ...)``
    One row per finished task. ``error`` is empty unless the run failed, ``kind`` is the kind of a family's model. Every
    number measured (see `herdfilter.compare`) has a column, NULL if unknown.
``arrays (filter, n_particles, run, name, shape, data)``
    64-bit floats, least significant byte first, in C order, compressed by zlib, and their shape as JSON. The series of a
    task have its filter, particle count and run. The arrays of the first run in full (`Trajectory`) have particle count 0,
    and those that all filters share have the filter ``''``.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections import UserDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from herdfilter._checks import Array
from herdfilter.study import plan, tasks
from herdfilter.study.columns import MEASURED
from herdfilter.study.machine import machine, versions
from herdfilter.study.results import StudyResult, Trajectory

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FILE_NAME", "Store", "open_for_reading"]

FILE_NAME = "study.sqlite"
"""Name of the store in an output folder."""

BUSY_SECONDS = 30.0  # time to wait for another program that locks the file

KIND = 0x68657264  # "herd"
SCHEMA_VERSION = 4

_COSMETIC = (
    *("title", "source", "unit", "labels", "time_label", "view"),
    *("runs", "models", "first_model", "particles", "filters", "filter"),
)
"""Keys of a scenario that do not affect results, or that the description holds elsewhere, too."""


def schema() -> str:
    """Return the statements that make an empty store."""
    return f"""
        PRAGMA application_id = {KIND};
        PRAGMA user_version = {SCHEMA_VERSION};
        CREATE TABLE IF NOT EXISTS study (name TEXT PRIMARY KEY, value TEXT NOT NULL);
        CREATE TABLE IF NOT EXISTS sessions (session TEXT NOT NULL);
        CREATE TABLE IF NOT EXISTS runs (
            filter TEXT NOT NULL, n_particles INTEGER NOT NULL, run INTEGER NOT NULL,
            reference TEXT NOT NULL, diverged INTEGER NOT NULL, error TEXT NOT NULL, traceback TEXT NOT NULL, kind TEXT,
            {" REAL, ".join(MEASURED)} REAL,
            PRIMARY KEY (filter, n_particles, run)
        );
        CREATE TABLE IF NOT EXISTS arrays (
            filter TEXT NOT NULL, n_particles INTEGER NOT NULL, run INTEGER NOT NULL, name TEXT NOT NULL,
            shape TEXT NOT NULL, data BLOB NOT NULL,
            PRIMARY KEY (filter, n_particles, run, name)
        );
    """


class StoreError(ValueError):
    """A file is not a store, is damaged, has another version or another study, or cannot be written."""


def connect(path: Path | None, options: str = "") -> sqlite3.Connection:
    """Open a database, in memory without a path; `options` are those of an SQLite address, such as ``?mode=rw``."""
    address = ":memory:" if path is None else path.resolve().as_uri() + options
    try:
        # Transactions are our own; and the generator of a study may be closed in another thread than its first.
        return sqlite3.connect(
            address, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
    except sqlite3.Error as error:
        raise StoreError(f"{path}: cannot be opened ({error})") from error


class Store:
    """A store, open for reading; made by `open_for_reading`.

    Examples
    --------
    >>> from herdfilter.study.store import open_for_reading
    >>> table = hf.compare("linear_gaussian", ["bootstrap"], particles=[20], runs=1, store="study.sqlite")
    >>> with open_for_reading("study.sqlite") as store:
    ...     print(store.table().equals(table), len(store.finished()), len(store.sessions()))
    True 1 1
    """

    def __init__(self, path: Path | None, connection: sqlite3.Connection) -> None:
        self.path = path  # None in memory
        self.name = "memory" if path is None else str(path)
        self._connection = connection

    @contextmanager
    def _undamaged(self) -> Iterator[None]:
        """Turn errors of damaged contents into StoreError: SQLite itself does not see damage inside a value."""
        try:
            yield
        except (StoreError, MemoryError, ImportError, OSError):
            # The others are faults of the machine, after which the store is as good as before.
            raise
        except Exception as error:  # damaged contents may raise anything
            raise StoreError(
                f"{self.name}: damaged store ({type(error).__name__}: {error})"
            ) from error

    def check(self, empty: bool) -> None:
        """Raise StoreError unless this is an intact store of this version, or with `empty` has nothing in it."""
        # One statement, which sees one moment: another process may be creating the store.
        question = (
            "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema) "
            "FROM pragma_application_id, pragma_user_version"
        )
        try:
            kind, version, tables = self._connection.execute(question).fetchone()
            flaw = self._connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        except (sqlite3.Error, UnicodeDecodeError) as error:
            # UnicodeDecodeError: the report of a flaw may quote damaged text.
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
                raise StoreError(
                    f"{self.name}: locked by another program; end that, or wait"
                ) from error
            raise StoreError(
                f"{self.name}: not a store of herdfilter, or damaged ({error})"
            ) from error
        if not kind and not tables:
            if not empty:
                raise StoreError(f"{self.name}: nothing is in it yet")
        elif kind != KIND:
            raise StoreError(f"{self.name}: not a store of herdfilter")
        elif version != SCHEMA_VERSION:
            raise StoreError(
                f"{self.name}: a store of version {version}, but this herdfilter reads version {SCHEMA_VERSION}; read it "
                "with the herdfilter that wrote it (`herdfilter export`), or compare anew in another folder"
            )
        elif flaw != "ok":
            raise StoreError(f"{self.name}: damaged store ({' '.join(flaw.split())})")

    def description(self) -> dict[str, Any]:
        """Return the description of the study."""
        with self._undamaged():
            (text,) = self._connection.execute(
                "SELECT value FROM study WHERE name = 'configuration'"
            ).fetchone()
            description: dict[str, Any] = json.loads(text)
            plan.Study.described(description)  # raises an error if it is damaged
        return description

    def sessions(self) -> list[dict[str, Any]]:
        """Return start, executor, versions of packages and machine of every session of computing."""
        with self._undamaged():
            rows = self._connection.execute("SELECT session FROM sessions ORDER BY rowid")
            return [json.loads(text) for (text,) in rows]

    def begun(self) -> bool:
        """Return True unless the store is empty."""
        return bool(self._connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0])

    def finished(self) -> set[tasks.Task]:
        """Return the finished tasks."""
        with self._undamaged():
            return {
                tasks.Task(*row)
                for row in self._connection.execute("SELECT filter, n_particles, run FROM runs")
            }

    def table(self) -> pd.DataFrame:
        """Return all finished tasks as the table of `herdfilter.compare`, in the order of the study."""
        import pandas as pd

        with self._undamaged():
            description = self.description()
            study = plan.Study.described(description)
            table = pd.read_sql_query("SELECT * FROM runs", self._connection)
            table["scenario"] = description["scenario"]["name"]
            table["seed"] = description["seed"]
            family = []
            if study.family is not None:
                table["model"] = [study.family.seed(run) for run in table["run"]]
                table["kind"] = table["kind"].fillna("").astype(str)
                family = ["model", "kind"]
            # SQLite returns the order of completion.
            keys = study.keys
            table["key"] = [
                keys.index(key) for key in zip(table["filter"], table["n_particles"], strict=True)
            ]
            table = table.sort_values(["key", "run"], ignore_index=True)
            leading = ["scenario", "filter", "n_particles", "run", *family, "seed", "reference"]
            table = table.reindex(columns=[*leading, *MEASURED, "diverged", "error", "traceback"])
            # A column that is NULL throughout would be one of objects.
            return table.astype(dict.fromkeys(MEASURED, np.float64) | {"diverged": bool})

    def result(self) -> StudyResult:
        """Return the result of the runs that all filters have finished; StoreError unless the first run is among them."""
        with self._undamaged():
            description = self.description()
            study = plan.Study.described(description)
            table = self.table()
            # Filters are compared run by run, so that a run counts when all of them have finished it.
            sizes = table.groupby("run").size()
            complete = sizes.index[sizes == len(study.keys)].tolist()
            if 0 not in complete:
                raise StoreError(
                    f"{self.name}: {len(table)} of {len(study.tasks)} runs of a filter are finished, but not yet "
                    "the first run of all of them; continue with --resume"
                )
            if len(complete) < study.runs:
                study = replace(study, runs=len(complete))
                table = table[table["run"].isin(complete)].reset_index(drop=True)
            # A filter all of whose runs failed has no series.
            finished = table[table["error"] == ""].groupby(["filter", "n_particles"]).groups
            keys = [key for key in study.keys if key in finished]
            series: Mapping[tasks.Key, Mapping[str, Array]]
            if self.path is None:
                series = {key: self.series(key, complete) for key in keys}
            else:
                series = _Series(dict.fromkeys(keys, (self.path, complete)))
            return StudyResult(
                study, table, series, self.trajectory(study), description, self.sessions()
            )

    def series(self, key: tasks.Key, runs: Sequence[int]) -> dict[str, Array]:
        """Return the series (runs, T), NaN in failed runs and, in a family, after the last step of a shorter model."""
        # The runs of all filters are in the same order.
        index = {run: i for i, run in enumerate(runs)}
        series: dict[str, Array] = {}
        with self._undamaged():
            arrays = self._arrays("name, run", "filter = ? AND n_particles = ?", *key)
            stored = [entry for entry in arrays if entry[1] in index]
            steps = max((len(values) for *_, values in stored), default=0)
            for name, run, values in stored:
                rows = series.setdefault(name, np.full((len(runs), steps), np.nan))
                rows[index[run], : len(values)] = values
        return series

    def _arrays(
        self, columns: str, condition: str, *values: Any
    ) -> Iterator[tuple[Any, Any, Array]]:
        """Yield two columns and the array of every row that meets a condition."""
        rows = self._connection.execute(
            f"SELECT {columns}, shape, data FROM arrays WHERE {condition}", values
        )
        for first, second, shape, data in rows:
            array = np.frombuffer(zlib.decompress(data), dtype="<f8")
            yield first, second, array.reshape(json.loads(shape))

    def trajectory(self, study: plan.Study) -> Trajectory:
        """Return the first run in full."""
        with self._undamaged():
            arrays = {
                (owner, name): values
                for owner, name, values in self._arrays("filter, name", "n_particles = 0")
            }
            if not arrays:  # every process that worked on the first run died
                stored = self._arrays("run, name", "TRUE LIMIT 1")
                steps = max((len(values) for *_, values in stored), default=0)
                arrays = {
                    ("", "truth"): np.full((steps, 1), np.nan),
                    ("", "dt"): np.asarray(study.scenario.dt),
                }
            return Trajectory.of_arrays(arrays, study.filters, study.shown_particles)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


class _Series(UserDict[tasks.Key, Any]):
    """The series of a store, each read from the file on access; the data are path and runs."""

    def __getitem__(self, key: tasks.Key) -> Mapping[str, Array]:
        path, runs = self.data[key]
        # Opened for each access, so that a result keeps no file open.
        with open_for_reading(path) as store:
            return store.series(key, runs)


@contextmanager
def open_for_reading(path: str | os.PathLike[str], empty: bool = False) -> Iterator[Store]:
    """Open a store for reading, or the `study.sqlite` in a folder, for the block of a ``with`` statement.

    Raises
    ------
    FileNotFoundError
        If the file is absent.
    StoreError
        If it is not a store, is damaged, has another version, or is still empty and `empty` is false.

    Examples
    --------
    >>> from herdfilter.study.store import open_for_reading
    >>> _ = hf.compare("linear_gaussian", ["bootstrap"], particles=[20], runs=2, store="study.sqlite")
    >>> with open_for_reading(".") as store:  # the folder stands for its study.sqlite
    ...     print(store.begun(), store.description()["runs"])
    True 2
    """
    path = Path(path)
    if path.is_dir():
        path /= FILE_NAME
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    # Writable, so that SQLite can roll back after a killed process.
    with closing(Store(path, connect(path, "?mode=rw"))) as store:
        store.check(empty)
        yield store


class WritableStore(Store):
    """A store that is open for writing, too; made by `open_store`."""

    def create(self, description: Mapping[str, Any]) -> None:
        """Write schema and description; a store that is resumed gets the new description."""
        # Readers can read while this process writes, and a commit survives a power cut.
        with self._transaction("journal_mode = WAL", "synchronous = FULL"):
            # `executescript` would commit, and so end the transaction.
            for statement in schema().split(";"):
                self._connection.execute(statement)
            self._put(
                "study", {"name": "configuration", "value": json.dumps(description)}, "OR REPLACE"
            )

    def begin(self, executor: str) -> None:
        """Record the start of a session."""
        session = {
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "executor": executor,
            "versions": versions(),
            "machine": machine(),
        }
        with self._transaction():
            self._put("sessions", {"session": json.dumps(session)})

    def add(self, results: Iterable[tasks.TaskResult]) -> None:
        """Commit finished tasks; raise StoreError if the disk is full or fails, and keep all that was committed before."""
        with self._transaction():
            for result in results:
                row = result.task._asdict()
                self._put("runs", row | dict(result.row))
                for name, values in result.series.items():
                    self._put("arrays", row | {"name": name} | _blob(values))
                for (owner, name), values in result.trajectory.items():
                    row = {"filter": owner, "n_particles": 0, "run": 0, "name": name}
                    # The arrays that all filters share come with each of them.
                    self._put("arrays", row | _blob(values), "OR IGNORE")

    def _put(self, table: str, row: Mapping[str, Any], conflict: str = "") -> None:
        marks = ", ".join(f":{name}" for name in row)
        self._connection.execute(
            f"INSERT {conflict} INTO {table} ({', '.join(row)}) VALUES ({marks})", row
        )

    @contextmanager
    def _transaction(self, *pragmas: str) -> Iterator[None]:
        try:
            for pragma in pragmas:
                self._connection.execute(f"PRAGMA {pragma}")
            with self._connection:  # commits, or rolls back after an error
                self._connection.execute("BEGIN IMMEDIATE")
                yield
        except sqlite3.Error as error:
            raise StoreError(
                f"{self.name}: cannot be written ({error}); runs finished before are kept"
            ) from error

    def close(self) -> None:
        """Close the file, and remove SQLite's files beside it."""
        with suppress(sqlite3.Error):
            # A store in WAL mode could not be read from a read-only folder.
            self._connection.execute("PRAGMA journal_mode = DELETE")
        super().close()


def _blob(values: Any) -> dict[str, Any]:
    """Return shape and data of an array as columns of the table of arrays."""
    # Level 1 of zlib: better compression gains little on noise.
    data = np.ascontiguousarray(values, dtype="<f8").tobytes()
    return {"shape": json.dumps(np.shape(values)), "data": zlib.compress(data, 1)}


@contextmanager
def open_store(
    path: Path | None, study: plan.Study, resume: bool = False
) -> Iterator[WritableStore]:
    """Open the store of a study for writing: a new one, or with `resume` an unfinished one; in memory without a path.

    StoreError if there is a store with finished runs and `resume` is false, if it is another study's, damaged or of another
    version, if another process writes into it, or if the folder takes no files.
    """
    description = study.describe()
    with _locked(path), closing(WritableStore(path, connect(path))) as store:
        store.check(empty=True)
        if store.begun():
            _check_old(store, description, resume)
        store.create(description)
        yield store


def _check_old(old: Store, description: dict[str, Any], resume: bool) -> None:
    """Raise StoreError unless the study may continue in this store."""
    finished = old.finished()
    if not finished:
        return
    if not resume:
        raise StoreError(
            f"{old.name}: there are {len(finished)} finished runs of a filter in it; continue them with --resume, "
            "or choose another folder"
        )
    # Everything is read before anything is written, so that a damaged store stays as it is.
    old.table()
    before = old.description()
    old.trajectory(plan.Study.described(before))
    changed = list(plan.differences(_decisive(before), _decisive(description)))
    if changed:
        more = f" and {len(changed) - 4} more" if len(changed) > 4 else ""
        raise StoreError(
            f"{old.name}: cannot resume, another study is in it: {'; '.join(changed[:4])}{more}"
        )
    runs_begun = 1 + max(task.run for task in finished)
    if runs_begun > description["runs"]:
        what = "runs" if description["family"] is None else "runs of all models"
        raise StoreError(
            f"{old.name}: {what}: expected at least the {runs_begun} that were begun, got {description['runs']}; "
            "--resume may add runs but takes none away"
        )


def _decisive(description: dict[str, Any]) -> dict[str, Any]:
    scenario = {k: v for k, v in description["scenario"].items() if k not in _COSMETIC}
    # Further runs do not change the earlier ones; the order of filters only orders the table.
    return {k: v for k, v in description.items() if k != "runs"} | {"scenario": scenario}


@contextmanager
def _locked(path: Path | None) -> Iterator[None]:
    """Make the folder of a store, and lock it against a second writer; nothing is to be done in memory."""
    if path is None:
        yield
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(os.devnull if os.name == "nt" else path.parent, os.O_RDONLY)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written ({error.strerror})") from error
    try:
        # The operating system drops the lock with the process, however it ends.
        try:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(f"{path}: another process is writing into this folder") from None
        except (ImportError, OSError):  # no such locks on this system
            pass
        yield
    finally:
        os.close(lock)
