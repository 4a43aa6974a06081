"""The rule of one track, in steps that many tracks take at once."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from herdfilter.filters.observation import Observation, Observations
from herdfilter.filters.particles import Particles

Steps = Generator[tuple[Any, ...], Any, Any]
"""A rule that yields calls, each a function and its arguments, is sent what they return, and returns particles."""


def alone(rule: Steps) -> Particles:
    """Make each call as it comes."""
    try:
        call, *given = next(rule)
        while True:
            call, *given = rule.send(call(*given))
    except StopIteration as end:
        found: Particles = end.value
        return found


def together(rules: Sequence[Steps]) -> list[Particles]:
    """Make calls of the same function for all the tracks whose rules ask for it, with arrays that have a leading axis."""
    sent: dict[int, Any] = dict.fromkeys(range(len(rules)))
    ends: dict[int, Particles] = {}
    while sent:
        asked: dict[Any, list[tuple[int, Any]]] = {}
        for k, result in sent.items():
            try:
                call, *given = rules[k].send(result)
                asked.setdefault((call, *map(_kind, given)), []).append((k, given))
            except StopIteration as end:
                ends[k] = end.value
        sent = {}
        for (call, *_), group in asked.items():
            if len(group) == 1:
                sent[group[0][0]] = call(*group[0][1])
                continue
            made = call(*(joined(parts) for parts in zip(*(given for _, given in group), strict=True)))
            sent.update((k, _of_track(made, place)) for place, (k, _) in enumerate(group))
    return [ends[k] for k in range(len(rules))]


def joined(parts: Sequence[Any]) -> Any:
    """Return what tracks have as one: itself if it is the same of all, else with a leading axis."""
    first = parts[0]
    if len(parts) > 1 and (parts[-1] is first or isinstance(first, int)):  # the same of all
        return first
    if isinstance(first, Observation):
        return Observations(parts)
    if isinstance(first, np.ndarray):
        return np.stack(parts)
    if isinstance(first, Particles):
        made = Particles.unchecked(np.stack([part.x for part in parts]), np.stack([part.log_weights for part in parts]))
        if all("weights" in vars(part) for part in parts):
            made.weights = np.stack([part.weights for part in parts])
        return made
    return type(first)(*(joined(fields) for fields in zip(*parts, strict=True)))


def _kind(given: Any) -> Any:
    """Return what is equal of arguments that can be joined."""
    if isinstance(given, np.ndarray):
        return given.shape
    if isinstance(given, tuple):
        return tuple([_kind(part) for part in given])
    return given if isinstance(given, int) else type(given)


def _of_track(made: Any, place: int) -> Any:
    """Return the part of a track of what a call made for several."""
    if isinstance(made, Particles):
        made.normalised()
    if type(made) is tuple:
        return tuple(_of_track(part, place) for part in made)
    return made[place] if isinstance(made, np.ndarray) else made.of_tracks(place)
