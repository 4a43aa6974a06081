"""Classic papers: what they print beside ours. `rows` is called by bench_known.py."""

from __future__ import annotations

from collections.abc import Iterable


def rows(args) -> Iterable[dict]:
    """Return the rows of all papers of this module."""
    return []
