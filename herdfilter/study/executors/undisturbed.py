"""Leaves Ctrl-C to the process that has started this one: what a Dask worker of a cluster of our own imports first."""

from __future__ import annotations

import signal


def dask_setup(worker: object) -> None:
    """Ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
