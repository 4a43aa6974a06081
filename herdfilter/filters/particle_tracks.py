"""Particle filters of many tracks by one model, all at once: a step calls each function of the model once for all tracks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from herdfilter._checks import Array
from herdfilter.filters import compiled_loop
from herdfilter.filters.observation import Observation, Observations
from herdfilter.filters.particle_filter import ParticleFilter
from herdfilter.filters.particles import Particles
from herdfilter.filters.proposals import AutomaticProposal, BootstrapProposal, RankedProposal
from herdfilter.filters.proposals.steps import joined
from herdfilter.filters.resampling import CopyingResampling
from herdfilter.filters.results import FilterResult, Outcome, StepRecord, warn_of_partial
from herdfilter.filters.transition import Transition
from herdfilter.models import contract
from herdfilter.models.series import Step, series

ALIKE = "n_particles", "proposal", "resampling", "resample_below", "on_degeneracy"
"""Attributes that filters must share to run together, beside their model."""


class Generators:
    """The random generators of filters, each of which draws the numbers of its own track."""

    def __init__(self, filters: Sequence[ParticleFilter]) -> None:
        self.own = [pf.rng for pf in filters]

    def standard_normal(self, shape: tuple[int, ...]) -> Array:
        """Draw (B, ...), a row by each generator."""
        return np.stack([rng.standard_normal(shape[1:]) for rng in self.own])


def run_together(filters: Sequence[Any], tracks: Sequence[Any], options: Mapping[str, Any]) -> list[FilterResult | None]:
    """Run particle filters that are alike over a track each, all at once; return what `ParticleFilter.run` would of each.

    None stands for a filter that has to run by itself and is at its start, as all are after an error: if they are not
    alike, or tracks have times, controls or sensors of their own, or its own fails.
    """
    results: list[FilterResult | None] = [None] * len(filters)
    keep: Any = options.get("keep_particles", False)
    if {*options} - {"dt", "keep_particles"} or type(keep) is not bool or not _alike(filters):
        return results
    if any(isinstance(track, Mapping) or iter(track) is track for track in tracks):
        return results
    before = [pf.rng.bit_generator.state for pf in filters]
    try:
        steps = [series(track, options.get("dt")) for track in tracks]
        dts = {step.dt if step.control is step.sensor is None else 0.0 for track in steps for step in track}
        if len(dts) == 1 and max(dts) > 0:
            results = _run(filters, steps, keep)
    finally:
        for pf, state, result in zip(filters, before, results, strict=True):
            if result is None:
                pf.reset()
                pf.rng.bit_generator.state = state
    return results


def _alike(filters: Sequence[Any]) -> bool:
    """Return True if filters differ in their generators only, and their proposal carries many tracks at once."""
    first = filters[0]
    if any(type(pf) is not ParticleFilter or pf.model is not first.model for pf in filters):
        return False
    model, proposal, kind = first.model, first.proposal, [getattr(first, name) for name in ALIKE]
    moments = contract.has(model, contract.OBSERVED)
    if type(proposal) is BootstrapProposal:
        plain = isinstance(first.resampling, CopyingResampling) and not contract.simulated_only(model)
    else:
        plain = type(proposal) in (RankedProposal, AutomaticProposal) and proposal.sampler is None and moments
        plain = plain and not getattr(proposal, "randomised", False) and contract.has(model, contract.ADDITIVE)
    return (
        plain
        and not (contract.jumps(model) or contract.has_scans(model) or (moments and contract.takes_state(model)))
        and not compiled_loop.takes(first)  # faster still
        and all(pf._untouched and [getattr(pf, name) for name in ALIKE] == kind for pf in filters)
        and len({id(pf.rng) for pf in filters}) == len(filters)
    )


def _run(filters: Sequence[ParticleFilter], tracks: Sequence[Sequence[Step]], keep: bool) -> list[FilterResult | None]:
    """Take all steps of all tracks, as `ParticleFilter.run` does those of one; None stands for a track that fails."""
    first, count, most = filters[0], len(filters), max(map(len, tracks))
    model, n, d, circular = first.model, first.n_particles, first.model.dim, contract.circular_dims(first.model)
    records: list[list[StepRecord]] = [[] for _ in filters]
    kept: list[list[tuple[Array, Array]]] = [[] for _ in filters]
    ends = [pf._current() for pf in filters]
    particles = joined(ends)
    missing = []
    going, failed = np.arange(count), {k for k, track in enumerate(tracks) if not track}
    for t in range(most):
        left = np.array([len(tracks[k]) > t and k not in failed for k in going.tolist()])
        if not left.all():
            going, particles = going[left], particles.of_tracks(np.flatnonzero(left))
        if not len(going):
            break
        members, uneven = [filters[k] for k in going.tolist()], np.zeros(len(going), dtype=bool)
        increments, outcomes = np.zeros(len(going)), [Outcome.MISSING] * len(going)
        if not first.proposal.uses.weights:
            uneven = particles.ess < (1 - 1e-9) * first.resample_below * n
            x, log_weights = particles.x.copy(), particles.log_weights.copy()
            scheme: Any = first.resampling
            for place in np.flatnonzero(uneven).tolist():
                x[place] = x[place].take(scheme.chosen(particles.weights[place], n, members[place].rng), axis=0)
            log_weights[uneven] = -math.log(n)
            particles = Particles.unchecked(x, log_weights)
        # Observations in which the same entries are missing are taken up together.
        groups: dict[bytes | None, list[tuple[int, Any]]] = {}
        for place, k in enumerate(going.tolist()):
            try:
                z = Observation.read(model, tracks[k][t].z, t + 1)
                if z is None:
                    missing.append(tracks[k][t].z)
            except ValueError:  # raised again by the filter itself
                failed.add(k)
                z = None
            groups.setdefault(None if z is None else np.isnan(z.z).tobytes(), []).append((place, z))
        transition, rng = Transition(model, tracks[going[0]][t].dt, None, t + 1), Generators(members)
        if not first.proposal.uses.observation:
            particles = first.proposal.propose(transition, particles, rng)  # type: ignore[arg-type]
        room = np.empty((len(going), n, d)), np.empty((len(going), n)), np.empty((len(going), n))
        for entries, group in groups.items():
            places = np.array([place for place, _ in group])
            some = particles.of_tracks(places) if len(groups) > 1 else particles
            seen = None if entries is None else Observations([z for _, z in group])
            if first.proposal.uses.observation:
                some = first.proposal.propose(transition, some, rng, seen)  # type: ignore[arg-type]
            elif seen is not None:
                some = seen.weigh(some)
            if seen is not None:
                some, evidence = some.normalised()
                failed.update(going[places[evidence == -np.inf]].tolist())
                increments[places] = evidence + [part.log_offset or 0.0 for part in seen.parts]
                for place, _ in group:
                    outcomes[place] = Outcome.UPDATED
            room[0][places], room[1][places], room[2][places] = some.x, some.log_weights, some.weights
        particles = Particles.unchecked(*room[:2])
        particles.weights = room[2]
        rows = *particles.moments(circular), particles.ess.tolist(), uneven.tolist(), increments.tolist(), outcomes
        for place, (k, *row) in enumerate(zip(going.tolist(), *rows, strict=True)):
            records[k].append(StepRecord(t + 1, *row))
            if keep:
                kept[k].append((particles.x[place], particles.weights[place]))
            if len(tracks[k]) == t + 1:
                ends[k] = particles.of_tracks(place)
    warn_of_partial(missing)
    results: list[FilterResult | None] = [None] * count
    for k in set(range(count)) - failed:
        pf, own, times = filters[k], kept[k] if keep else None, [step.time for step in tracks[k]]
        results[k] = FilterResult.collect(records[k], d, own, times, circular, getattr(model, "position_dims", ()))
        pf._particles, pf.step, pf._clock, pf.record = ends[k], len(times), tracks[k][-1].clock, records[k][-1]
        pf._resampled, pf.log_likelihood = pf.record.resampled, sum(record.log_likelihood for record in records[k])
        pf._untouched = all(record.outcome is Outcome.MISSING for record in records[k])
    return results
