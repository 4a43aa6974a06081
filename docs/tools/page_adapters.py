"""The tables of the pages on other libraries: their filters beside ours."""

from __future__ import annotations

from functools import partial

from page_format import interval, markdown, number, read

SHOWN = {
    "filterpy": {"bootstrap, columns": "`bootstrap`", "auto, columns": "`auto`"},
    "particles": {
        "particles, guided": "guided",
        "particles, SQMC": "SQMC",
        "sqmc": "`sqmc`",
        "ranked": "`ranked`",
        "auto": "`auto`",
    },
    "stonesoup": {
        "Stone Soup, ESS": "`ESSResampler`",
        "its resampler herded": "herded resampler",
        "ParticleFilter, converted models": "`auto`",
        "AutomaticProposal, three lines": "three lines changed",
    },
}
"""Library -> filter in the results file -> what it is called."""


def adapters(library: str) -> str:
    """Errors over those of the library's first filter; times of that filter and of the last."""
    table = read("adapters").query("adapter == @library")
    first, (*_, last) = table["filter"].iloc[0], SHOWN[library]
    cells = table.set_index(["model", "filter"])

    def row(model: str) -> list[str]:
        own = cells.loc[model].reindex([*SHOWN[library]])
        errors = [interval(row, "ratio") for _, row in own.iterrows()]
        times = [number(cells.loc[(model, name), "ms_per_step"]) for name in (first, last)]
        return [model, *errors, *times]

    times = [f"{name}, ms" for name in (first, SHOWN[library][last])]
    rows = [row(model) for model in dict.fromkeys(table["model"])]
    return markdown(["model", *SHOWN[library].values(), *times], rows, "adapters")


TABLES = {f"adapters_{library}": partial(adapters, library) for library in SHOWN}
