"""The table of what random models are drawn from, on the page of models, from the constants that decide it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from page_format import markdown

from herdfilter.models.random import sensing, systems


def random_models() -> str:
    """Write what is drawn with what probability."""
    each = [[name, _numbers(kind.dims), _factors(name)] for name, kind in systems.DRIFTS.items()]
    shares = [f"{kind.share:g}" for kind in systems.DRIFTS.values()]
    drifts = [[name, share, dims, noise] for (name, dims, noise), share in zip(each, shares, strict=True)]
    special = {
        "sharp (not of counts)": sensing.SHARP,
        "else heavy-tailed (not of counts and bearings)": sensing.HEAVY_TAILED,
        "missing for long stretches": sensing.MISSING,
        "prior of several far Gaussians": sensing.MULTIMODAL,
    }
    rows = [
        ["dimension", _shares(systems.DIMENSIONS)],
        ["transition noise", _shares(systems.NOISES)],
        ["observed", _shares(sensing.VIEWS)],
        *[[name, f"{share:g}"] for name, share in special.items()],
    ]
    return "\n".join(
        [
            markdown(["what", "probability"], rows),
            markdown(["drift", "share", "dimensions", "standard deviation of the noise, in natural scales"], drifts),
        ]
    )


def _shares(shares: Mapping[object, float]) -> str:
    return ", ".join(f"{name}: {share:g}" for name, share in shares.items())


def _numbers(dims: tuple[int, ...]) -> str:
    whole = dims == tuple(range(dims[0], dims[-1] + 1))
    return f"{dims[0]} to {dims[-1]}" if whole else ", ".join(map(str, dims))


def _factors(name: str) -> str:
    kind = systems.DRIFTS[name]
    low, high = kind.draw(np.random.default_rng(0), kind.dims[0]).noise_range
    return f"{low:g} to {high:g}"
