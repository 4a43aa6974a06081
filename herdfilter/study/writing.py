"""A store open for writing."""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from herdfilter.study.machine import machine, versions
from herdfilter.study.plan import Study, differences
from herdfilter.study.store import Store, StoreError, connect, schema
from herdfilter.study.tasks import TaskResult

_COSMETIC = (
    *("title", "source", "unit", "labels", "time_label", "view"),
    *("runs", "models", "first_model", "particles", "filters", "filter"),
)
"""Keys of a scenario that do not affect results, or that the description holds elsewhere, too."""


class WritableStore(Store):
    """A store that is open for writing, too; made by `open_store`. The file descriptor `lock` keeps a second writer out."""

    def __init__(self, path: Path | None, lock: int | None = None) -> None:
        self._lock = lock
        super().__init__(path, connect(path))

    def create(self, description: Mapping[str, Any]) -> None:
        """Write schema and description; a store that is resumed gets the new description."""
        # Readers can read while this process writes, and a commit survives a power cut.
        with self._transaction("journal_mode = WAL", "synchronous = FULL"):
            # `executescript` would commit, and so end the transaction.
            for statement in () if self.begun() else schema().split(";"):
                self._connection.execute(statement)
            self._put(
                "study", {"name": "configuration", "value": json.dumps(description)}, "OR REPLACE"
            )

    def begin(self, executor: str) -> None:
        """Record the start of a session."""
        started = datetime.now(UTC).isoformat(timespec="seconds")
        session = {
            "started": started,
            "executor": executor,
            "versions": versions(),
            "machine": machine(),
        }
        with self._transaction():
            self._put("sessions", {"session": json.dumps(session)})

    def add(self, results: Iterable[TaskResult]) -> None:
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
        if self._lock is not None:
            with suppress(sqlite3.Error):
                # A store in WAL mode could not be read from a read-only folder.
                self._connection.execute("PRAGMA journal_mode = DELETE")
            os.close(self._lock)
            self._lock = None
        super().close()


def _blob(values: Any) -> dict[str, Any]:
    """Return shape and data of an array as columns of the table of arrays."""
    # Level 1 of zlib: better compression gains little on noise.
    data = np.ascontiguousarray(values, dtype="<f8").tobytes()
    return {"shape": json.dumps(np.shape(values)), "data": zlib.compress(data, 1)}


def open_store(path: Path | None, study: Study, resume: bool = False) -> WritableStore:
    """Open the store of a study for writing: a new one, or with `resume` an unfinished one; in memory without a path.

    StoreError if there is a store with finished runs and `resume` is false, if it is another study's, damaged or of another
    version, if another process writes into it, or if the folder takes no files.
    """
    description = study.describe()
    store = WritableStore(path, None if path is None else _locked(path))
    try:
        store.check(empty=True)
        if store.begun():
            _check_old(store, description, resume)
        store.create(description)
    except BaseException:
        store.close()
        raise
    return store


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
    old.trajectory(Study.described(before))
    changed = list(differences(_decisive(before), _decisive(description)))
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


def _locked(path: Path) -> int:
    """Make the folder, and lock it against a second writer as long as this process lives."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(os.devnull if os.name == "nt" else path.parent, os.O_RDONLY)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written ({error.strerror})") from error
    # The operating system drops the lock with the process, however it ends.
    try:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise StoreError(f"{path}: another process is writing into this folder") from None
    except (ImportError, OSError):  # no such locks on this system
        pass
    return lock
