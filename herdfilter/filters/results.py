"""Results of a filter: the record of one step, the result of a run with its table and plot, and the named failures."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter import _checks, _repr
from herdfilter._checks import Array
from herdfilter.filters.state import ALONE
from herdfilter.models.contract import circular_dims, position_dims
from herdfilter.models.series import as_objects

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


class Views:
    """Base of results that have ``means`` (T, d) and ``covariances`` (T, d, d)."""

    __slots__ = ()
    name_in_pictures = "estimate"

    _repr_html_ = _repr.html_repr

    def to_dataframe(self, labels: Sequence[str] = ()) -> pd.DataFrame:
        """Return a table of one row per step.

        Parameters
        ----------
        labels : sequence of str, length d
            Names of the dimensions of the state, else ValueError; ``x0``, ``x1`` and so on unless given.

        Returns
        -------
        pandas.DataFrame
            With the columns ``step``, ``time`` where it is known, ``x0_mean`` and ``x0_sd`` for every dimension, and where
            the result has them ``ess``, ``resampled``, ``log_likelihood`` (the increment) and ``outcome`` (a word).
        """
        import pandas as pd

        result: Any = self
        means = result.means
        columns = {"step": getattr(self, "steps", None), "time": getattr(self, "times", None)}
        if columns["step"] is None:
            columns["step"] = np.arange(1, len(means) + 1)
        for i, name in enumerate(_names(labels, means.shape[1])):
            columns[f"{name}_mean"] = means[:, i]
            # rounding may leave -1e-17
            columns[f"{name}_sd"] = np.sqrt(np.maximum(result.covariances[:, i, i], 0.0))
        columns["ess"] = getattr(self, "ess", None)
        columns["resampled"] = getattr(self, "resampled", None)
        columns["log_likelihood"] = getattr(self, "log_likelihoods", None)
        if hasattr(self, "outcomes"):
            columns["outcome"] = [outcome.value for outcome in result.outcomes]
        return pd.DataFrame(
            {name: column for name, column in columns.items() if column is not None}
        )

    def plot(
        self,
        ax: Axes | Sequence[Axes] | None = None,
        dims: int | Sequence[int] | None = None,
        truth: ArrayLike | None = None,
        ellipses: float | None = 0.95,
        labels: Sequence[str] = (),
        observations: Mapping[int, ArrayLike] | None = None,
        ancestors: bool = False,
    ) -> Any:
        """Draw the means over time with bands, one panel for each dimension; or as a path in the plane with ellipses.

        Return the axes, an array of them if there are several panels. ValueError if a dimension does not exist, a shape does
        not fit, or `ellipses` is not a probability.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or sequence of Axes, optional
            Where to draw; without it, in a figure of pyplot. In a single one, the first dimension is drawn.
        dims : int or (int, int), optional
            One dimension over time, or two in the plane. Unless given they are the positions, if the model says which
            two these are (``position_dims``); else the first four are drawn over time, each in a panel.
        truth : array_like, shape (T, d) or (T, dimensions drawn), optional
            The true states.
        ellipses : float, optional
            Probability inside the ellipses and the band, each of a Gaussian; None for none.
        labels : sequence of str, length d
            Names of the dimensions, for the axes.
        observations : mapping of int to array_like, shape (T,), optional
            Dimension -> readings of it, drawn as dots.
        ancestors : bool
            Draw the number of distinct ancestors of a particle filter into the first panel over time, dotted, with an axis
            of its own.
        """
        # Matplotlib is slow to import, and most runs draw nothing.
        from herdfilter.pictures import tracks
        from herdfilter.pictures.axes import as_mass, axes_or_new, name_axes, panels, text_colour

        result: Any = self
        steps, dim = result.means.shape
        targets = panels(ax, dims, dim, getattr(self, "position_dims", ()))
        names = _names(labels, dim)
        masses = np.atleast_1d([] if ellipses is None else ellipses).tolist()
        for mass in masses:
            as_mass("quantiles" if isinstance(ellipses, list) else "ellipses", mass)
        angles = getattr(self, "circular", ())  # a line is broken where one wraps
        all_dims = [i for _, panel_dims in targets for i in panel_dims]
        true_states: Any = [None] * len(targets)
        if truth is not None:
            # there is one panel for all dimensions that are drawn, or one for each
            true_states = np.split(tracks.check_truth(truth, all_dims, dim), len(targets), axis=1)
            if len(true_states[0]) != steps:
                raise ValueError(
                    f"truth: expected a row for each of {steps} steps, got {len(true_states[0])}"
                )
        readings = {}
        observations = {} if observations is None else observations
        if not isinstance(observations, Mapping) or not observations.keys() <= {*all_dims}:
            expected = f"a mapping from a dimension that is drawn ({', '.join(map(str, all_dims))}) to its readings"
            raise ValueError(
                f"observations: expected {expected}, got {_checks.short_repr(observations)}"
            )
        for i, z in observations.items():
            values = _checks.as_numbers("observations", z, (None,), missing=True)
            readings[i] = _checks.as_array("observations", values, (steps,), finite=False)
        axes = [axes_or_new(panel) for panel, _ in targets]
        for panel, (_, panel_dims), panel_truth in zip(axes, targets, true_states, strict=True):
            # Readings of both dimensions make dots in the plane, of one dimension dots over time.
            dots = [readings[i] for i in panel_dims if i in readings]
            if len(dots) == len(panel_dims):
                x = dots if len(dots) == 2 else [tracks.plot_times(self, steps)[0], *dots]
                panel.plot(*x, ".", color=text_colour(), markersize=3, alpha=0.6, label="readings")
            if len(panel_dims) == 1:
                # a forecast is drawn into the axes of the past, which have their names
                name_axes(panel, "", names[panel_dims[0]])
                tracks.plot_state_over_time(
                    self,
                    panel_dims[0],
                    panel,
                    panel_truth,
                    ellipses,
                    angles,
                    label=self.name_in_pictures,
                )
                continue
            name_axes(panel, *(names[i] for i in panel_dims))
            if panel_truth is not None:
                panel_angles = [k for k, i in enumerate(panel_dims) if i in angles]
                tracks.plot_track(
                    panel_truth,
                    None,
                    panel,
                    circular=panel_angles,
                    color=text_colour(),
                    linewidth=1,
                    label="truth",
                )
            tracks.plot_track(
                result.means,
                None if ellipses is None else result.covariances,
                panel,
                panel_dims,
                mass=max(masses, default=0.95),
                circular=angles,
                label=self.name_in_pictures,
            )
        if ancestors and len(targets[0][1]) == 1:
            right = axes[0].twinx()
            right.plot(tracks.plot_times(self, steps)[0], result.distinct_ancestors, ":")
            right.set_ylabel("distinct ancestors")
        for panel in axes[:-1]:
            panel.set_xlabel("")
        return np.array(axes) if len(axes) > 1 else axes[0]


def _names(labels: Sequence[str], dim: int) -> list[str]:
    """Names of the dimensions."""
    labels = _checks.as_list("labels", labels, f"{dim} names")
    if not labels:
        return [f"x{i}" for i in range(dim)]
    if len(labels) != dim or not all(isinstance(name, str) for name in labels):
        raise ValueError(
            f"labels: expected {dim} names of dimensions, got {_checks.short_repr(labels)}"
        )
    return list(labels)


class Outcome(Enum):
    """Use that was made of an observation.

    Examples
    --------
    >>> model = hf.models.UNGM()
    >>> result = hf.ParticleFilter(model, 50, rng=0).run([[0.2], None, [np.nan], [4.0]])
    >>> [outcome.name for outcome in result.outcomes]
    ['UPDATED', 'MISSING', 'MISSING', 'UPDATED']
    """

    UPDATED = "updated"
    """The weights took up the observation."""
    MISSING = "missing"
    """The observation was None or held NaN: the step is a prediction only."""
    DEGENERATE = "degenerate"
    """The likelihood vanished at every particle; the observation was discarded and the prediction kept."""
    GATED = "gated"
    """The observation lay outside the gate; it was left out and the prediction kept."""


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class StepRecord:
    r"""One filter step.

    Attributes
    ----------
    step : int
        Time index, from 1.
    mean, covariance : ndarray, shapes (d,) and (d, d)
        Of the weighted particles, before any resampling.
    ess : float
        Effective sample size :math:`1 / \sum_i w_i^2`; the size of an ensemble; NaN in filters without particles.
    resampled : bool
        Whether the particles were resampled on the way to this step.
    log_likelihood : float
        Increment ``log p(z_step | z_1 .. z_step-1)``; 0 where no observation was used. Of a state with limits it includes
        the probability that the state stays inside.
    outcome : Outcome
    mode_probabilities : ndarray, shape (J,), or None
        Of a model that jumps between J modes.
    distinct_ancestors : float
        Number of particles of the step before that have a successor. A small number shows a collapse that `ess` hides:
        equal weights of the successors of a few particles. NaN for a proposal that draws from a fit to all particles, and
        in filters without particles.
    feasible_share : float or None
        Share of the proposed points that were inside the limits of the state; None if the model has no limits.

    Examples
    --------
    >>> pf = hf.make_filter("ranked", hf.models.CoordinatedTurn(), n_particles=50)
    >>> pf.predict()
    >>> record = pf.update([1414.0, 0.785])
    >>> record.step, record.mean.shape, record.covariance.shape, record.outcome.name
    (1, (5,), (5, 5), 'UPDATED')
    >>> record.log_likelihood == pf.log_likelihood, 1 <= record.ess <= 50, record.resampled
    (True, True, False)
    >>> 1 <= record.distinct_ancestors <= 50
    True
    """

    step: int
    mean: Array
    covariance: Array
    ess: float
    resampled: bool
    log_likelihood: float
    outcome: Outcome
    mode_probabilities: Array | None = None
    distinct_ancestors: float = np.nan
    feasible_share: float | None = None

    __repr__ = _repr.fields_in_line


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class FilterResult(Views):
    """A run over T observations.

    Attributes
    ----------
    means, covariances : ndarray, shapes (T, d) and (T, d, d)
    ess : ndarray, shape (T,)
    resampled : ndarray of bool, shape (T,)
    log_likelihoods : ndarray, shape (T,)
        Increments.
    outcomes : tuple of Outcome, length T
    particles, weights : ndarray, shapes (T, n, d) and (T, n), or None
        Kept only on request.
    steps : ndarray of int, shape (T,)
        Time index of each row; readings of the same time share one.
    times : ndarray, shape (T,)
        Time of each row, as it was given: numbers, durations or dates; sums of `dt` where that was given.
    circular, position_dims : tuple of int
        Indices of the angle-valued dimensions, and of those that the model calls positions.
    mode_probabilities : ndarray, shape (T, J), or None
        Of a model that jumps between J modes.
    distinct_ancestors : ndarray, shape (T,)
        As in `StepRecord`.
    ancestors : ndarray of int, shape (T, n), or None
        Of the particles that were kept: ``result.particles[t - 1][result.ancestors[t]]`` are those that particles t come
        from. None also if they are not known at every step.
    feasible_share : ndarray, shape (T,), or None
        As in `StepRecord`.

    Examples
    --------
    >>> model = hf.models.CoordinatedTurn()
    >>> truth, z = hf.simulate(model, steps=20, rng=1)
    >>> result = hf.ParticleFilter(model, n_particles=50, rng=0).run(z, keep_particles=True)
    >>> result.means.shape, result.covariances.shape, result.particles.shape, result.weights.shape
    ((20, 5), (20, 5, 5), (20, 50, 5), (20, 50))
    >>> np.allclose(np.einsum("tn,tnd->td", result.weights, result.particles), result.means)
    True
    >>> result.steps[-1].item(), np.allclose(result.log_likelihoods.sum(), result.log_likelihood)
    (20, True)
    """

    means: Array
    covariances: Array
    ess: Array
    resampled: np.ndarray
    log_likelihoods: Array
    outcomes: tuple[Outcome, ...]
    particles: Array | None = None
    weights: Array | None = None
    steps: np.ndarray | None = None
    times: np.ndarray | None = None
    circular: tuple[int, ...] = ()
    mode_probabilities: Array | None = None
    position_dims: tuple[int, ...] = ()
    distinct_ancestors: Array | None = None
    ancestors: np.ndarray | None = None
    feasible_share: Array | None = None

    def __len__(self) -> int:
        return len(self.means)

    def __repr__(self) -> str:
        unused = len(self) - self.outcomes.count(Outcome.UPDATED)
        return _repr.summary_repr(
            self,
            steps=len(self),
            dim=self.means.shape[1],
            log_likelihood=self.log_likelihood,
            unused_observations=unused or None,
            particles=self.particles,
        )

    @property
    def log_likelihood(self) -> float:
        """Estimate of ``log p(z_1 .. z_T)``."""
        return float(self.log_likelihoods.sum())

    @classmethod
    def collect(
        cls,
        records: list[StepRecord],
        model: Any,
        particle_sets: list[tuple[Array, ...]] | None = None,
        times: Sequence[Any] | None = None,
    ) -> FilterResult:
        """Stack step records, and particles, weights and ancestors if kept; an error leaves fewer records than times."""

        def column(name: str) -> np.ndarray:
            return np.array([getattr(record, name) for record in records])

        columns: dict[str, Any] = {}
        if particle_sets is not None:
            for k, name in enumerate(("particles", "weights", "ancestors")):
                columns[name] = [arrays[k] for arrays in particle_sets]
            # unknown at some step
            if any(indices is None for indices in columns["ancestors"]):
                del columns["ancestors"]
        for name in ("mode_probabilities", "feasible_share"):
            if records and getattr(records[0], name) is not None:
                columns[name] = [getattr(record, name) for record in records]
        # A run that failed in its first step has no records: `reshape` gives (0, d) and (0, d, d).
        return cls(
            means=column("mean").reshape(-1, model.dim),
            covariances=column("covariance").reshape(-1, model.dim, model.dim),
            ess=column("ess"),
            resampled=column("resampled").astype(bool),
            log_likelihoods=column("log_likelihood"),
            outcomes=tuple(record.outcome for record in records),
            steps=column("step").astype(int),
            times=None if times is None else as_objects(times[: len(records)]),
            circular=circular_dims(model),
            position_dims=position_dims(model),
            distinct_ancestors=column("distinct_ancestors"),
            **{name: np.array(arrays) for name, arrays in columns.items()},
        )


class DegenerateWeightsError(RuntimeError):
    """The likelihood of an observation vanished at every particle.

    The filter keeps its prediction: the observation may be skipped or replaced.

    Attributes
    ----------
    step : int
        The step at which it happened.
    infeasible : bool
        True if the limits of the state exclude all particles, whatever the observation.
    result : FilterResult or None
        In a batch run, the steps before.

    Examples
    --------
    A detector rings within 1 of its place, and no particle is near.

    >>> near = hf.Sensor(None, None, log_likelihood=lambda z, x: np.where(abs(x[:, 0] - z) < 1, 0.0, -np.inf))
    >>> pf = hf.ParticleFilter(hf.models.linear_chain(1), n_particles=50, rng=0)
    >>> pf.predict()
    >>> try:
    ...     pf.update(20.0, sensor=near)
    ... except hf.DegenerateWeightsError as error:
    ...     print(error.step, error.n)
    ...
    1 50
    """

    def __init__(self, step: int, n: int, infeasible: bool = False) -> None:
        # what the error is pickled with, as by a worker process
        super().__init__(step, n, infeasible)
        self.step = step
        self.n = n
        self.infeasible = infeasible
        self.result: FilterResult | None = None

    def __str__(self) -> str:
        if self.infeasible:
            return (
                f"step {self.step}: no point that {self.n} particles lead to is within the limits of the state; use more "
                "particles, or look at feasible and bounds of the model"
            )
        return (
            f"step {self.step}: the likelihood vanishes at all {self.n} particles; use more particles, a heavier-tailed "
            'likelihood, or on_degeneracy="predict" to skip such observations'
        )


class DegeneracyWarning(UserWarning):
    """Few particles are left after an update: the observation lies far from all, or they are too few.

    One of them has all the weight; or the effective sample size hides that all come from few ancestors, and the transition
    noise has not spread them (`FilterResult.distinct_ancestors`).

    The text is the same at every step, so that Python shows it once for each place that calls the filter.

    Attributes
    ----------
    steps : list of int or dict
        Time indices of these updates; from `run_many`, index of a track -> such a list.

    Examples
    --------
    >>> import warnings
    >>> pf = hf.ParticleFilter(hf.models.linear_chain(1), n_particles=100, rng=0)
    >>> pf.predict()
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     record = pf.update([400.0])
    ...
    >>> caught[0].category.__name__, caught[0].message.steps, round(record.ess)
    ('DegeneracyWarning', [1], 1)
    """

    steps: Any


class PartialObservationWarning(UserWarning):
    """An observation with NaN in some entries is left out whole, as `log_likelihood` is not said to take NaN.

    If it leaves out entries that are NaN, say so with ``partial_observations = True`` on the model or the `Sensor`.

    Examples
    --------
    Two readings of a number; the first is never there. Unless the sensor says that its likelihood leaves out NaN, the
    second does not count either, and the prior stays.

    >>> import warnings
    >>> model = hf.models.from_functions(lambda x: x, None, [[0.01]], None, [0.0], [[1.0]])
    >>> def log_likelihood(z, x):
    ...     return np.nansum(-np.abs(z - x), axis=1)
    ...
    >>> for partial in (False, True):
    ...     pair = hf.Sensor(None, None, log_likelihood=log_likelihood, partial_observations=partial)
    ...     with warnings.catch_warnings(record=True) as caught:
    ...         warnings.simplefilter("always")
    ...         result = hf.ParticleFilter(pair.on(model), 500, rng=0).run([[np.nan, 1.0]] * 10)
    ...     print([one.category.__name__ for one in caught], result.outcomes[-1].name)
    ...
    ['PartialObservationWarning'] MISSING
    [] UPDATED
    """


FEWEST_TO_WARN = 10  # with fewer particles a collapse is expected, and no warning is given


def warn_of_step(record: StepRecord, z: Any, n: int) -> None:
    """Warn that few of n particles are left after an update, or that an observation with a NaN was left out whole."""
    if record.outcome is Outcome.UPDATED:
        warn_of_loss(record.step, n, record.ess < ALONE)
    elif record.outcome is Outcome.MISSING and z is not None:
        warn_if_partial(z)


def warn_of_loss(step: int, n: int, alone: bool, stacklevel: int = 4) -> None:
    """Warn that one of n particles has all the weight if it is `alone`, else that all descend from few.

    At the default `stacklevel` the line is told that calls `update`.
    """
    if n >= FEWEST_TO_WARN:
        weights = f"one of {n} particles has all the weight"
        families = f"{n} particles come from few, and have not spread,"
        warning = DegeneracyWarning(
            f"{weights if alone else families} after an update; what helps: gate=0.999 against outliers, heavier tails, "
            "more particles, another filter, which hf.choose finds; RegularisedResampling() where the transition has little "
            "noise; for a constant parameter a small random walk in Q, maximise_likelihood or particle Metropolis-Hastings"
        )
        warning.steps = [step]
        WARN.get()(warning, stacklevel=stacklevel)


def warn_if_partial(z: Any) -> None:
    """Warn if an observation that counted as missing has an entry that is not NaN."""
    if not np.isnan(_checks.as_numbers("z", z, (None,), missing=True)).all():
        warning = PartialObservationWarning(
            "an observation with NaN in some entries is left out whole, as log_likelihood is not said to take NaN; if it "
            "leaves out such entries, give the model or the Sensor partial_observations=True"
        )
        WARN.get()(warning, stacklevel=4)


def warn_of_run(warnings: list[Any]) -> None:
    """Issue the warnings of all steps of a run, one of each kind."""
    for kind in dict.fromkeys(map(type, warnings)):
        of_kind: list[Any] = [warning for warning in warnings if type(warning) is kind]
        if kind is DegeneracyWarning:
            of_kind[0].steps = sorted({step for warning in of_kind for step in warning.steps})
        WARN.get()(of_kind[0], stacklevel=3)


WARN: ContextVar[Any] = ContextVar("WARN", default=warnings.warn)
"""The function that issues a filter's warnings in this thread, by warning and stacklevel."""


@contextmanager
def hold_warnings(kind: type[UserWarning] = DegeneracyWarning) -> Iterator[list[Any]]:
    """Collect warnings of a kind in a list; `warnings.catch_warnings` would collect those of all threads."""
    caught: list[Any] = []
    outer = WARN.get()

    def warn(warning: UserWarning, stacklevel: int) -> None:
        if isinstance(warning, kind):
            caught.append(warning)
        else:
            outer(warning, stacklevel=stacklevel + 1)

    # A context variable belongs to one thread, so that filters in other threads still warn.
    token = WARN.set(warn)
    try:
        yield caught
    finally:
        WARN.reset(token)
