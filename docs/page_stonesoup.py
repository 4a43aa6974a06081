"""The table of the page on Stone Soup: its particle filter with parts of its own and with ours."""

from __future__ import annotations

from page_format import interval, markdown, number, read

TEXT = {
    "Stone Soup, systematic": "Stone Soup's, `SystematicResampler`",
    "Stone Soup, ESS": "Stone Soup's, `ESSResampler`",
    "its resampler herded": "with `HerdfilterResampler`: `MixtureResampling`, kernel herding",
    "HerdedProposal, not looking": "with `HerdfilterProposal`: `HerdedProposal`, kernel herding, unseen",
    "AutomaticProposal, three lines": "with `HerdfilterProposal`: three lines changed",
    "AutomaticProposal, herded prior": "the same without random numbers",
    "ParticleFilter, converted models": "`auto-kh` on the converted models",
}
"""Filter in the results file -> what it is."""


def stonesoup() -> str:
    """Write errors to the posterior, over those of the first filter, and to the truth, and times, for each scene."""
    table = read("adapters").query("adapter == 'stonesoup'")
    models = list(dict.fromkeys(table["model"]))
    cells = table.set_index(["filter", "model"])
    parts = []
    for model in models:
        own = cells.xs(model, level="model")
        rows = [
            [
                text,
                number(row["error"]),
                interval(row, "ratio"),
                number(row["to_truth"], 3),
                number(row["ms_per_step"]),
            ]
            for text, row in ((TEXT[name], own.loc[name]) for name in TEXT if name in own.index)
        ]
        heads = ["filter", "error", "over the first", "error to the truth", "ms per step"]
        title = f"{model[0].upper()}{model[1:]}; {own['n'].iloc[0]} particles, {own['runs'].iloc[0]} runs:"
        parts.append(f"{title}\n\n" + markdown(heads, rows, *(["adapters"] if model == models[-1] else [])))
    return "\n".join(parts)


TABLES = {"adapters_stonesoup": stonesoup}
