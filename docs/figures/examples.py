"""The pictures of the examples of recorded data, which pages show that are built where the data are not."""

from __future__ import annotations

import pickle
from functools import cache, partial

import gallery_data
import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.figure import Figure


@cache
def drawn(name: str) -> list[bytes]:
    """Run an example as the gallery does, and return its figures, pickled."""
    import gallery_shown

    script = gallery_data.GALLERY / f"{name}.py"
    with mpl.rc_context():
        mpl.use("agg")
        plt.rcdefaults()
        gallery_shown.one_look({}, "", "before")
        plt.close("all")
        exec(compile(script.read_text(encoding="utf-8"), script, "exec"), {"__name__": "__main__"})
        figures = [pickle.dumps(plt.figure(number)) for number in plt.get_fignums()]
        plt.close("all")
    return figures


def picture(name: str, number: int) -> Figure:
    """Return a figure of an example, from 1; 0 is its thumbnail."""
    import gallery_shown

    if number:
        return pickle.loads(drawn(name)[number - 1])
    text = (gallery_data.GALLERY / f"{name}.py").read_text(encoding="utf-8")
    marked = gallery_data.pictures(text[: text.index(gallery_shown.MARK)])
    return gallery_shown.square(pickle.loads(drawn(name)[marked - 1]).axes[-1])


def all_stored() -> dict[str, partial[Figure]]:
    """Return what draws each picture, by the name of its file."""
    return {
        gallery_data.stored(name, number): partial(picture, name, number)
        for name in gallery_data.of_data()
        for number in gallery_data.numbers(name)
    }
