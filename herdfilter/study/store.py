"""The store of a study: one SQLite file, which one process writes task by task, and any number read.

The schema, version 2 (``PRAGMA user_version``; ``PRAGMA application_id`` marks a file of this kind):

``study (name, value)``
    ``configuration``: the description of the study, JSON (`Study.describe`); ``created``: when, UTC.
``sessions (id, started, ended, executor, versions, machine)``
    One row each time that somebody worked on it: times in UTC (``ended`` is NULL if the work was cut off), package
    versions and machine as JSON.
``runs (id, filter, n_particles, run, reference, diverged, error, traceback, task_seconds, session, kind, ...)``
    One row per finished task. ``error`` is empty unless the run failed, ``task_seconds`` is the time of the whole task,
    ``kind`` the kind of a family's model. Every number measured (see `herdfilter.compare`) has a column, NULL if unknown.
``series (run, name, data)``
    For the row ``runs.id = run`` the values at every step: 64-bit floats, least significant byte first, compressed by zlib.
``shown (filter, name, shape, data)``
    The first run in full (`Trajectory`): arrays in the same coding, in C order, with their shape as JSON; arrays that all
    filters share have the filter ``''``.

Every row has the ``digest`` of its other columns except ``id`` and ``ended``, which is checked when it is read: an edited
store is refused, and the row named. Whoever edits digests, too, is not noticed.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sqlite3
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from herdfilter._checks import Array, short_repr
from herdfilter.study.columns import MEASURED
from herdfilter.study.plan import Study
from herdfilter.study.recording import Recording
from herdfilter.study.results import StudyResult, Trajectory
from herdfilter.study.tasks import Key, Task

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FILE_NAME", "Store", "open_for_reading"]

FILE_NAME = "study.sqlite"
"""Name of the store in an output folder."""

BUSY_SECONDS = 30.0  # how long to wait for a program that locks the file

KIND, VERSION = 0x68657264, 2  # "herd"
SCHEMA = f"""
PRAGMA application_id = {KIND};
PRAGMA user_version = {VERSION};
CREATE TABLE study (name TEXT PRIMARY KEY, value TEXT NOT NULL, digest TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY, started TEXT NOT NULL, ended TEXT, executor TEXT NOT NULL,
    versions TEXT NOT NULL, machine TEXT NOT NULL, digest TEXT NOT NULL
);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY, filter TEXT NOT NULL, n_particles INTEGER NOT NULL, run INTEGER NOT NULL,
    reference TEXT NOT NULL, diverged INTEGER NOT NULL, error TEXT NOT NULL, traceback TEXT NOT NULL,
    task_seconds REAL NOT NULL, session INTEGER NOT NULL REFERENCES sessions, reference_sd REAL, kind TEXT,
    digest TEXT NOT NULL,
    UNIQUE (filter, n_particles, run)
);
CREATE TABLE series (
    run INTEGER NOT NULL REFERENCES runs, name TEXT NOT NULL, data BLOB NOT NULL, digest TEXT NOT NULL,
    PRIMARY KEY (run, name)
) WITHOUT ROWID;
CREATE TABLE shown (
    filter TEXT NOT NULL, name TEXT NOT NULL, shape TEXT NOT NULL, data BLOB NOT NULL, digest TEXT NOT NULL,
    PRIMARY KEY (filter, name)
) WITHOUT ROWID;
"""
OWN = (
    *("id", "filter", "n_particles", "run", "reference", "diverged"),
    *("error", "traceback", "task_seconds", "session", "kind", "digest"),
)
"""Columns of ``runs`` beside the measured numbers."""


class StoreError(ValueError):
    """A file is no store, is damaged, has another version or another study, or cannot be written."""


def connected(path: Path, options: str = "") -> sqlite3.Connection:
    """Open a database; `options` are those of an SQLite address, such as ``?mode=ro``."""
    try:
        uri = path.resolve().as_uri() + options
        return sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise StoreError(f"{path}: cannot be opened ({error})") from error


def is_empty(connection: sqlite3.Connection) -> bool:
    """Return True if nothing was written into a database yet."""
    return not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]


def packed(values: Any) -> bytes:
    """Code an array as bytes."""
    return zlib.compress(np.ascontiguousarray(values, dtype="<f8").tobytes(), 1)


def unpacked(data: bytes, most: int) -> Array:
    """Return the array (k,) that `packed` has coded, of at most so many numbers."""
    coding = zlib.decompressobj()
    values = coding.decompress(data, 8 * most + 1)
    if len(values) > 8 * most or not coding.eof:
        raise ValueError(f"expected at most {most} whole numbers of 8 bytes, got more or a fraction")
    return np.frombuffer(values, dtype="<f8")


def digest_of(row: Mapping[str, Any]) -> str:
    """Return the digest of a row of any table without its id and the end of its session, to detect edited rows.

    SQLite keeps neither NaN nor the sign of zero, and a column that was added later is NULL.
    """
    texts: list[str] = []
    numbers: list[float] = []
    for name in sorted(row):
        value = row[name]
        if name in ("id", "ended", "digest") or value is None or value != value:
            continue
        texts.append(name)
        if isinstance(value, (str, bytes)):
            texts.append(value if isinstance(value, str) else hashlib.blake2b(value).hexdigest())
        else:
            numbers.append(value + 0.0)
    known = ascii(texts).encode() + struct.pack(f"<{len(numbers)}d", *numbers)
    return hashlib.blake2b(known, digest_size=16).hexdigest()


def quoted(name: str) -> str:
    """Quote the name of a column for a statement."""
    return '"' + name.replace('"', '""') + '"'


def header(connection: sqlite3.Connection) -> tuple[int, int, bool]:
    """Return kind, version, and True if nothing was written yet, at one moment: another process may be creating it."""
    connection.execute("BEGIN")
    kind = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    nothing = not kind and is_empty(connection)
    connection.execute("COMMIT")
    return kind, version, nothing


_DAMAGE = (sqlite3.Error, zlib.error, LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError)
"""Errors that damaged contents raise when they are read."""

LONGEST = 2**24  # most steps of a series that is read
_KEYS = ("filter", "n_particles", "run", "name", "started")  # columns that name a row


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
        self._connection = connection

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.path, b"" if self.path else self._connection.serialize())

    @property
    def name(self) -> str:
        """The file, or ``memory``."""
        return "memory" if self.path is None else str(self.path)

    def description(self) -> dict[str, Any]:
        """Return the description of the study."""
        rows = self._checked("study", "WHERE name = 'configuration'")
        if not rows:
            raise StoreError(f"{self.name}: damaged store, it does not name the study")
        with self._undamaged():
            described: dict[str, Any] = json.loads(rows[0]["value"])
            Study.described(described)
        return described

    def sessions(self) -> list[dict[str, Any]]:
        """Return start, executor, versions of packages and machine of every time that somebody worked on it."""
        with self._undamaged():
            return [
                {"started": row["started"], "executor": row["executor"]}
                | {"versions": json.loads(row["versions"]), "machine": json.loads(row["machine"])}
                for row in self._checked("sessions", "ORDER BY id")
            ]

    def begun(self) -> bool:
        """Return True if anything is in it."""
        return not is_empty(self._connection)

    def finished(self) -> set[Task]:
        """Return the tasks that are done."""
        with self._undamaged():
            return {Task(*row) for row in self._connection.execute("SELECT filter, n_particles, run FROM runs")}

    def check(self) -> None:
        """Raise StoreError if finished runs cannot be read; the series are not read."""
        self.sessions()
        self.table()
        with self._undamaged():
            self._trajectory(Study.described(self.description()))

    def _number_columns(self) -> list[str]:
        with self._undamaged():
            columns = [row[1] for row in self._connection.execute("PRAGMA table_info(runs)")]
        return [name for name in columns if name not in OWN]

    def _checked(self, table: str, which: str = "", values: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """Return rows of a table; raise StoreError, naming the first, if some are not as they were written."""
        with self._undamaged():
            found = self._connection.execute(f"SELECT * FROM {table} {which}", values)
            names = [column[0] for column in found.description]
            rows = [dict(zip(names, row, strict=True)) for row in found]
            wrong = [row for row in rows if row["digest"] != digest_of(row)]
        if wrong:
            keys = [f"{name} {short_repr(wrong[0][name])}" for name in _KEYS if name in names]
            raise StoreError(
                f"{self.name}: damaged or edited store: {len(wrong)} of {len(rows)} rows of {table} are not as they were "
                f"written, the first with {', '.join(keys)}; restore a copy, or compare anew in another folder"
            )
        return rows

    @contextmanager
    def _undamaged(self) -> Iterator[None]:
        """Raise StoreError for any error that contents of the file raise: SQLite does not see damage inside a value."""
        try:
            yield
        except StoreError:
            raise
        except _DAMAGE as error:
            raise StoreError(f"{self.name}: damaged store ({type(error).__name__}: {error})") from error

    def table(self) -> pd.DataFrame:
        """Return all finished tasks as the table of `herdfilter.compare`, in the order of the study."""
        import pandas as pd

        with self._undamaged():
            description, numbers = self.description(), self._number_columns()
            study = Study.described(description)
            leading, last = ["filter", "n_particles", "run"], ["diverged", "error", "traceback"]
            kinds = [] if study.family is None else ["kind"]
            columns = [*leading, *kinds, "reference", *numbers, *last]
            table = pd.DataFrame(self._checked("runs"), columns=columns)
            table[numbers] = table[numbers].astype(np.float64)
            table = table.astype({"n_particles": np.int64, "run": np.int64, "diverged": bool})
            table["scenario"], table["seed"] = description["scenario"]["name"], description["seed"]
            if study.family is not None:
                table["model"] = [study.family.seed(run) for run in table["run"]]
                table["kind"] = table["kind"].fillna("").astype(str)
                leading.append("model")
            order = {key: i for i, key in enumerate(study.keys)}
            table["key"] = [order[key] for key in zip(table["filter"], table["n_particles"], strict=True)]
            table = table.sort_values(["key", "run"], ignore_index=True)
            more = sorted(set(numbers) - set(MEASURED))
            told = ["scenario", *leading, *kinds, "seed", "reference"]
            return table.reindex(columns=[*told, *MEASURED, *more, *last])

    def result(self) -> StudyResult:
        """Return the result of the runs that all filters have finished; StoreError unless the first run is among them."""
        with self._undamaged():
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
            finished = set(table[table["error"] == ""][["filter", "n_particles"]].itertuples(index=False, name=None))
            series = _Series(self, [key for key in study.keys if key in finished], complete)
            return StudyResult(study, table, series, self._trajectory(study), self.description(), self.sessions())

    def _trajectory(self, study: Study) -> Trajectory:
        rows = self._checked("shown")
        if not rows:  # every process died that was at the first run
            longest = self._checked("series", "LIMIT 1")
            steps = len(unpacked(longest[0]["data"], LONGEST)) if longest else 0
            unknown = np.full((steps, 1), np.nan)
            return Trajectory(Recording(unknown, unknown, study.scenario.dt), None, study.shown_particles, {}, {})
        arrays = {}
        for row in rows:
            shape = json.loads(row["shape"])
            arrays[row["filter"], row["name"]] = unpacked(row["data"], math.prod(shape)).reshape(shape)
        return Trajectory.of_arrays(arrays, study.filters, study.shown_particles)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self.path is not None:  # what is in memory is read by the result
            self.close()


def _restored(path: Path | None, contents: bytes) -> Store:
    """Return a store that was pickled: one in memory with its contents, else one that names its file."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    if contents:
        connection.deserialize(contents)
    return Store(path, connection)


class _Series(Mapping[Key, Mapping[str, Array]]):
    """The series of a store; each is read when it is asked for."""

    def __init__(self, store: Store, keys: Sequence[Key], runs: Sequence[int]) -> None:
        self._store, self._keys = store, keys
        self._index = {run: i for i, run in enumerate(runs)}

    def __getitem__(self, key: Key) -> Mapping[str, Array]:
        """Return the series (runs, T), NaN in failed runs and after the last step of a shorter model of a family."""
        if key not in self._keys:
            raise KeyError(key)
        found: dict[str, dict[int, Array]] = {}
        which = "FROM runs WHERE filter = ? AND n_particles = ?"
        opened = nullcontext(self._store) if self._store.path is None else open_for_reading(self._store.path)
        with opened as store, store._undamaged():
            numbers = dict(store._connection.execute(f"SELECT id, run {which}", key))
            for row in store._checked("series", f"WHERE run IN (SELECT id {which})", key):
                run = numbers[row["run"]]
                if run in self._index:
                    found.setdefault(row["name"], {})[self._index[run]] = unpacked(row["data"], LONGEST)
        longest = max((len(one) for rows in found.values() for one in rows.values()), default=0)
        series = {name: np.full((len(self._index), longest), np.nan) for name in found}
        for name, rows in found.items():
            for i, values in rows.items():
                series[name][i, : len(values)] = values
        return series

    def __iter__(self) -> Iterator[Key]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


def open_for_reading(path: str | os.PathLike[str], empty: bool = False) -> Store:
    """Open a store for reading; a folder stands for the `study.sqlite` in it.

    Raises
    ------
    FileNotFoundError
        If the file is absent.
    StoreError
        If it is no store, is damaged, has another version, or holds nothing yet and `empty` is false.

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
    connection = connected(path, "?mode=ro")
    try:
        try:
            kind, version, nothing = header(connection)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                raise StoreError(f"{path}: locked by another program; end that, or wait") from error
            connection.close()  # left in WAL mode where nothing can be written
            connection = connected(path, "?immutable=1")
            kind, version, nothing = header(connection)
        if nothing and empty:
            return Store(path, connection)
        if nothing:
            raise StoreError(f"{path}: nothing is in it yet")
        if kind != KIND:
            raise StoreError(f"{path}: not a store of herdfilter")
        if version != VERSION:
            raise StoreError(f"{path}: a store of version {version}, but this herdfilter reads version {VERSION}")
        flaw = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if flaw != "ok":
            raise StoreError(f"{path}: damaged store ({' '.join(flaw.split())})")
    except (sqlite3.Error, StoreError, UnicodeDecodeError) as error:  # text that is damaged, too
        connection.close()
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"{path}: not a store of herdfilter, or damaged ({error})") from error
    return Store(path, connection)
