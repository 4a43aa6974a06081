"""One filter for each of many tracks, on all cores, with one line that tells how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, starmap
from typing import Any

from herdfilter._checks import check_count, check_flags, short_repr
from herdfilter.filters.particle_tracks import run_together
from herdfilter.filters.progress import Counter, live_line
from herdfilter.filters.results import FilterResult

TOGETHER = 64
"""Most tracks that are filtered at once: more have no gain, as their arrays leave the processor's cache."""


class TracksError(RuntimeError):
    """Some tracks could not be filtered; the others were.

    Attributes
    ----------
    results : list of FilterResult or None
        Of all tracks, in their order; of one that failed, the steps before, or None.
    errors : dict
        Index of a track -> what was raised.

    Examples
    --------
    The second track holds what is no number; the others are done.

    >>> model = hf.models.UNGM()
    >>> try:
    ...     hf.run_many(lambda k: hf.ParticleFilter(model, n_particles=20, rng=k), [[0.1, 0.2], [0.1, np.inf], [0.3]])
    ... except hf.TracksError as error:
    ...     print([len(result) for result in error.results])
    ...     print(error.errors[1])
    ...
    [2, 1, 1]
    z: expected finite numbers, or NaN where missing, got inf at step 2
    """

    def __init__(self, results: list[FilterResult | None], errors: dict[int, Exception]) -> None:
        first = min(errors)
        super().__init__(
            f"{len(errors)} of {len(results)} tracks failed, the first of them track {first} with "
            f"{type(errors[first]).__name__}: {errors[first]}; the results of the others are in the attribute results"
        )
        self.results, self.errors = results, errors

    def __reduce__(self) -> tuple[type, tuple[list[FilterResult | None], dict[int, Exception]]]:
        return type(self), (self.results, self.errors)


def run_many(
    build: Callable[[int], Any],
    list_of_observations: Iterable[Any],
    workers: int = 1,
    progress: bool = True,
    **options: Any,
) -> list[FilterResult]:
    """Filter many tracks, each by a filter of its own; return a list of their results in the same order.

    Particle filters by one model object, with the same proposal (`BootstrapProposal`, `RankedProposal` or
    `AutomaticProposal`), number of particles and options, take each step of many tracks at once: the functions of the model
    are given the particles of all. Results are the same, in a fraction of the time.

    Parameters
    ----------
    build : callable
        Index of a track, from 0 -> a filter for it, with a method ``run``. A random filter takes a seed that depends on the
        index; then results do not depend on the number of workers.
    list_of_observations : iterable
        For each track, what ``run`` takes; or a mapping of its keyword arguments, ``observations`` among them, where tracks
        differ in times or controls.
    workers : int
        Processes that share the work; with 1, this one does it. With more the filters live and end in the others.
    progress : bool
        Whether to tell on the error output how far it is, where it takes more than a second.
    **options
        Further keyword arguments of ``run``, the same for all tracks.

    Raises
    ------
    TracksError
        If some tracks fail, after all the others are done; it has the results.

    Examples
    --------
    Three tracks, each with a filter of its own, whose seed is that of the track:

    >>> model = hf.models.UNGM()
    >>> tracks = [hf.simulate(model, steps, rng=1)[1] for steps in (10, 20, 30)]
    >>> results = hf.run_many(lambda k: hf.ParticleFilter(model, n_particles=20, rng=k), tracks)
    >>> [len(result) for result in results]
    [10, 20, 30]
    """
    if not callable(build):
        raise TypeError(f"build: expected a function of a track's index that returns a filter, got {short_repr(build)}")
    if not isinstance(list_of_observations, Iterable) or isinstance(list_of_observations, Mapping | str):
        raise TypeError(
            "list_of_observations: expected the observations of one track after the other, got "
            f"{short_repr(list_of_observations)}"
        )
    workers, tracks = check_count("workers", workers), list(list_of_observations)
    results: list[FilterResult | None] = [None] * len(tracks)
    errors: dict[int, Exception] = {}
    count = Counter("run_many", 0, len(tracks), "tracks")
    check_flags(progress=progress)
    size = min(TOGETHER, -(-len(tracks) // workers)) or 1
    blocks = [range(start, min(start + size, len(tracks))) for start in range(0, len(tracks), size)]
    calls: Iterable[Any] = ((build, block, [tracks[k] for k in block], options) for block in blocks)
    outcomes: Iterable[Iterable[TrackEnd]] = starmap(_outcomes, calls)
    if workers > 1 and len(tracks) > 1:
        from joblib import Parallel, delayed

        outcomes = Parallel(n_jobs=workers, return_as="generator")(delayed(_listed)(*call) for call in calls)
    with live_line(count, progress and bool(tracks)):
        for k, (result, error) in enumerate(chain.from_iterable(outcomes)):
            results[k] = result
            if error is not None:
                errors[k] = error
            count.add(1, int(error is not None))
    if errors:
        raise TracksError(results, errors)
    return results  # type: ignore[return-value]


TrackEnd = tuple[FilterResult | None, Exception | None]


def _outcomes(
    build: Callable[[int], Any], block: Sequence[int], tracks: Sequence[Any], options: Mapping[str, Any]
) -> Iterator[TrackEnd]:
    """Filter the tracks of a block: all at once where their filters can, else one after the other."""
    filters: list[Any] = []
    for k in block:
        try:
            filters.append(build(k))
        except Exception as error:
            filters.append(error)
    plain = not any(isinstance(track, Mapping) for track in tracks)
    results = run_together(filters, tracks, **options) if plain else [None] * len(tracks)
    for track, result in zip(tracks, results, strict=True):
        one = filters.pop(0)
        try:
            if isinstance(one, Exception):
                raise one
            given = {**options, **(track if isinstance(track, Mapping) else {"observations": track})}
            yield one.run(**given) if result is None else result, None
        except Exception as error:
            yield getattr(error, "result", None), error


def _listed(*call: Any) -> list[TrackEnd]:
    return list(_outcomes(*call))
