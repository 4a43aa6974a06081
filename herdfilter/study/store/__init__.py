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

from herdfilter.study.store.reading import FILE_NAME, Store, StoreError, open_for_reading
from herdfilter.study.store.writing import open_store

__all__ = ["FILE_NAME", "Store", "StoreError", "open_for_reading", "open_store"]
