"""What a scan makes of tracks: hypotheses, their association, and the tracks that follow."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from herdfilter._checks import Array
from herdfilter.association import associate
from herdfilter.filters.hypotheses import Hypothesis, combined, supposed
from herdfilter.models.contract import Model
from herdfilter.tracking._bernoulli import ratios, updated
from herdfilter.tracking._scan import BESIDE_MISSED, Detecting, Gate
from herdfilter.tracking.track import Track

UNEXPLAINED = 0.5
"""Expected number of detections without a track up to which there is none, where there is no clutter: it is an integer, but
for what an approximate association gets wrong."""


class Update(NamedTuple):
    """Tracks after a scan.

    Attributes
    ----------
    tracks : list of Track
    z : ndarray, shape (k, m)
        The detections.
    unexplained : ndarray, shape (k,)
        Probability that each is of no track.
    """

    tracks: list[Track]
    z: Array
    unexplained: Array


class Rules(NamedTuple):
    """What a tracker does with a scan; see `LMBTracker`."""

    association: Any
    gate_probability: float
    prune: float
    explained: bool  # whether all detections are of tracks where there is no clutter


def scanned(tracks: list[Track], model: Model, z: Array, by: Detecting, rules: Rules, rng: Any, step: int) -> Update:
    """Update tracks with detections (k, m), of which they stand at the prediction.

    Raises
    ------
    ValueError
        If a target that is detected for certain is not, or a detection belongs to no target where there is no clutter.
    """
    gate = Gate(model, by.sensor, [track.filter.predicted_observation(by.sensor) for track in tracks])
    existence = np.array([track.existence for track in tracks])
    log_clutter = np.log(by.clutter_density) if by.clutter_density > 0 else -np.inf
    missed = 1 - existence * by.probability
    with np.errstate(divide="ignore"):
        log_factors = np.log(existence * by.probability) - log_clutter
    inside = gate.open(z, missed, log_factors, rules.gate_probability)
    # the miss comes first: its particles are those at which the gate has looked
    unseen = [supposed(track.filter, None, by.sensor) for track in tracks]
    seen = [
        {int(j): supposed(track.filter, z[j], by.sensor) for j in np.flatnonzero(row)}
        for track, row in zip(tracks, inside, strict=True)
    ]
    log_densities = np.full(inside.shape, -np.inf)
    for i, own in enumerate(seen):
        for j, hypothesis in own.items():
            log_densities[i, j] = hypothesis.log_evidence
    matrix = ratios(existence, by.probability, log_densities, log_clutter)
    if rules.gate_probability < 1:  # what changes no marginal by more than that ties no tracks together
        matrix[:, 1:][matrix[:, 1:] < BESIDE_MISSED * matrix[:, :1]] = 0.0
    _check_detected(matrix, tracks, step)
    marginals = associate(matrix, rules.association, rng).marginals
    left = 1 - marginals[:, 1:].sum(axis=0)
    if by.clutter_density == 0 and rules.explained and left.sum() > UNEXPLAINED:
        j = int(np.argmax(left))
        raise ValueError(
            f"scan: expected detections of tracks alone, as the clutter density is zero, got {z[j]} as detection {j} at "
            f"step {step}, which is of no track; give a clutter density, or births where targets may appear"
        )
    after, weights = updated(existence, by.probability, marginals)
    kept = [
        Track(track.label, float(r), _combined(missing, own, shares))
        for track, r, missing, own, shares in zip(tracks, after, unseen, seen, weights, strict=True)
        if r >= rules.prune
    ]
    return Update(kept, z, np.clip(left, 0.0, 1.0))


def _combined(missing: Hypothesis, own: dict[int, Hypothesis], shares: Array) -> Any:
    """Return one filter for a track that was missed, or has given rise to one of the detections in its gate."""
    filters = [missing.filter, *(hypothesis.filter for hypothesis in own.values())]
    return combined(filters, shares[[0, *(1 + j for j in own)]])


def _check_detected(matrix: Array, tracks: list[Track], step: int) -> None:
    lost = ~(matrix > 0).any(axis=1)
    if lost.any():
        label = tracks[int(np.argmax(lost))].label
        raise ValueError(
            f"scan: expected a detection of track {label}, which exists and is detected for certain, got none that it may "
            f"have at step {step}; give a detection or a survival probability below 1"
        )
