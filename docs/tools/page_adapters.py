"""The tables of the pages on other libraries: their filters beside ours."""

from __future__ import annotations

from functools import partial

from page_format import interval, markdown, number, read


def adapters(library: str) -> str:
    """Median error of the library's first filter, errors of the others over its own; largest error of a run; times."""
    table = read("adapters").query("adapter == @library")
    models = list(dict.fromkeys(table["model"]))
    first = table["filter"].iloc[0]
    cells = table.set_index(["filter", "model"])

    def cell(name: str, model: str) -> str:
        if (name, model) not in cells.index:
            return ""
        row = cells.loc[(name, model)]
        error = f"error {number(row['error'])}" if name == first else interval(row, "ratio")
        return f"{error}; {number(row['worst'])}; {number(row['ms_per_step'])} ms"

    rows = []
    for name in dict.fromkeys(table["filter"]):
        n = table.loc[table["filter"] == name, "n"].iloc[0]
        rows.append([name, n if n else "", *(cell(name, model) for model in models)])
    return markdown(["filter", "n", *models], rows, "adapters")


TABLES = {f"adapters_{name}": partial(adapters, name) for name in ("filterpy", "particles")}
