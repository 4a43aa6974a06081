"""The tables of the pages that are about samplers; see page_tables.py."""

from __future__ import annotations

import numpy as np
import pandas as pd
from page_format import markdown, number, read

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
    best = over_families(read("quality"))
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


def mixtures(n: int = 100) -> str:
    """Median energy distances on mixtures of 1, 5 and 100 components, and milliseconds, in two to eight dimensions."""
    table = read("mixtures").query("n == @n and d > 1")
    families = dict.fromkeys(table["family"])
    keys, rows = ["sampler", "d", "family"], []
    cells, ms = table.set_index(keys), milliseconds().xs(n, level="n")
    for name, label in BESIDE.items():
        columns = [
            "; ".join(number(cells["median"].get((name, d, family), np.nan)) for family in families)
            for d in table["d"].unique()
        ]
        times = [number(ms.get((4, family, name), np.nan)) for family in families]
        rows.append([label, *columns, "; ".join(times)])
    heads = ["points by", *(f"d = {d}" for d in table["d"].unique()), "ms, d = 4"]
    return markdown(heads, rows, "mixtures", "mixtures_compiled")


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


def rates() -> str:
    """Exponents with which the herding error falls, by sampler, dimension and kernel, from Fig. 3 of the paper."""
    table = read("paper_fig3")
    cells = table.set_index(["sampler", "d", "sigma_k"])["E falls as t^-"]
    columns = dict.fromkeys(zip(table["d"], table["sigma_k"], strict=True))
    heads = [
        f"d = {d}, {k} kernel" if k == "auto" else f"d = {d}, $\\sigma_k$ = {k}" for d, k in columns
    ]
    rows = [
        [name, *(number(-cells[name, *column]) for column in columns)]
        for name in table["sampler"].unique()
    ]
    return markdown(["sampler", *heads], rows, "paper_fig3")


def peers(n: int = 64) -> str:
    """Herding error and energy distance of samplers at one number of points, both times 1000."""
    table = read("peers").query("n == @n")
    targets = list(dict.fromkeys(table["target"]))
    herding = table[table["kernel"] != "rule"].set_index(["method", "target"])["herding_error"]
    energy = table[(table["kernel"] == "rule") | table["kernel"].isna()].set_index(
        ["method", "target"]
    )["energy_distance"]
    rows = []
    for name in dict.fromkeys(table["method"]):
        both = [(herding.get((name, t), np.nan), energy.get((name, t), np.nan)) for t in targets]
        rows.append([name, *(", ".join(number(1000 * v) for v in pair if v == v) for pair in both)])
    return markdown(["method", *targets], rows, "peers")


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
