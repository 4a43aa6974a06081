"""The looks of the filters, the same in every figure."""

from __future__ import annotations

from collections.abc import Iterable

from herdfilter.pictures.figures import Style

# Colours after Okabe and Ito (2008), told apart by every kind of colour vision, and two more; each has a contrast of at
# least 3 to 1 with the page, for which the pale ones are darker than theirs. The marker is the place of the herding: circle
# prediction, square resampling, triangle state and noise together, diamond where the observation is in view. A random
# counterpart has the same hue, pale, and is dotted. No filter is dashed: dashes are for what filters are compared with.
STYLES = {
    "bootstrap": Style("#6b6b6b", "X", "-"),
    "bootstrap-multinomial": Style("#6b6b6b", "P", ":"),
    "bootstrap-stratified": Style("#6b6b6b", "d", ":"),
    "bootstrap-residual": Style("#6b6b6b", "v", ":"),
    "bootstrap-ssp": Style("#6b6b6b", "*", ":"),
    "bootstrap-transport": Style("#6b6b6b", "D", "-"),
    "auto": Style("#B5179E", "P", "-"),
    "auto-random": Style("#B877AA", "P", ":"),
    "herded-kh": Style("#0072B2", "o", "-"),
    "herded-chg": Style("#3392CC", "o", "-"),
    "herded-random": Style("#6A8FAB", "o", ":"),
    "mixture-kh": Style("#D55E00", "s", "-"),
    "mixture-chg": Style("#B97F00", "s", "-"),
    "mixture-random": Style("#A98460", "s", ":"),
    "augmented-kh": Style("#009E73", "^", "-"),
    "augmented-chg": Style("#C466A0", "^", "-"),
    "augmented-sobol": Style("#000000", "^", "-"),
    "augmented-random": Style("#6B9786", "^", ":"),
    "kalman-mixture-kh": Style("#8E2457", "D", "-"),
    "guided-augmented-gauss-kh": Style("#6A3D9A", "D", "-"),
    "sqmc": Style("#000000", "*", "-"),
}
"""Name of a filter of the catalogue -> how its line is drawn."""


def styles(names: Iterable[str]) -> dict[str, Style]:
    """Style of every filter: the catalogue's own, and for others what the catalogue leaves over.

    Examples
    --------
    >>> styles = hf.plotting.styles(["bootstrap", "my-own"])
    >>> styles["bootstrap"].color, styles["my-own"].color != styles["bootstrap"].color
    ('#6b6b6b', True)
    """
    names = list(names)
    taken = {STYLES[name].color for name in names if name in STYLES}
    vivid = [style for style in STYLES.values() if style.color != "#6b6b6b" and style.linestyle != ":"]
    free = list({s.color: s for s in vivid if s.color not in taken}.values()) or list(STYLES.values())
    others = [name for name in names if name not in STYLES]
    own = {name: free[i % len(free)]._replace(marker="DPv*"[i % 4], linestyle="-") for i, name in enumerate(others)}
    return {name: own.get(name) or STYLES[name] for name in names}


def dimension_label(labels: tuple[str, ...], dim: int) -> str:
    """Label of a dimension of the state."""
    return labels[dim] if dim < len(labels) else f"state {dim + 1}"
