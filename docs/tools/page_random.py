"""The table of what random models are drawn from, on the page of models, from the constants that decide it."""

from __future__ import annotations

from collections.abc import Mapping

from page_format import markdown

from herdfilter.models.random import drifts, localisation, model, noises, observations


def random_models() -> str:
    """Write what is drawn with what probability."""
    kinds = [
        [name, f"{kind.share:g}", _numbers(kind.dims), "{:g} to {:g}".format(*kind.noise_range)]
        for name, kind in drifts.DRIFTS.items()
    ]
    special = {
        "sharp (not of counts)": observations.SHARP_SHARE,
        "else heavy-tailed (not of counts and bearings)": observations.HEAVY_TAILED_SHARE,
        "missing for long stretches": observations.MISSING_SHARE,
        "prior of several far Gaussians": model.MULTIMODAL_SHARE,
    }
    rows = [
        ["dimension", _shares(drifts.DIMENSIONS)],
        ["transition noise", _shares(noises.NOISES)],
        ["observed", _shares(observations.VIEWS)],
        *[[name, f"{share:g}"] for name, share in special.items()],
    ]
    return "\n".join(
        [
            markdown(["what", "probability"], rows),
            markdown(
                [
                    "drift",
                    "share",
                    "dimensions",
                    "standard deviation of the noise, in natural scales",
                ],
                kinds,
            ),
        ]
    )


def random_localisation() -> str:
    """Write what models of the kind localisation are drawn from, and how data may depart."""
    special = {
        "no transition noise": localisation.NOISE_FREE_SHARE,
        "one sensor at a time, in turn": localisation.IN_TURN_SHARE,
        "unknown constant offset of all readings": localisation.OFFSET_SHARE,
        "only the likelihood known": localisation.LIKELIHOOD_ONLY_SHARE,
        "heavy-tailed (not bearings)": localisation.STUDENT_SHARE,
    }
    rows = [
        ["target", _shares(localisation.MOTIONS)],
        ["dimension of its place", _shares(localisation.POSITION_DIMENSIONS)],
        ["sensors", _shares(localisation.SENSOR_KINDS)],
        ["Gaussians of the prior", _shares(localisation.PRIOR_COMPONENTS)],
        *[[name, f"{share:g}"] for name, share in special.items()],
        [
            "noise of a reading, in spreads under the prior",
            "{:g} to {:g}".format(*localisation.SHARPNESS),
        ],
        ["departures of data (one of four)", ", ".join(model.DEPARTURES)],
    ]
    return markdown(["what", "probability or range"], rows)


def _shares(shares: Mapping[object, float]) -> str:
    return ", ".join(f"{name}: {share:g}" for name, share in shares.items())


def _numbers(dims: tuple[int, ...]) -> str:
    whole = dims == tuple(range(dims[0], dims[-1] + 1))
    return f"{dims[0]} to {dims[-1]}" if whole else ", ".join(map(str, dims))
