"""The table of the page on Stone Soup: its particle filter with parts of its own and with ours."""

from __future__ import annotations

from page_format import interval, markdown, number, read

TEXT = {
    "Stone Soup, systematic": "`SystematicResampler`",
    "Stone Soup, ESS": "`ESSResampler`",
    "its resampler herded": "resampler: `MixtureResampling`, herded",
    "HerdedProposal, not looking": "proposal: `HerdedProposal`",
    "AutomaticProposal, three lines": "proposal: three lines changed",
    "AutomaticProposal, herded prior": "the same, no random number",
    "ParticleFilter, converted models": "`auto`, converted models",
}
"""Filter in the results file -> what it is."""


def stonesoup() -> str:
    """Write, for each scene, errors to the posterior over those of the first filter, and errors to the truth; and times."""
    table = read("adapters").query("adapter == 'stonesoup'")
    models = list(dict.fromkeys(table["model"]))
    cells = table.set_index(["filter", "model"])
    rows = []
    for name, text in TEXT.items():
        own = [cells.loc[name, model] for model in models]
        errors = [
            number(row["error"]) if row["ratio"] == 1 else f"times {interval(row, 'ratio')}"
            for row in own
        ]
        written = [
            f"{error}; {number(row['to_truth'])}" for error, row in zip(errors, own, strict=True)
        ]
        rows.append([text, *written, number(own[0]["ms_per_step"])])
    return markdown(["filter", *models, "ms per step"], rows, "adapters")


TABLES = {"adapters_stonesoup": stonesoup}
