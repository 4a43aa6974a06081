"""Which examples of the gallery a build can run: those whose data are on this machine. Nothing is downloaded.

The others show pictures that are stored in docs/images, from a run with the data: ``python docs/make_images.py`` draws them.
"""

from __future__ import annotations

import os
import re
import shutil
from itertools import count
from pathlib import Path

from herdfilter.study.data import DATA_FILES, locate
from herdfilter.study.machine import user_cache

DOCS = Path(__file__).parents[1]
GALLERY = DOCS / "gallery"
IMAGES = DOCS / "images"
CODE = re.compile(r"^\.\. code-block:: Python\n(?:(?:[ \t].*)?\n)*", re.M)
"""A block of code on the page of an example."""


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


def of_data(gallery: Path = GALLERY) -> list[str]:
    """Return the examples that need data, by their names without ``.py``."""
    return [script.stem for script in sorted(gallery.glob("*.py")) if needed(script)]


def pictures(code: str) -> int:
    """Return how many pictures some code draws."""
    return code.count("plt.subplots(")


def numbers(name: str) -> range:
    """Return the numbers of an example's pictures: from 1 as they come, 0 is its thumbnail."""
    return range(pictures((GALLERY / f"{name}.py").read_text(encoding="utf-8")) + 1)


def stored(name: str, number: int) -> str:
    """Return the name of the file that holds a picture of an example, without ``.png``."""
    return f"gallery_{name.partition('_')[0]}_{number}"


def place_thumbnails(left_out: dict[str, list[str]], place: Path = DOCS / "examples") -> None:
    """Lay the thumbnails of the examples that are not run where sphinx-gallery looks for them."""
    for name in left_out:
        images = place / "images"
        images.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(IMAGES / f"{stored(name, 0)}.png", images / f"sphx_glr_{name}_000.png")


def note(page: str, name: str, files: list[str]) -> str:
    """Put it below the heading of an example's page that its code was not run, and show its stored pictures.

    A page whose code was run in an earlier build stays as it is.
    """
    if "Total running time" in page:
        return page
    sets = sorted({DATA_FILES[file].data_set for file in files})
    commands = " and ".join(f"``herdfilter data fetch {name}``" for name in sets)
    names = " and ".join(f"``{file}``" for file in files)
    text = f".. note::\n\n   Not run when these pages were built, for want of {names}. The data come by {commands}.\n"
    text += "   The pictures were stored from a run with the data.\n"
    number = count(1)

    def with_picture(block: re.Match[str]) -> str:
        if not pictures(block[0]):
            return block[0]
        k = next(number)
        shown = f"    .. image:: /images/{stored(name, k)}.png\n        :alt: Picture {k} of this example\n"
        return f"{block[0]}\n.. container:: pictures\n\n{shown}\n\n"

    page = CODE.sub(with_picture, page)
    return re.sub(r"^=+\n", lambda line: f"{line[0]}\n{text}\n", page, count=1, flags=re.M)


def _is_there(file: str, place: Path) -> bool:
    try:
        return locate(file, place).is_file()
    except FileNotFoundError:
        return False
