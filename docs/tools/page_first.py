"""The two numbers of the first screen: what the default gains, and what it costs."""

from __future__ import annotations

from collections.abc import Callable

from page_default import DEFAULT, SHOWN
from page_format import interval, markdown, number, read


def first_numbers() -> str:
    """Write error and time of the default over those of the bootstrap filter, with as many particles."""
    gain = read("default").query("filter == @DEFAULT and n == @SHOWN").iloc[0]
    cost = read("default_times").query("filter == @DEFAULT and n == @SHOWN").iloc[0]
    rows = [
        [
            f"error of the estimate, on {gain['models']} random models",
            interval(gain, "to_bootstrap"),
        ],
        [f"time of a step, on {cost['models']} of these models", number(cost["mean"])],
    ]
    return markdown(["", f"`{DEFAULT}` over `bootstrap` (ratio; {SHOWN} particles each)"], rows)


TABLES: dict[str, Callable[[], str]] = {"first_numbers": first_numbers}
