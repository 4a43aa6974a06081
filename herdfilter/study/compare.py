"""The comparison in one call."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from herdfilter._checks import check_flags, short_repr
from herdfilter.catalogue.specifications import Filters
from herdfilter.study.engine import run_study
from herdfilter.study.scenario import Scenario
from herdfilter.study.study import plan_study

if TYPE_CHECKING:
    import pandas as pd


def compare(
    scenario: str | Path | Scenario,
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
) -> pd.DataFrame:
    """Compare filters on a scenario: every filter of a run sees the same truth and the same measurements.

    Parameters
    ----------
    scenario : str, Path or Scenario
        A name that ``herdfilter scenarios`` lists, a path to a TOML file of one's own, or a `Scenario`.
    filters : str, iterable of str, or mapping, optional
        Names that ``herdfilter filters`` lists, or the scenario's own; or a mapping from a name to one of these, to a
        mapping of `ParticleFilter` keywords, or to a function ``(model, n_particles, rng)`` that returns an object with
        ``run(observations, dt=..., controls=...)``. The scenario's filters unless given.
    particles : int or iterable of int, optional
        Particle counts; the scenario's unless given.
    runs : int, optional
        Independent runs, of a family of each model; the scenario's unless given. With real data only the filters' random
        numbers differ.
    seed : int
        Root of all seeds. The table is the same for any number of workers, except for the times.
    workers : int
        Processes.
    data : str or Path, optional
        Folder of real data, for scenarios that need one.
    progress : bool
        Whether to tell on the error output how far it is.
    store : str or Path, optional
        SQLite file that takes every finished run at once, for `resume` and for ``herdfilter show``.
    resume : bool
        Whether to continue the same comparison in `store` where it was cut off, or with more `runs`.
    scheduler : str, optional
        ``"local"`` processes, ``"dask"`` for a Dask cluster of `workers` processes on this machine, or the address of one.
    run_timeout : float, optional
        Seconds that a filter may take for a run, and the recording and the reference of a run; what takes longer is a run
        that failed, even where it hangs for ever in compiled code.
    models : int, optional
        Of a scenario that is a family of models, such as ``"random"``: how many; the scenario's unless given. Results are
        summarised over them by `herdfilter.study.families`.
    first_model : int, optional
        Seed of the first of them; the next ones have the next seeds. Seeds below 10,000 are for tuning; what is claimed
        should be found on seeds from 1,000,000 on.

    Returns
    -------
    pandas.DataFrame
        One row per filter, particle count and run: ``scenario``, ``filter``, ``n_particles``, ``run``, ``seed``, the type
        of the ``reference``, the numbers that `herdfilter.study.columns` declares, such as ``rmse``, and ``error``
        and ``traceback`` of a run that failed: its measured numbers are NaN. Of a family there are also the seed of the
        ``model`` and its ``kind``, in words.

    Raises
    ------
    ValueError
        If a name is unknown (with the nearest known one) or a value does not fit, or the store cannot be used.
    TypeError, FileNotFoundError
        If the model lacks a function that a filter needs, or a file or the data are not there.
    ImportError, ConnectionError
        If distributed is not installed, or the cluster cannot be reached.

    Examples
    --------
    >>> table = hf.compare("linear_gaussian", ["bootstrap", "ukf"], particles=[20], runs=2, seed=0)
    >>> print(table.groupby("filter")["reference_error"].median().round(6) > 0)  # the UKF is exact
    filter
    bootstrap     True
    ukf          False
    Name: reference_error, dtype: bool
    """
    if not (store is None or (isinstance(store, (str, Path)) and str(store))):
        raise ValueError(f"store: expected the path of a file, got {short_repr(store)}")
    check_flags(progress=progress, resume=resume)
    study = plan_study(scenario, filters, particles, runs, seed, data, models, first_model)
    return run_study(study, workers, progress, store, resume, scheduler, run_timeout).runs
