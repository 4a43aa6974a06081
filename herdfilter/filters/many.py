"""One filter for each of many tracks, on several cores, with a progress line."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, starmap
from typing import Any

from herdfilter import _checks
from herdfilter.filters.kalman import batched
from herdfilter.filters.kalman.core import KalmanFilter
from herdfilter.filters.progress import live_line
from herdfilter.filters.results import DegeneracyWarning, FilterResult, hold_warnings

_log = logging.getLogger(__name__)

BLOCK = 64
"""Most tracks of a block, whose filters stay in memory together; Kalman filters in one process are not limited."""


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
    z: expected finite numbers, or NaN where missing, got [inf] at step 2; beyond 1e+150 choose larger units
    """

    def __init__(self, results: list[FilterResult | None], errors: dict[int, Exception]) -> None:
        super().__init__(results, errors)  # what the error is pickled with
        self.results = results
        self.errors = errors

    def __str__(self) -> str:
        first = min(self.errors)
        return (
            f"{len(self.errors)} of {len(self.results)} tracks failed, the first of them track {first} with "
            f"{type(self.errors[first]).__name__}: {self.errors[first]}; the results of the others are in the attribute "
            "results"
        )


def run_many(
    build: Callable[[int], Any],
    list_of_observations: Iterable[Any],
    workers: int = 1,
    progress: bool = True,
    **options: Any,
) -> list[FilterResult]:
    """Filter many tracks, each by a filter of its own; return a list of their results in the same order.

    Kalman filters of one Gaussian (ekf, ukf, ckf) that share one model object run as a `BatchedKalmanFilter`; all others run
    one after the other.

    Parameters
    ----------
    build : callable
        Index of a track, from 0 -> a filter for it, with a method ``run``. A random filter takes a seed that depends on the
        index; then results do not depend on the number of workers.
    list_of_observations : iterable
        For each track, what ``run`` takes; or a mapping of its keyword arguments, ``observations`` among them, where tracks
        differ in times or controls.
    workers : int
        Processes that share the work; with 1 it is done in this process, else the filters are built in the others.
    progress : bool
        Whether to show progress on the error output, where it takes more than a second.
    **options
        Further keyword arguments of ``run``, the same for all tracks.

    Raises
    ------
    TracksError
        If some tracks fail, after all the others are done; it has the results.
    TypeError, ValueError
        If `build` is no function, or returns one filter for several tracks, or the tracks are no list.

    Warns
    -----
    DegeneracyWarning, PartialObservationWarning
        Each once, after all tracks, with the number of tracks that warn.

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
        raise TypeError(
            f"build: expected a function of a track's index that returns a filter, got {_checks.short_repr(build)}"
        )
    tracks = _checks.as_list(
        "list_of_observations",
        list_of_observations,
        "the observations of one track after the other",
    )
    workers = _checks.check_count("workers", workers)
    results: list[FilterResult | None] = []
    errors: dict[int, Exception] = {}
    warned: dict[type, dict[int, Any]] = {}  # kind -> index of a track -> its warning
    _checks.check_flags(progress=progress)
    # Each worker should get a block; in one process, Kalman filters of all tracks can share one batch.
    size = (min(BLOCK, -(-len(tracks) // workers)) if workers > 1 else len(tracks)) or 1
    calls = ((build, k, tracks[k : k + size], options) for k in range(0, len(tracks), size))
    outcomes = starmap(_ends, calls)
    if workers > 1 and len(tracks) > 1:
        from joblib import Parallel, delayed

        # The results of a block come back together: a generator cannot be sent from a process.
        listed = delayed(lambda *call: list(_ends(*call)))
        outcomes = Parallel(n_jobs=workers, return_as="generator")(listed(*call) for call in calls)
    with live_line(
        "run_many", len(tracks), unit="tracks", visible=progress and bool(tracks)
    ) as bar:
        for k, (result, error, caught) in enumerate(chain.from_iterable(outcomes)):
            results.append(result)
            for warning in caught:
                warned.setdefault(type(warning), {})[k] = warning
            if error is not None:
                errors[k] = error
            bar.set_postfix_str(f"{len(errors)} failed" if errors else "", refresh=False)
            bar.update()
    # One warning of each kind, whatever the number of tracks.
    for kind, of_track in warned.items():
        k = min(of_track)
        warning = kind(
            f"{len(of_track)} of {len(tracks)} tracks, the first of them track {k}: {of_track[k]}"
        )
        if kind is DegeneracyWarning:
            warning.steps = {k: track_warning.steps for k, track_warning in of_track.items()}
        warnings.warn(warning, stacklevel=2)
    if errors:
        raise TracksError(results, errors)
    return results  # type: ignore[return-value]


TrackEnd = tuple[FilterResult | None, Exception | None, list[UserWarning]]


def _ends(
    build: Callable[[int], Any],
    start: int,
    tracks: list[Any],
    options: Mapping[str, Any],
) -> Iterator[TrackEnd]:
    """Yield how each track ended, counted from `start`: in one batch if the filters can run so, else one by one.

    If a batch fails although each of its tracks succeeds alone, a function of the model may not accept the rows of several
    tracks; a TypeError or ValueError is then logged, and any other error, a fault of the program, is raised.
    """
    # errors of batches whose tracks have all succeeded alone so far
    failures: list[Exception] = []

    def run_block(filters: list[Any], tracks: list[Any]) -> Iterator[TrackEnd]:
        """Run tracks in one batch; if that fails, each half by itself."""
        # A track that fails is found by halving, so that all others still run in batches.
        half = len(filters) // 2
        try:
            batch = batched.run_together(filters, tracks, options) if half else None
        except Exception as error:
            failures.append(error)
            yield from chain(
                run_block(filters[:half], tracks[:half]), run_block(filters[half:], tracks[half:])
            )
            return
        results = [None] * len(filters) if batch is None else batch
        for online, track, result in zip(filters, tracks, results, strict=True):
            raised = None
            with hold_warnings(UserWarning) as caught:
                try:
                    if result is None:
                        arguments = track if isinstance(track, Mapping) else {"observations": track}
                        result = online.run(**{**options, **arguments})
                except Exception as error:
                    result = getattr(error, "result", None)
                    raised = error
                    failures.clear()  # the batch failed because this track does
            yield result, raised, caught

    while tracks:
        filters: list[Any] = []
        try:
            for k in range(len(tracks)):
                if k < BLOCK or isinstance(filters[0], KalmanFilter):
                    filters.append(build(start + k))
        except Exception as error:
            # The tracks before this one are a block; then it is built again, as the first of the next.
            if not filters:
                yield None, error, []
        # a shared filter would mix the tracks
        if len({*map(id, filters)}) < len(filters):
            raise ValueError(
                f"build: expected a new filter for each track, got one {type(filters[0]).__name__} for several"
            )
        count = len(filters)
        if count:
            yield from run_block(filters, tracks[:count])
        # The batch failed, but each of its tracks succeeded alone.
        if failures:
            if not isinstance(failures[0], TypeError | ValueError):
                raise failures[0]
            _log.warning(
                "run_many: tracks ran one by one, which takes longer, as in one batch they raise %r",
                failures[0],
            )
            failures.clear()
        start += count or 1
        tracks = tracks[count or 1 :]
