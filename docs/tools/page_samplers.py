"""The tables of the pages that are about samplers; see page_tables.py."""

from __future__ import annotations

import numpy as np
import pandas as pd
from page_format import Table, markdown, number, read

REPAIRS = {
    "kh": "kernel herding",
    "chg": "herded Gibbs",
    "chg-smoothed-only": "herded Gibbs, smoothed target only",
    "chg-paper": "herded Gibbs, as published",
}


def over_families(table: pd.DataFrame) -> pd.DataFrame:
    """Highest median and worst case over the families of mixtures, by dimension, number of points and sampler.

    Where all families have been measured one by one, the row that stands for any of them is left out.
    """
    keys = ["d", "n", "sampler"]
    known = table[table["family"] != "any"].groupby(keys)["family"].transform("nunique")
    old = (table["family"] == "any") & table.set_index(keys).index.isin(
        table.loc[known[known >= 5].index].set_index(keys).index
    )
    return table[~old].groupby(keys)[["median", "worst"]].max()


def quality() -> str:
    """Highest median over families, and the worst case of any, by dimension and number of points."""
    best = over_families(read("quality").query("n >= 100"))
    heads = [(n, s) for n in best.index.unique("n") for s in ("kh", "chg")]
    rows = []
    for d in best.index.unique("d"):
        cells = [best.loc[(d, n, s)] if (d, n, s) in best.index else None for n, s in heads]
        rows.append(
            [d, *("" if c is None else f"{c['median']:.3f} ({c['worst']:.2f})" for c in cells)]
        )
    names = {"kh": "KH", "chg": "CHG"}
    return markdown(["d", *(f"{names[s]}, n = {n}" for n, s in heads)], rows, "quality")


BESIDE = {
    "sobol": "`SobolSampling()`",
    "kh": "`KernelHerding()`",
    "chg": "`ContinuousHerdedGibbs()`",
    "JointHerding": "`JointHerding()`",
    "joint-20": "`JointHerding(iterations=20)`",
    "JointHerdedGibbs": "`JointHerdedGibbs()`",
    "sobol-polished": "`Polished(SobolSampling())`",
    "support": "`Polished(SobolSampling(), kernel=Energy())`",
    "pcd": "PCD, 100 Newton steps",
    "pcd-500": "PCD, 100 Newton steps, 500 vectors",
    "pcd-default": "PCD, 40 local steps",
    "lcd": "`LCDSampling()`",
}
"""Samplers on the page, in this order; the results file has more."""


def mixtures(family: str = "5 components", n: int = 100) -> str:
    """Median energy distances on mixtures of 5 components in two to eight dimensions, and milliseconds."""
    table = read("mixtures").query("n == @n and d > 1 and family == @family")
    cells, dims = table.set_index(["sampler", "d"])["median"], table["d"].unique()
    ms = milliseconds().xs((4, family, n), level=("d", "family", "n"))
    rows = [
        [label, *(number(cells[name, d]) for d in dims), number(ms.get(name, np.nan))]
        for name, label in BESIDE.items()
    ]
    heads = ["points by", *(f"d = {d}" for d in dims), "ms, d = 4"]
    return markdown(heads, rows, "mixtures", "mixtures_compiled")


def mixtures_all() -> Table:
    """Median and worst energy distances on mixtures of 1, 5 and 100 components, and milliseconds."""
    table, ms = read("mixtures").query("sampler in @BESIDE"), milliseconds()
    rows = [
        [
            BESIDE[row.sampler],
            row.d,
            row.n,
            row.family,
            number(row.median, 3),
            number(row.worst, 3),
            number(ms.get((row.d, row.family, row.sampler, row.n), np.nan), 3),
        ]
        for row in table.itertuples()
    ]
    return ["points by", "d", "n", "mixture", "median", "worst", "ms"], rows


def milliseconds() -> pd.Series:
    """Milliseconds by dimension, family, sampler and n; of PCD only those after torch has compiled it."""
    keys = ["d", "family", "sampler", "n"]
    table = read("mixtures")
    others = table[~table["sampler"].str.startswith("pcd")]
    return pd.concat([others, read("mixtures_compiled")]).set_index(keys)["ms"]


def repairs(family: str = "5 components", n: int = 100) -> str:
    """Median energy distance of the samplers that differ by the repairs of herded Gibbs sampling."""
    table = read("quality").query("family == @family and n == @n")
    cells = (
        table.set_index(["sampler", "d"])["median"]
        .unstack()
        .reindex(list(REPAIRS))
        .dropna(axis="columns")
    )
    rows = [[REPAIRS[name], *(number(v) for v in row)] for name, row in cells.iterrows()]
    return markdown(["sampler", *(f"d = {d}" for d in cells)], rows, "quality")


METHODS = (
    "i.i.d. random",
    "Sobol (scipy)",
    "kernel thinning (goodpoints)",
    "Compress++ (goodpoints)",
    "KH",
    "CHG",
    "KH, mapped",
    "KH, polished",
)
"""Methods on the page, in this order; the results file has more."""


def peers(n: int = 64) -> str:
    """Herding error and energy distance of samplers on mixtures of 5 components, both times 1000, and milliseconds."""
    table = read("peers").query("n == @n and target.str.startswith('5 components')")
    table["d"] = table["target"].str[-1].astype(int)
    keys = ["method", "d"]
    herding = table[table["kernel"] != "rule"].set_index(keys)
    energy = table[(table["kernel"] == "rule") | table["kernel"].isna()].set_index(keys)
    dims = table["d"].unique()
    rows = [
        [
            name,
            *(number(1000 * herding.loc[(name, d), "herding_error"]) for d in dims),
            *(number(1000 * energy.loc[(name, d), "energy_distance"]) for d in dims),
            number(1000 * energy.loc[(name, 4), "seconds"]),
        ]
        for name in METHODS
    ]
    heads = [f"{name}, d = {d}" for name in ("herding error", "energy distance") for d in dims]
    return markdown(["method", *heads, "ms, d = 4"], rows, "peers")


def thinning() -> str:
    """Energy distance of members over that of every k-th point, and seconds, by method, their number and the dimension."""
    table = read("thinning")
    keys = ["sample", "d", "n", "m"]
    base = table[table["method"] == "every k-th"].set_index(keys)["energy_distance"]
    table["ratio"] = table["energy_distance"] / table.set_index(keys).index.map(base)
    found = table[table["method"] != "every k-th"].groupby(["m", "method", "d"], sort=False)
    best = found.agg(
        ratio=("ratio", "median"), worst=("ratio", "max"), seconds=("seconds", "median")
    )
    rows = []
    for m, method in dict.fromkeys((m, name) for m, name, _ in best.index):
        if method == "random subset" and m < 100:
            continue
        cells = best.xs((m, method), level=("m", "method"))
        ratios = [f"{number(r.ratio)} ({number(r.worst)})" for r in cells.itertuples()]
        low, high = (number(v) for v in (cells["seconds"].min(), cells["seconds"].max()))
        rows.append(
            [m, f"`hf.{method}`" if method == "thin" else method, *ratios, f"{low} to {high}"]
        )
    heads = [f"d = {d}" for d in best.index.unique("d")]
    return markdown(["m", "method", *heads, "seconds"], rows, "thinning")


def hostile() -> str:
    """In how many random mixtures points are worse than independent draws."""
    table = read("hostile")
    rows = [
        [f"`{r.sampler}`", r.mixtures, r.worse, number(r.median), number(r.worst)]
        for r in table.itertuples()
    ]
    return markdown(["sampler", "mixtures", "worse than draws", "median", "worst"], rows, "hostile")
