"""What a study has found so far, in one SQLite file: written by one process, task by task, read by any number.

The schema, version 1 (``PRAGMA user_version``; ``PRAGMA application_id`` says that it is a file of this kind):

``study (name, value)``
    ``configuration``: the description of the study, JSON (`Study.describe`); ``created``: when, UTC.
``sessions (id, started, ended, executor, versions, machine)``
    One row each time that somebody worked on it: times in UTC (``ended`` is NULL if the work was cut off), package
    versions and machine as JSON.
``runs (id, filter, n_particles, run, reference, diverged, error, traceback, task_seconds, session, ...)``
    One row a finished task. ``error`` is empty unless the run failed, ``task_seconds`` is what the whole task took,
    ``session`` when it was done; then a column for every number measured (`herdfilter.compare` says which), NULL where
    there is none.
``series (run, name, data)``
    For the row ``runs.id = run`` the values at every step: 64-bit floats, least significant byte first, compressed by zlib.
``shown (filter, name, shape, data)``
    The first run in full (`Trajectory`): arrays in the same coding, in C order, with their shape as JSON; what all filters
    share has the filter ``''``.
"""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from herdfilter._checks import Array
from herdfilter.evaluation.description import differences
from herdfilter.evaluation.recording import Recording
from herdfilter.evaluation.reference import Reference
from herdfilter.evaluation.study import MEASURED, Key, Outcome, Study, StudyResult, Task, Trajectory

if TYPE_CHECKING:
    import pandas as pd

FILE_NAME = "study.sqlite"
"""Name of the store in an output folder."""

_KIND, _VERSION = 0x68657264, 1  # "herd"
_SCHEMA = f"""
PRAGMA application_id = {_KIND};
PRAGMA user_version = {_VERSION};
CREATE TABLE study (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY, started TEXT NOT NULL, ended TEXT, executor TEXT NOT NULL,
    versions TEXT NOT NULL, machine TEXT NOT NULL
);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY, filter TEXT NOT NULL, n_particles INTEGER NOT NULL, run INTEGER NOT NULL,
    reference TEXT NOT NULL, diverged INTEGER NOT NULL, error TEXT NOT NULL, traceback TEXT NOT NULL,
    task_seconds REAL NOT NULL, session INTEGER NOT NULL REFERENCES sessions, reference_sd REAL,
    UNIQUE (filter, n_particles, run)
);
CREATE TABLE series (
    run INTEGER NOT NULL REFERENCES runs, name TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (run, name)
) WITHOUT ROWID;
CREATE TABLE shown (
    filter TEXT NOT NULL, name TEXT NOT NULL, shape TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (filter, name)
) WITHOUT ROWID;
"""
_OWN = (
    "id",
    "filter",
    "n_particles",
    "run",
    "reference",
    "diverged",
    "error",
    "traceback",
    "task_seconds",
    "session",
)
_COSMETIC = (
    "title",
    "source",
    "unit",
    "labels",
    "time_label",
    "view",
    "runs",
    "particles",
    "filters",
    "filter",
)
"""Keys of a scenario that decide nothing, or are told elsewhere in the description."""
_PACKAGES = (
    "herdfilter",
    "numpy",
    "scipy",
    "numba",
    "pandas",
    "joblib",
    "filterpy",
    "threadpoolctl",
    "distributed",
)


class StoreError(ValueError):
    """A store that cannot be used: not one, damaged, of another version or another study, or not writable."""


class Store:
    """A store, open for reading or, from `open_store`, for writing.

    Parameters
    ----------
    path : Path, optional
        The file; without one the store is in memory.
    """

    def __init__(self, path: Path | None, connection: sqlite3.Connection, lock: int | None = None) -> None:
        self.path = path
        self._connection = connection
        self._lock = lock
        self._session: int | None = None
        self._columns: set[str] = set()

    @property
    def name(self) -> str:
        """The file, or ``memory``."""
        return "memory" if self.path is None else str(self.path)

    def description(self) -> dict[str, Any]:
        """Return the description of the study."""
        rows = self._rows("SELECT value FROM study WHERE name = 'configuration'")
        if not rows:
            raise StoreError(f"{self.name}: damaged store, it does not say what was studied")
        described: dict[str, Any] = json.loads(rows[0][0])
        return described

    def sessions(self) -> list[dict[str, Any]]:
        """Return when, how, with which packages and on which machine somebody worked on it, one entry a time."""
        rows = self._rows("SELECT started, executor, versions, machine FROM sessions ORDER BY id")
        return [
            {"started": started, "executor": executor}
            | {"versions": json.loads(versions), "machine": json.loads(machine)}
            for started, executor, versions, machine in rows
        ]

    def begun(self) -> bool:
        """Whether there is anything in it."""
        return not _is_empty(self._connection)

    def finished(self) -> set[Task]:
        """Return the tasks that are done."""
        return {Task(*row) for row in self._rows("SELECT filter, n_particles, run FROM runs")}

    def begin(self, executor: str) -> None:
        """Note that work goes on, and where."""
        values = (_now(), executor, json.dumps(_versions()), json.dumps(_machine()))
        with self._transaction():
            cursor = self._connection.execute(
                "INSERT INTO sessions (started, executor, versions, machine) VALUES (?, ?, ?, ?)", values
            )
        self._session = cursor.lastrowid

    def add(self, outcomes: Iterable[Outcome]) -> None:
        """Commit what was finished.

        Raises
        ------
        StoreError
            If the disk is full or fails; what was committed before stays.
        """
        with self._transaction():
            for outcome in outcomes:
                self._insert(outcome)

    def _insert(self, outcome: Outcome) -> None:
        row = outcome.task._asdict() | dict(outcome.row)
        row |= {"task_seconds": outcome.seconds, "session": self._session}
        for name in row.keys() - self._columns - set(_OWN):
            if name not in self._number_columns():
                self._connection.execute(f"ALTER TABLE runs ADD COLUMN {_quoted(name)} REAL")
            self._columns.add(name)
        names, marks = ", ".join(map(_quoted, row)), ", ".join("?" * len(row))
        values = [int(v) if isinstance(v, (bool, np.bool_)) else v for v in row.values()]
        values = [float(v) if isinstance(v, np.floating) else v for v in values]
        run = self._connection.execute(f"INSERT INTO runs ({names}) VALUES ({marks})", values).lastrowid
        self._connection.executemany(
            "INSERT INTO series VALUES (?, ?, ?)",
            [(run, name, _packed(values)) for name, values in outcome.series.items()],
        )
        self._connection.executemany(
            "INSERT OR IGNORE INTO shown VALUES (?, ?, ?, ?)",
            [(*key, json.dumps(np.shape(values)), _packed(values)) for key, values in outcome.shown.items()],
        )

    def _number_columns(self) -> list[str]:
        columns = [row[1] for row in self._rows("PRAGMA table_info(runs)")]
        return [name for name in columns if name not in _OWN]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise StoreError(
                f"{self.name}: cannot be written ({error}); what was finished before is kept"
            ) from error

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise StoreError(f"{self.name}: damaged store ({error})") from error

    def table(self) -> pd.DataFrame:
        """Return all finished tasks as the table of `herdfilter.compare`, in the order of the study."""
        import pandas as pd

        description = self.description()
        numbers = self._number_columns()
        measured = [name for name in numbers if name != "reference_sd"]
        columns = ["filter", "n_particles", "run", "reference", *numbers, "diverged", "error", "traceback"]
        rows = self._rows(f"SELECT {', '.join(map(_quoted, columns))} FROM runs")
        table = pd.DataFrame(rows, columns=columns)
        table[numbers] = table[numbers].astype(np.float64)
        table = table.astype({"n_particles": np.int64, "run": np.int64, "diverged": bool})
        table["scenario"], table["seed"] = description["scenario"]["name"], description["seed"]
        for name in MEASURED:
            if name not in table:
                table[name] = np.nan
        order = {key: i for i, key in enumerate(Study.described(description).keys)}
        table["key"] = [order[key] for key in zip(table["filter"], table["n_particles"], strict=True)]
        table = table.sort_values(["key", "run"], ignore_index=True)
        leading = ["scenario", "filter", "n_particles", "run", "seed", "reference", "reference_sd"]
        more = sorted(set(measured) - set(MEASURED))
        return table[[*leading, *MEASURED, *more, "diverged", "error", "traceback"]]

    def result(self) -> StudyResult:
        """Return the outcome of the study: of the runs that all filters have finished, where it was cut off.

        Raises
        ------
        StoreError
            If there is no such run, or the first one, which gives the trajectory, is not among them.
        """
        study, table = Study.described(self.description()), self.table()
        sizes = table.groupby("run").size()
        complete = [int(run) for run in sizes.index[sizes == len(study.keys)]]
        if 0 not in complete:
            raise StoreError(
                f"{self.name}: {len(table)} of {len(study.tasks)} runs of a filter are finished, but not yet "
                "the first run of all of them; continue with --resume"
            )
        if len(complete) < study.runs:
            study = replace(study, runs=len(complete))
            table = table[table["run"].isin(complete)].reset_index(drop=True)
        finished = set(
            table[table["error"] == ""][["filter", "n_particles"]].itertuples(index=False, name=None)
        )
        series = _Series(self, [key for key in study.keys if key in finished], complete)
        return StudyResult(study, table, series, self._trajectory(study), self.description(), self.sessions())

    def _trajectory(self, study: Study) -> Trajectory:
        arrays = {
            (name, what): self._unpacked(data).reshape(json.loads(shape))
            for name, what, shape, data in self._rows("SELECT filter, name, shape, data FROM shown")
        }
        common = {what: array for (name, what), array in arrays.items() if not name}
        dt = common["dt"]
        recording = Recording(
            common["truth"], common["observations"], float(dt) if dt.ndim == 0 else dt, common.get("controls")
        )
        reference = None
        if "reference" in common:
            likelihood = float(common["reference_log_likelihood"])
            reference = Reference(common["reference"], likelihood, common["reference_error"])
        estimates, particles, weights = (
            {name: arrays[name, what] for name in study.filters if (name, what) in arrays}
            for what in ("estimates", "particles", "weights")
        )
        return Trajectory(recording, reference, study.shown_particles, estimates, particles, weights)

    def _unpacked(self, data: bytes) -> Array:
        try:
            return np.frombuffer(zlib.decompress(data), dtype="<f8")
        except (zlib.error, ValueError, TypeError) as error:
            raise StoreError(f"{self.name}: damaged store ({error})") from error

    def close(self) -> None:
        """Close the file; after writing, leave nothing beside it."""
        if self._lock is not None:
            with suppress(sqlite3.Error):
                if self._session is not None:
                    self._connection.execute(
                        "UPDATE sessions SET ended = ? WHERE id = ?", (_now(), self._session)
                    )
                self._connection.execute(
                    "PRAGMA journal_mode = DELETE"
                )  # no -wal, readable where nothing can be written
            os.close(self._lock)
            self._lock = None
        self._connection.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exception: object) -> None:
        if self.path is not None:  # what is in memory is read by the result
            self.close()


class _Series(Mapping[Key, Mapping[str, Array]]):
    """The series of a store, read when they are asked for."""

    def __init__(self, store: Store, keys: Sequence[Key], runs: Sequence[int]) -> None:
        self._store, self._keys = store, keys
        self._place = {run: i for i, run in enumerate(runs)}

    def __getitem__(self, key: Key) -> Mapping[str, Array]:
        if key not in self._keys:
            raise KeyError(key)
        store = self._store
        if store.path is not None:
            with open_for_reading(store.path) as store:
                return self._read(store, key)
        return self._read(store, key)

    def _read(self, store: Store, key: Key) -> Mapping[str, Array]:
        found: dict[str, Array] = {}
        query = "SELECT runs.run, name, data FROM runs JOIN series ON series.run = id WHERE filter = ? AND n_particles = ?"
        for run, name, data in store._rows(query, key):
            if run in self._place:
                values = store._unpacked(data)
                if name not in found:
                    found[name] = np.full((len(self._place), len(values)), np.nan)
                found[name][self._place[run]] = values
        return found

    def __iter__(self) -> Iterator[Key]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


def open_store(path: Path | None, study: Study, resume: bool = False) -> Store:
    """Open the store of a study for writing: a new one, or with `resume` one that was begun.

    Raises
    ------
    StoreError
        If there is a store with finished runs and `resume` is false, if it is another study's, damaged or of another
        version, if another process writes into it, or if the folder takes no files.
    """
    description = json.loads(json.dumps(study.describe()))
    if path is None:
        store = Store(None, sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False))
        _create(store, description)
        return store
    lock = _locked(path)
    try:
        if path.exists() and path.stat().st_size:
            with open_for_reading(path, empty=True) as old:
                _check_old(old, description, resume)
        store = Store(path, _connected(path), lock)
        _create(store, description)
        return store
    except BaseException:
        os.close(lock)
        raise


def _check_old(old: Store, description: dict[str, Any], resume: bool) -> None:
    """Raise unless the study may go on in this store."""
    done = len(old.finished()) if old.begun() else 0
    if done and not resume:
        raise StoreError(
            f"{old.name}: there are {done} finished runs of a filter in it; continue them with --resume, "
            "or choose another folder"
        )
    if done:
        changed = list(differences(_decisive(old.description()), _decisive(description)))
        if changed:
            more = f" and {len(changed) - 4} more" if len(changed) > 4 else ""
            raise StoreError(
                f"{old.name}: cannot resume, another study is in it: {'; '.join(changed[:4])}{more}"
            )


def _decisive(description: dict[str, Any]) -> dict[str, Any]:
    scenario = {k: v for k, v in description["scenario"].items() if k not in _COSMETIC}
    # the order of filters decides nothing, but that of the table
    return description | {"scenario": scenario}


def _create(store: Store, description: dict[str, Any]) -> None:
    """Write schema and description, all or nothing; in a store that is resumed the description, whose wording may be new."""
    connection = store._connection
    try:
        if store.path is not None:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")  # a commit outlives a power cut
        fresh = _is_empty(connection)
    except sqlite3.Error as error:
        raise StoreError(f"{store.name}: cannot be written ({error})") from error
    with store._transaction():
        for statement in _SCHEMA.split(";") if fresh else ():
            connection.execute(statement)
        connection.execute("INSERT OR IGNORE INTO study VALUES ('created', ?)", (_now(),))
        connection.execute(
            "INSERT OR REPLACE INTO study VALUES ('configuration', ?)", (json.dumps(description),)
        )


def _is_empty(connection: sqlite3.Connection) -> bool:
    """Whether this is a database in which nothing was written yet."""
    return not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]


def _header(connection: sqlite3.Connection) -> tuple[int, int, bool]:
    """Return kind, version, and whether nothing was written yet, at one moment: another process may be creating it."""
    connection.execute("BEGIN")
    kind = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    nothing = not kind and _is_empty(connection)
    connection.execute("COMMIT")
    return kind, version, nothing


def open_for_reading(path: str | os.PathLike[str], empty: bool = False) -> Store:
    """Open a store for reading; a folder stands for the `study.sqlite` in it.

    Raises
    ------
    FileNotFoundError
        If there is none.
    StoreError
        If it is not a store, is damaged, has another version, or, unless `empty` ones are welcome, holds nothing yet.
    """
    path = Path(path)
    if path.is_dir():
        path /= FILE_NAME
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    connection = _connected(path, "?mode=ro")
    try:
        try:
            kind, version, nothing = _header(connection)
        except sqlite3.OperationalError:  # left in WAL mode where nothing can be written
            connection.close()
            connection = _connected(path, "?immutable=1")
            kind, version, nothing = _header(connection)
        if not kind and nothing:
            if empty:
                return Store(path, connection)
            raise StoreError(f"{path}: nothing is in it yet")
        if kind != _KIND:
            raise StoreError(f"{path}: not a store of herdfilter")
        if version != _VERSION:
            raise StoreError(
                f"{path}: a store of version {version}, but this herdfilter reads version {_VERSION}"
            )
        flaw = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if flaw != "ok":
            raise StoreError(f"{path}: damaged store ({' '.join(flaw.split())})")
    except sqlite3.Error as error:
        connection.close()
        raise StoreError(f"{path}: not a store of herdfilter, or damaged ({error})") from error
    except StoreError:
        connection.close()
        raise
    return Store(path, connection)


def _connected(path: Path, options: str = "") -> sqlite3.Connection:
    try:
        uri = path.resolve().as_uri() + options
        return sqlite3.connect(uri, uri=True, timeout=30, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise StoreError(f"{path}: cannot be opened ({error})") from error


def _locked(path: Path) -> int:
    """Make the folder, and keep it locked as long as this process lives, against a second writer."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(os.devnull if os.name == "nt" else path.parent, os.O_RDONLY)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written ({error.strerror})") from error
    try:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise StoreError(f"{path}: another process is writing into this folder") from None
    except (ImportError, OSError):  # no such locks on this system
        pass
    return lock


def _packed(values: Any) -> bytes:
    return zlib.compress(np.ascontiguousarray(values, dtype="<f8").tobytes(), 1)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    for name in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def _machine() -> dict[str, Any]:
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "byteorder": sys.byteorder,
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
