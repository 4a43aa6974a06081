"""The tables of what random models are drawn from, on the page of models, from the constants that decide it."""

from __future__ import annotations

from collections.abc import Mapping

from page_format import Table

from herdfilter.models.random import drifts, localisation, model, noises, observations

GENERAL, LOCALISATION = "general", "localisation"


def random_drifts() -> Table:
    """Return the kinds of drift."""
    heads = ["drift", "share", "dimensions", "standard deviation of the noise, in natural scales"]
    return heads, [
        [name, f"{kind.share:g}", _numbers(kind.dims), "{:g} to {:g}".format(*kind.noise_range)]
        for name, kind in drifts.DRIFTS.items()
    ]


def random_draws() -> Table:
    """Return what is drawn with what probability, by kind of model."""
    general = {
        "dimension": _shares(drifts.DIMENSIONS),
        "transition noise": _shares(noises.NOISES),
        "observed": _shares(observations.VIEWS),
        "sharp (not of counts)": observations.SHARP_SHARE,
        "else heavy-tailed (not of counts and bearings)": observations.HEAVY_TAILED_SHARE,
        "missing for long stretches": observations.MISSING_SHARE,
        "prior of several far Gaussians": model.MULTIMODAL_SHARE,
    }
    sought = {
        "target": _shares(localisation.MOTIONS),
        "dimension of its place": _shares(localisation.POSITION_DIMENSIONS),
        "sensors": _shares(localisation.SENSOR_KINDS),
        "Gaussians of the prior": _shares(localisation.PRIOR_COMPONENTS),
        "no transition noise": localisation.NOISE_FREE_SHARE,
        "one sensor at a time, in turn": localisation.IN_TURN_SHARE,
        "unknown constant offset of all readings": localisation.OFFSET_SHARE,
        "only the likelihood known": localisation.LIKELIHOOD_ONLY_SHARE,
        "heavy-tailed (not bearings)": localisation.STUDENT_SHARE,
        "noise of a reading, in spreads under the prior": "{:g} to {:g}".format(
            *localisation.SHARPNESS
        ),
    }
    rows: list[list[object]] = [
        [kind, what, drawn]
        for kind, of in {GENERAL: general, LOCALISATION: sought}.items()
        for what, drawn in of.items()
    ]
    return ["kind", "what", "probability or range"], rows


def _shares(shares: Mapping[object, float]) -> str:
    return ", ".join(f"{name}: {share:g}" for name, share in shares.items())


def _numbers(dims: tuple[int, ...]) -> str:
    whole = dims == tuple(range(dims[0], dims[-1] + 1))
    return f"{dims[0]} to {dims[-1]}" if whole else ", ".join(map(str, dims))
