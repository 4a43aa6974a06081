"""The tables of the page on association, from what ``benchmarks/bench_known.py association`` leaves."""

from __future__ import annotations

from functools import partial

from page_format import interval, markdown, number, read

SWEEPS = (0, 300, 1000)
LEFT_OUT = (
    "random Gibbs, counted",
    "herded Gibbs, counted",
    "herded Gibbs, published key, counted",
)
"""Methods that only the results file has."""
VARIANTS = ("herded Gibbs, whole sets", "herded Gibbs, as published")
"""Methods that the page has with 300 sweeps only."""


def association(family: str, counts: tuple[int, ...]) -> str:
    """Write the mean total variation and milliseconds of every method, by the number of tracks."""
    table = read("association").query(
        "family == @family and sweeps in @SWEEPS and method not in @LEFT_OUT and tracks in @counts"
        " and not (method in @VARIANTS and sweeps > 300)"
    )
    cells = table.set_index(["method", "sweeps", "tracks"])
    rows = []
    for name, n in dict.fromkeys(zip(table["method"], table["sweeps"], strict=True)):
        found = [cells.loc[(name, n, count)] for count in counts]
        texts = [f"{number(row['variation'])}; {number(row['ms'])} ms" for row in found]
        rows.append([name, n or "", *texts])
    return markdown(
        ["method", "sweeps", *(f"{count} tracks" for count in counts)], rows, "association"
    )


def ratios() -> str:
    """Write the error of herded Gibbs sampling over that of random Gibbs sampling with as many sweeps."""
    table = read("association").query(
        "method == 'herded Gibbs' and family in ('scan', 'dense') and sweeps != 300"
    )
    tracks = list(dict.fromkeys(table["tracks"]))
    cells = table.set_index(["family", "sweeps", "tracks"])
    rows = [
        [family, n, *(interval(cells.loc[(family, n, count)], "ratio") for count in tracks)]
        for family, n in dict.fromkeys(zip(table["family"], table["sweeps"], strict=True))
    ]
    return markdown(
        ["matrices", "sweeps", *(f"{count} tracks" for count in tracks)], rows, "association"
    )


def close() -> str:
    """Write mean and worst total variation and milliseconds of close tracks, by clutter density and method."""
    table = read("association").query(
        "family.str.startswith('close') and method != 'herded Gibbs, no pairs' and sweeps in (0, 300)"
    )
    table = table[
        table["family"].str.contains("1e-03|1e-08")
        & (table["method"] != "exact")
        & (table["method"] != "100 best")
    ]
    counts = list(dict.fromkeys(table["tracks"]))
    cells = table.set_index(["family", "method", "tracks"])
    rows = []
    for family, name in dict.fromkeys(zip(table["family"], table["method"], strict=True)):
        found = [cells.loc[(family, name, count)] for count in counts]
        texts = [
            f"{number(row['variation'])}, {number(row['worst'])}; {number(row['ms'])} ms"
            for row in found
        ]
        rows.append([family.removeprefix("close, clutter "), name, *texts])
    return markdown(
        ["clutter density", "method", *(f"{count} tracks" for count in counts)], rows, "association"
    )


TABLES = {
    "association_close": close,
    "association_scan": partial(association, "scan", (2, 4, 6, 12)),
    "association_dense": partial(association, "dense", (6, 12)),
    "association_ratios": ratios,
}
