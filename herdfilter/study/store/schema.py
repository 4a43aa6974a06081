"""What a store consists of."""

from __future__ import annotations

import hashlib
import sqlite3
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from herdfilter._checks import Array

FILE_NAME = "study.sqlite"
"""Name of the store in an output folder."""

BUSY_SECONDS = 30.0
"""How long to wait for a program that locks the file."""
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
    "kind",
    "digest",
)
"""Columns of ``runs`` that are no measured numbers."""


class StoreError(ValueError):
    """A store that cannot be used: not one, damaged, of another version or another study, or not writable.

    Examples
    --------
    >>> from pathlib import Path
    >>> from herdfilter.study.store import StoreError, open_for_reading
    >>> _ = Path("study.sqlite").write_text("no store")
    >>> try:
    ...     open_for_reading("study.sqlite")
    ... except StoreError as error:
    ...     print(error)
    study.sqlite: not a store of herdfilter, or damaged (file is not a database)
    """


def connected(path: Path, options: str = "") -> sqlite3.Connection:
    """Open a database; `options` are those of an SQLite address, such as ``?mode=ro``."""
    try:
        uri = path.resolve().as_uri() + options
        return sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise StoreError(f"{path}: cannot be opened ({error})") from error


def is_empty(connection: sqlite3.Connection) -> bool:
    """Whether this is a database in which nothing was written yet."""
    return not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]


def packed(values: Any) -> bytes:
    """Return the coding of an array."""
    return zlib.compress(np.ascontiguousarray(values, dtype="<f8").tobytes(), 1)


def unpacked(data: bytes, most: int) -> Array:
    """Return the array (k,) of a coding, of at most so many numbers."""
    coding = zlib.decompressobj()
    values = coding.decompress(data, 8 * most + 1)
    if len(values) > 8 * most or not coding.eof:
        raise ValueError(f"expected at most {most} numbers, got more or a part of them")
    return np.frombuffer(values, dtype="<f8")


def digest_of(row: Mapping[str, Any]) -> str:
    """Return the digest of a row of any table, without what is only known later: by it what is edited is told.

    SQLite keeps no NaN and no sign of zero, and a column that was added later is NULL.
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
    """Return a name of a column as it stands in a statement."""
    return '"' + name.replace('"', '""') + '"'


def header(connection: sqlite3.Connection) -> tuple[int, int, bool]:
    """Return kind, version, and whether nothing was written yet, at one moment: another process may be creating it."""
    connection.execute("BEGIN")
    kind = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    nothing = not kind and is_empty(connection)
    connection.execute("COMMIT")
    return kind, version, nothing
