"""The tables of quasi-Monte Carlo and textbook beside ours, with filters or measures in columns."""

from __future__ import annotations

from collections.abc import Callable

from page_format import markdown, number, read

SOURCE = "as_published"
GERBER = "Gerber and Chopin (2015), by their library"
TEXTBOOK = "Chopin and Papaspiliopoulos (2020), by their library"
GUARNIERO = "Guarniero, Johansen and Lee (2017)"
FILTERS = ("sqmc", "randomised ranked", "ranked", "ranked, unguided", "auto")
HEADS = ("`sqmc`", "randomised `ranked`", "`ranked`", "unguided `ranked`", "`auto`")


def cell(row) -> str:
    """Write our figure with its interval."""
    text = number(row.ours)
    return text if row.low == row.high else f"{text} ({number(row.low)}, {number(row.high)})"


def gains() -> str:
    """Write the gain of each filter over the bootstrap filter: theirs, the verdict on ours, and ours."""
    table = read(SOURCE).query("paper == @GERBER")
    table[["filter", "measure"]] = table["quantity"].str.extract(r"gain of (.*) in the (.*)")
    table[["model", "n"]] = table["place"].str.extract(r"(.*), n = (.*)")
    rows = []
    for (model, n, measure), cells in table.groupby(["model", "n", "measure"], sort=False):
        own = cells.set_index("filter")
        ours = [cell(own.loc[name]) for name in FILTERS]
        rows.append([model, n, measure, number(own.theirs["sqmc"]), own.verdict["sqmc"], *ours])
    return markdown(["model", "n", "of the", "their SQMC", "verdict", *HEADS], rows, SOURCE)


def textbook() -> str:
    """Write the spread of log-likelihoods and the error of filtered means: theirs, ours, and the verdict."""
    table = read(SOURCE).query("paper == @TEXTBOOK")
    table[["filter", "measure"]] = table["quantity"].str.extract(r"(.*): (.*)")
    rows = [
        [
            place,
            name,
            *(
                text
                for row in cells.itertuples()
                for text in (number(row.theirs, 3), cell(row), row.verdict)
            ),
        ]
        for (place, name), cells in table.groupby(["place", "filter"], sort=False)
    ]
    pair = ["theirs", "ours", "verdict"]
    heads = [f"{measure}, {head}" for measure in ("log-likelihood", "means") for head in pair]
    return markdown(["model", "filter", *heads], rows, SOURCE)


def dimensions() -> str:
    """Write the spread of the likelihood by dimension: theirs, and ours."""
    table = read(SOURCE).query("paper == @GUARNIERO")
    table["filter"] = table["quantity"].str.partition(":")[0]
    rows = []
    for place, cells in table.groupby("place", sort=False):
        own = {row.filter: cell(row) for row in cells.itertuples()}
        exact = own.get("auto") or own["one Gaussian, guided"]
        theirs = number(cells["theirs"].iloc[0])
        rows.append(
            [
                place.removeprefix("d = "),
                theirs,
                own.get("fully adapted", ""),
                exact,
                own.get("bootstrap", ""),
            ]
        )
    heads = ["d", "theirs", "fully adapted", "one Gaussian", "bootstrap, log-likelihood"]
    return markdown(heads, rows, SOURCE)


TABLES: dict[str, Callable[[], str]] = {
    "published_gains": gains,
    "published_textbook": textbook,
    "published_dimensions": dimensions,
}
