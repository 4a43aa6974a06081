"""A store open for writing."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from herdfilter.study.machine import machine, versions
from herdfilter.study.plan import Study, differences
from herdfilter.study.store import (
    OWN,
    SCHEMA,
    Store,
    StoreError,
    connected,
    digest_of,
    is_empty,
    open_for_reading,
    packed,
    quoted,
)
from herdfilter.study.tasks import TaskResult

_COSMETIC = (
    *("title", "source", "unit", "labels", "time_label", "view"),
    *("runs", "models", "first_model", "particles", "filters", "filter"),
)
"""Keys of a scenario that decide nothing, or that the description has elsewhere, too."""


class WritableStore(Store):
    """A store, open for writing too; made by `open_store`. The file descriptor `lock` keeps a second writer out."""

    def __init__(self, path: Path | None, connection: sqlite3.Connection, lock: int | None = None) -> None:
        super().__init__(path, connection)
        self._lock = lock
        self._session: int | None = None
        self._columns: set[str] = set()

    def begin(self, executor: str) -> None:
        """Record the start of a session."""
        row = {"started": _now(), "executor": executor}
        row |= {"versions": json.dumps(versions()), "machine": json.dumps(machine())}
        with self._transaction():
            self._session = self._put("sessions", row)

    def add(self, results: Iterable[TaskResult]) -> None:
        """Commit finished tasks; raise StoreError if the disk is full or fails, and keep all that was committed before."""
        with self._transaction():
            for result in results:
                row = result.task._asdict() | dict(result.row)
                row |= {"task_seconds": result.seconds, "session": self._session}
                for name in row.keys() - self._columns - set(OWN):
                    if name not in self._number_columns():
                        self._connection.execute(f"ALTER TABLE runs ADD COLUMN {quoted(name)} REAL")
                    self._columns.add(name)
                run = self._put("runs", row)
                for name, values in result.series.items():
                    self._put("series", {"run": run, "name": name, "data": packed(values)})
                for (owner, name), values in result.shown.items():
                    shape = json.dumps(np.shape(values))
                    self._put("shown", {"filter": owner, "name": name, "shape": shape, "data": packed(values)}, "OR IGNORE")

    def _put(self, table: str, row: dict[str, Any], conflict: str = "") -> int | None:
        """Insert a row with its digest; return its id."""
        row = {name: v.item() if isinstance(v, np.generic) else v for name, v in row.items()}
        row["digest"] = digest_of(row)
        names, marks = ", ".join(map(quoted, row)), ", ".join("?" * len(row))
        statement = f"INSERT {conflict} INTO {table} ({names}) VALUES ({marks})"
        return self._connection.execute(statement, list(row.values())).lastrowid

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield
            self._connection.execute("COMMIT")
        except BaseException as error:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            if not isinstance(error, sqlite3.Error):
                raise
            raise StoreError(f"{self.name}: cannot be written ({error}); what was finished before is kept") from error

    def close(self) -> None:
        """Close the file, and leave nothing beside it."""
        if self._lock is not None:
            with suppress(sqlite3.Error):
                if self._session is not None:
                    self._connection.execute("UPDATE sessions SET ended = ? WHERE id = ?", (_now(), self._session))
                # no -wal beside it: readable where nothing can be written
                self._connection.execute("PRAGMA journal_mode = DELETE")
            os.close(self._lock)
            self._lock = None
        super().close()


def open_store(path: Path | None, study: Study, resume: bool = False) -> WritableStore:
    """Open the store of a study for writing: a new one, or with `resume` one that was begun; in memory without a path.

    StoreError if there is a store with finished runs and `resume` is false, if it is another study's, damaged or of another
    version, if another process writes into it, or if the folder takes no files.
    """
    description = json.loads(json.dumps(study.describe()))
    if path is None:
        store = WritableStore(None, sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False))
        _create(store, description)
        return store
    lock = _locked(path)
    try:
        if path.exists() and path.stat().st_size:
            with open_for_reading(path, empty=True) as old:
                _check_old(old, description, resume)
        store = WritableStore(path, connected(path), lock)
    except BaseException:
        os.close(lock)
        raise
    try:
        _create(store, description)
    except BaseException:
        store.close()
        raise
    return store


def _check_old(old: Store, description: dict[str, Any], resume: bool) -> None:
    """Raise StoreError unless the study may go on in this store."""
    done = old.finished() if old.begun() else set()
    if not done:
        return
    if not resume:
        raise StoreError(
            f"{old.name}: there are {len(done)} finished runs of a filter in it; continue them with --resume, "
            "or choose another folder"
        )
    old.check()
    changed = list(differences(_decisive(old.description()), _decisive(description)))
    if changed:
        more = f" and {len(changed) - 4} more" if len(changed) > 4 else ""
        raise StoreError(f"{old.name}: cannot resume, another study is in it: {'; '.join(changed[:4])}{more}")
    runs, now = 1 + max(task.run for task in done), description["runs"]
    if runs > now:
        family = Study.described(description).family
        what = "runs" if family is None else "models"
        begun, now = (runs, now) if family is None else (family.models(runs), family.models(now))
        raise StoreError(
            f"{old.name}: {what}: expected at least the {begun} that were begun, got {now}; "
            f"--resume may add {what} but takes none away"
        )


def _decisive(description: dict[str, Any]) -> dict[str, Any]:
    scenario = {k: v for k, v in description["scenario"].items() if k not in _COSMETIC}
    # The order of filters decides only that of the table; further runs leave the others as they are.
    return {k: v for k, v in description.items() if k != "runs"} | {"scenario": scenario}


def _create(store: WritableStore, description: dict[str, Any]) -> None:
    """Write schema and description in one transaction; a store that is resumed gets the description of now."""
    connection = store._connection
    try:
        if store.path is not None:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")  # a commit outlives a power cut
        fresh = is_empty(connection)
    except sqlite3.Error as error:
        raise StoreError(f"{store.name}: cannot be written ({error})") from error
    with store._transaction():
        for statement in SCHEMA.split(";") if fresh else ():
            connection.execute(statement)
        store._put("study", {"name": "created", "value": _now()}, "OR IGNORE")
        store._put("study", {"name": "configuration", "value": json.dumps(description)}, "OR REPLACE")


def _locked(path: Path) -> int:
    """Make the folder, and lock it against a second writer as long as this process lives."""
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


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
