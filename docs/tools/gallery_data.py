"""Which examples of the gallery a build can run: those whose data are on this machine. Nothing is downloaded."""

from __future__ import annotations

import os
import re
from pathlib import Path

from herdfilter.study.data import DATA_FILES, locate
from herdfilter.study.machine import user_cache

DOCS = Path(__file__).parents[1]
GALLERY = DOCS / "gallery"


def folder() -> Path:
    """Return where data are looked for: ``HERDFILTER_DATA``, shared/data beside the clone, or the user's cache."""
    named, shared = os.environ.get("HERDFILTER_DATA"), DOCS.parent.parent / "shared" / "data"
    return Path(named) if named else shared if shared.is_dir() else user_cache()


def needed(script: Path) -> list[str]:
    """Return the data files that an example needs: those whose names stand in it."""
    text = script.read_text(encoding="utf-8")
    return [file for file in DATA_FILES if file in text]


def missing(place: Path, gallery: Path = GALLERY) -> dict[str, list[str]]:
    """Return the examples that cannot run, by their names without ``.py``, and the files they miss in a folder."""
    lacks = {
        script.stem: [file for file in needed(script) if not _is_there(file, place)]
        for script in sorted(gallery.glob("*.py"))
    }
    return {name: files for name, files in lacks.items() if files}


def pattern(left_out: dict[str, list[str]]) -> str:
    """Regular expression of the scripts to run: all but some."""
    return "".join(rf"(?<!{re.escape(name)})" for name in left_out) + r"\.py$"


def note(page: str, files: list[str]) -> str:
    """Put it below the heading of an example's page that its code was not run, unless it was, in an earlier build."""
    if "Total running time" in page:
        return page
    sets = sorted({DATA_FILES[file].data_set for file in files})
    commands = " and ".join(f"``herdfilter data fetch {name}``" for name in sets)
    names = " and ".join(f"``{file}``" for file in files)
    text = f".. note::\n\n   Not run when these pages were built, for want of {names}. The data come by {commands}.\n"
    return re.sub(r"^=+\n", lambda line: f"{line[0]}\n{text}\n", page, count=1, flags=re.M)


def _is_there(file: str, place: Path) -> bool:
    try:
        return locate(file, place).is_file()
    except FileNotFoundError:
        return False
