"""`compare` and its result: the table of runs, which also has verdict, summary, figures and report."""

from __future__ import annotations

import html
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from herdfilter import _checks
from herdfilter.catalogue.specifications import Filters
from herdfilter.plotting import drawings
from herdfilter.report import wording
from herdfilter.report.page import write_report
from herdfilter.study import engine
from herdfilter.study.plan import plan_study
from herdfilter.study.results import StudyResult
from herdfilter.study.store import open_for_reading

COURSE = {"steps", "truth", "dt", "times", "start", "controls"}
"""Further keywords of `compare`, of the series of a model."""


class Comparison(pd.DataFrame):
    """The table of runs that `compare` returns, with verdict, summary, figures and report.

    It prints as on the command line: the summary and the verdict; `head` and the like show the runs. A selection of rows, a
    copy or a join is a plain DataFrame of runs, because the verdict is about all runs: `herdfilter.study.summarise`
    summarises any table of runs. ``pd.DataFrame(study).plot`` is the plot of pandas. `copy.copy`, `copy.deepcopy` and
    pickle return a Comparison.

    Examples
    --------
    >>> study = hf.compare("linear_gaussian", ["bootstrap", "ukf"], particles=[20], runs=6, store="study.sqlite")
    >>> study.plot("error_over_time").savefig("errors.png")
    >>> study.report("out").name
    'report.html'
    >>> hf.Comparison.read("study.sqlite").verdict == study.verdict
    True
    """

    _metadata = ["_result"]  # noqa: RUF012, pandas reads a list

    def __init__(self, runs: pd.DataFrame, result: StudyResult) -> None:
        # A copy: a user may change the table, but the result must stay.
        super().__init__(runs, copy=True)  # type: ignore[call-arg]
        self._result = result

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Comparison:
        """Read a comparison from its store: a file `store` of `compare`, or a folder of ``herdfilter compare --out``.

        If it was interrupted, only runs that all filters have finished count. FileNotFoundError or StoreError (see
        `herdfilter.study.store`) if there is none.
        """
        with open_for_reading(_path("path", path)) as store:
            result = store.result()
        return cls(result.runs, result)

    @property
    def _constructor(self) -> Any:
        return pd.DataFrame  # of all that pandas derives from this table

    def __copy__(self, *_: Any) -> Comparison:
        return Comparison(self, self._result)

    __deepcopy__ = __copy__

    @property
    def verdict(self) -> str:
        """The finding, in one sentence."""
        return self._result.verdict

    @property
    def summary(self) -> pd.DataFrame:
        """One row per filter and particle count, as from `summarise`, or for a family of models `over_models`."""
        return (self._result.summary if self._result.models is None else self._result.models).copy()

    def plot(self, figure: str | None = None) -> Figure:  # type: ignore[override]
        """Draw a figure of the comparison.

        Parameters
        ----------
        figure : str, optional
            Its name, which is that of its file from ``herdfilter compare --out``: ``ratios`` (to the baseline, the default
            if there are several filters), ``error_over_particles``, ``error_over_seconds``, ``error_over_evaluations``,
            ``error_over_time``, ``trajectory`` and others; ValueError if it is unknown, or there is nothing to draw in it.
        """
        plans = drawings(self._result)
        if not plans:
            raise ValueError(
                "figure: expected a run that was finished, got none; the column error says why"
            )
        # The first drawing is `ratios`, unless there is only one filter.
        name = next(iter(plans)) if figure is None else _checks.one_of("figure", figure, plans)
        return plans[name].figure

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write the report, one HTML file, and return its path.

        Parameters
        ----------
        path : str or Path
            A name that ends in ``.html``, or a folder for ``report.html``; folders are made. OSError if that fails.
        """
        target = _path("path", path)
        if target.suffix.lower() not in ("", ".html"):
            raise ValueError(
                f"path: expected a folder, or a name that ends in .html, got {_checks.short_repr(str(path))}"
            )
        try:
            return write_report(self._result, target)
        except OSError as error:
            raise OSError(
                f"path: cannot write into {target} ({error.strerror or error}); choose another place"
            ) from error

    def __repr__(self) -> str:
        return wording.findings_text(self._result).rstrip()

    def _repr_html_(self) -> str:
        title, heads, rows, words = wording.findings(self._result)
        table = pd.DataFrame(rows, columns=heads).to_html(index=False, border=0)
        above, below = ("<br>".join(map(html.escape, part)) for part in (title, words[:-1]))
        return f"<p>{above}</p>{table}<p>{below}</p><p><b>{html.escape(words[-1])}</b></p>"


def compare(
    scenario: Any,
    filters: Filters | None = None,
    particles: int | Iterable[int] | None = None,
    runs: int | None = None,
    seed: int = 0,
    workers: int = 1,
    data: str | Path | None = None,
    progress: bool = False,
    store: str | Path | None = None,
    resume: bool = False,
    scheduler: str | None = None,
    run_timeout: float | None = None,
    models: int | None = None,
    first_model: int | None = None,
    observations: Any = None,
    **course: Any,
) -> Comparison:
    """Compare filters on a scenario or a model: every filter of a run sees the same truth and the same measurements.

    Parameters
    ----------
    scenario : str, Path, Scenario, or model
        A name that ``herdfilter scenarios`` lists, a path to a TOML file of your own, or a `Scenario`. Or a model, or the
        text ``"file.py:function"`` of a function that makes one: it is simulated in every run, unless there are
        `observations`.
    filters : str, iterable of str, or mapping, optional
        Names that ``herdfilter filters`` lists, or the scenario's own; or a mapping from a name to one of these, to a
        mapping of `ParticleFilter` keywords, or to a function ``(model, n_particles, rng)`` that returns an object with
        ``run(observations, dt=..., controls=...)``. The scenario holds the default of this and of `particles`, `runs`,
        `models` and `first_model`.
    particles : int or iterable of int, optional
        Particle counts.
    runs : int, optional
        Independent runs; for a family of models, of each model. With real data only the filters' random numbers differ.
    seed : int
        Root of all seeds. The table is the same for any number of workers, except for the times.
    workers : int
        Processes on this machine. Each uses one thread, so that they do not compete for processors.
    data : str or Path, optional
        Folder of real data, for scenarios that need one.
    progress : bool
        Show progress on the error output: a bar on a terminal, else a line every few seconds.
    store : str or Path, optional
        SQLite file into which every finished run is written at once, for `resume` and for ``herdfilter show``.
    resume : bool
        Continue the same comparison in `store` after an interruption, or with more `runs`.
    scheduler : str, optional
        ``"local"`` processes, ``"dask"`` (a Dask cluster of `workers` processes on this machine), or the address of a Dask
        scheduler such as ``"tcp://host:8786"``, whose workers need herdfilter and the files that the scenario names.
    run_timeout : float, optional
        Seconds that a filter may take for a run, and that recording and reference of a run may take together. A run that
        takes longer has failed, even if it hangs in compiled code; its process is killed.
    models : int, optional
        Number of models of a scenario that is a family, such as ``"random"``; `over_models` summarises over them.
    first_model : int, optional
        Seed of the first model; the next ones have the next seeds. Tune on seeds below 10,000, and take seeds from
        1,000,000 on for results that you claim.
    observations : array_like, Recording, or list of Recording, optional
        Recorded series of a model, as for `ParticleFilter.run`; of several series each run has one. A
        `herdfilter.study.Recording` holds a series with its truth, times, controls and sensors.
    **course
        Of a model: ``steps`` and ``dt`` of simulated series; ``truth`` (T, d), ``dt``, ``times``, ``start`` and ``controls``
        of a recorded one. Errors to the truth are NaN without it; those to the reference, which is exact or from 20,000
        particles, stay.

    Returns
    -------
    Comparison
        A `pandas.DataFrame` that also has verdict, summary, figures and report. One row per filter, particle count and
        run: ``scenario``, ``filter``, ``n_particles``, ``run``, ``seed``, the type of the ``reference``, the numbers that
        `herdfilter.study.columns` declares, such as ``rmse``, and ``error`` and ``traceback`` of a run that failed: its
        measured numbers are NaN. A family also has the seed of the ``model`` and its ``kind``, in words.

    Raises
    ------
    FileNotFoundError
        If a file or the data do not exist.
    StoreError, ImportError, ConnectionError
        As from `run_study`.

    Examples
    --------
    >>> study = hf.compare("linear_gaussian", ["bootstrap", "ukf"], particles=[20], runs=6, seed=0)
    >>> print((study.groupby("filter")["reference_error"].median() < 1e-6).to_dict())  # the UKF is exact
    {'bootstrap': False, 'ukf': True}
    >>> print(study.verdict)
    With 20 particles ukf's error to the reference is ...

    On a model, with a recorded series whose truth nobody knows:

    >>> model = hf.models.linear_chain(2)
    >>> truth, z = hf.simulate(model, steps=20, rng=1)
    >>> study = hf.compare(model, ["bootstrap", "auto"], particles=20, runs=2, observations=z)
    >>> (study.groupby("filter")["reference_error"].median() < 1e-6).to_dict()
    {'auto': True, 'bootstrap': False}
    """
    _checks.check_flags(progress=progress, resume=resume)
    store = None if store is None else _path("store", store)
    for name in course.keys() - COURSE:
        raise TypeError(f"compare() got an unexpected keyword argument {name!r}")
    study = plan_study(
        scenario, filters, particles, runs, seed, data, models, first_model, observations, **course
    )
    result = engine.run_study(study, workers, progress, store, resume, scheduler, run_timeout)
    return Comparison(result.runs, result)


def _path(name: str, value: Any) -> Path:
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise ValueError(f"{name}: expected a path, got {_checks.short_repr(value)}")
    return Path(value)
