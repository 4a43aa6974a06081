"""The data of the page on the need for herdfilter: who can do what, and when that was seen.

The data are in docs/tables/features.toml. ``python docs/tools/page_need.py PEER FOLDER`` looks at a peer's source again and
names the cells of its column that the source no longer bears out.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

from page_format import Table

FEATURES = tomllib.loads(
    (Path(__file__).parents[1] / "tables" / "features.toml").read_text(encoding="utf-8")
)
ABOUT = {
    "filters": "filters",
    "inference": "likelihood, smoothing, parameters",
    "practice": "tracking, computing, comparing",
    "points": "points",
}
SUBJECTS = tuple(ABOUT)
SOURCE = {".py", ".pyx", ".jl", ".R", ".m"}
"""Endings of the files in which a word is searched for."""


def rows() -> list[dict[str, Any]]:
    """Return the rows of all tables."""
    return [row for subject in SUBJECTS for row in FEATURES[subject]]


def columns(subject: str) -> list[str]:
    """Return the peers of a table."""
    return [name for name in FEATURES[subject][0] if name in FEATURES["peers"]]


def who(*subjects: str) -> Table:
    """Who can do what; several subjects must have the same peers."""
    peers = {name: FEATURES["peers"][name] for name in columns(subjects[0])}
    headings = [peer.get("heading", peer["label"]) for peer in peers.values()]
    cells: list[list[object]] = [
        [
            *[ABOUT[subject]][: len(subjects) - 1],
            row["feature"],
            *(row[name][0] for name in ("herdfilter", *peers)),
        ]
        for subject in subjects
        for row in FEATURES[subject]
    ]
    return [*["about"][: len(subjects) - 1], "feature", "herdfilter", *headings], cells


def seen() -> Table:
    """Version, release, day, language and licence of all peers."""
    keys = ("label", "version", "released", "seen", "language", "licence")
    return ["peer", *keys[1:]], [[peer[key] for key in keys] for peer in FEATURES["peers"].values()]


def unfounded(peer: str, folder: Path) -> list[str]:
    """Return the cells of a peer's column that its source in a folder does not bear out."""
    paths = [
        path
        for path in folder.rglob("*")
        if path.suffix in SOURCE and "test" not in path.as_posix()[len(str(folder)) :]
    ]
    source = "\n".join(path.read_text(encoding="utf-8", errors="replace").lower() for path in paths)
    wrong = []
    for row in (row for row in rows() if peer in row):
        ground = row[peer][1]
        file, colon, text = ground.partition(": ")
        if colon:
            found = (folder / file).is_file() and text in (folder / file).read_text(
                encoding="utf-8", errors="replace"
            )
        else:
            found = not re.search(ground, source)
        wrong += [] if found else [f"{row['feature']}: {ground}"]
    return wrong


if __name__ == "__main__":
    print("\n".join(unfounded(sys.argv[1], Path(sys.argv[2]))) or "all is as the table says")
