"""Draw the figures of the documentation from fresh computation: ``python docs/make_images.py [samplers] ...``.

`scenario_ungm` and so on, one run of each scenario, `samplers` and the pictures of the theory (`herding_step`,
`gibbs_target` and so on) take seconds; real data are downloaded, or looked for in HERDFILTER_DATA. `paper_fig1` to
`paper_fig5`, the figures of `herdfilter paper` and their tables, take a minute together. `random_models`, `long_records` and
the guide's pictures (`guide_equal` and so on) are drawn from results files; `gallery_05_1` and so on by the examples of
recorded data. `herding_motion` is a GIF that moves. The drawing is in figures/, a file for each group.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from PIL import Image

from herdfilter.paper import FIGURES, reproduce
from herdfilter.study.scenario import scenario_files

sys.path.insert(0, str(Path(__file__).parent / "tools"))
sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
from common import RESULTS, save
from figures import (
    examples,
    filters,
    first,
    gibbs,
    guide,
    herding,
    long,
    motion,
    noise,
    ranked,
    samplers,
    scenarios,
)
from figures.look import LOOK

IMAGES = Path(__file__).parent / "images"
PALETTE = 128
"""Colours of a file: anti-aliased lines take a third of the space with as few."""


def paper(name: str) -> Figure:
    """Draw a figure of the paper, as the command does, and keep its table for the pages."""
    made = reproduce(name)
    save(f"paper_{name}", made.table.rename(columns=lambda text: " ".join(text.split())), RESULTS)
    return made.figure


def figures() -> dict[str, Callable[[], Figure]]:
    """Return what draws each figure, by the name of its file."""
    theory = {
        "herding": (herding.step, herding.points, herding.bandwidth, herding.line),
        "ranked": (ranked.order, ranked.noise),
        "guide": (
            guide.equal,
            guide.time,
            guide.compiled,
            guide.exponent,
            guide.processors,
            guide.points,
        ),
        "gibbs": (gibbs.discrete, gibbs.target, gibbs.count, gibbs.jump, gibbs.together),
    }
    return {
        "equal_time": first.equal_time,
        "samplers": samplers.samplers,
        "random_models": filters.random_models,
        "long_records": long.records,
        "noise_innovations": noise.innovations,
        **{f"{group}_{draw.__name__}": draw for group, draws in theory.items() for draw in draws},
        **{f"paper_{name}": partial(paper, name) for name in FIGURES},
        **examples.all_stored(),
        **{f"scenario_{name}": partial(scenarios.scenario, name) for name in scenario_files()},
    }


MOVING: dict[str, Callable[[Path], None]] = {"herding_motion": motion.motion}
"""What writes each picture that moves, by the name of its file."""


def main(names: list[str]) -> None:
    """Draw the figures named, all unless any is."""
    known = figures()
    IMAGES.mkdir(exist_ok=True)
    with mpl.rc_context(LOOK):
        for name in names or [*known, *MOVING]:
            if name in MOVING:
                path = IMAGES / f"{name}.gif"
                MOVING[name](path)
            else:
                path = IMAGES / f"{name}.png"
                known[name]().savefig(path, dpi=140)
                Image.open(path).convert("RGB").quantize(PALETTE).save(path, optimize=True)
            print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
