"""A comparison without a scenario's file: on a model, with simulated or recorded observations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter import _checks
from herdfilter.models import series
from herdfilter.models.resolved import Measurement
from herdfilter.study.recording import Recording
from herdfilter.study.scenario import Scenario, load_scenario

# Exact where Kalman's filter or a grid is; else the better of two filters with many particles.
REFERENCE = {"type": "exact-or-guided", "n": 20_000, "repeats": 2}


def scenario_of(source: Any, **changes: Any) -> Scenario:
    """Return the scenario of a name, a TOML file, a model, or the text ``file.py:function`` of a function that makes one.

    A model's own scenario has the class as its type: whoever plans a study with it also holds the model.
    """
    name = type(source).__name__
    imports: tuple[str, ...] = ()
    table = {"type": name}
    if not without_scenario(source):
        scenario = load_scenario(source)
        if changes:
            argument, value = next(iter(changes.items()))
            raise ValueError(
                f"{argument}: expected none beside a scenario, which has its own, got {_checks.short_repr(value)}; give "
                "the model itself in place of the scenario"
            )
        return scenario
    if not is_model(source):
        text = os.fspath(source)
        file, _, name = text.rpartition(":")
        imports = (file,)
        table = {"type": text}
    filters = ("auto", "bootstrap")
    title = f"The model {name}"
    table_and_files: dict[str, Any] = {"model": table, "imports": imports, "reference": REFERENCE}
    return Scenario(name, title, filters=filters, **table_and_files, **changes)


def without_scenario(source: Any) -> bool:
    """Return True if this is a model, or the text ``file.py:function`` of one."""
    text = isinstance(source, str | os.PathLike) and ".py:" in os.fspath(source)
    return text or is_model(source)


def is_model(source: Any) -> bool:
    """Return True if this is a model, not the name of one, nor a scenario."""
    return hasattr(source, "dim") and not isinstance(source, str | os.PathLike | Scenario)


def recordings_of(
    model: Any, observations: Any, truth: ArrayLike | None = None, **course: Any
) -> tuple[Recording, ...]:
    """Return the recordings of `observations`, a series as for ``run``, a `Recording`, or a list of these.

    `course` holds ``dt``, ``times``, ``start`` and ``controls`` of a series. A truth that is not known is NaN.
    """
    entries = [observations] if isinstance(observations, Recording) else observations
    if (
        isinstance(entries, list | tuple)
        and len(entries)
        and all(isinstance(entry, Recording) for entry in entries)
    ):
        for name, value in {"truth": truth, **course}.items():
            if value is not None:
                raise ValueError(
                    f"{name}: expected none beside a Recording, which has its own, got {_checks.short_repr(value)}"
                )
        recordings = tuple(entries)
    elif (
        isinstance(entries, list | tuple)
        and len(entries) > 1
        and all(isinstance(entry, np.ndarray) and entry.ndim == 2 for entry in entries)
        and not Measurement(model).scans
    ):
        raise TypeError(
            "observations: expected one series, or a list of herdfilter.study.Recording, got a list of tables; make a "
            "Recording(truth, z, dt) of each, with truth=None where it is not known"
        )
    else:
        recordings = (_recording(model, observations, truth, **course),)
    return tuple(_with_truth(recording, model.dim) for recording in recordings)


def _recording(model: Any, observations: Any, truth: Any, **course: Any) -> Recording:
    steps = series.series(observations, **course)
    if not steps:
        raise ValueError("observations: expected at least one, got none")
    values: Any = [step.z for step in steps]
    sensors: Any = [step.sensor for step in steps]
    by_sensor = any(sensor is not None for sensor in sensors)
    if by_sensor or not Measurement(model).scans:
        values = _rows(values)
    controls = course.get("controls")
    return Recording(
        truth,
        values,
        np.array([step.dt for step in steps]),
        None if controls is None else _checks.as_array("controls", controls, (len(steps), None)),
        sensors if by_sensor else None,
    )


def _rows(values: Sequence[Any]) -> Any:
    """Return observations as an array (T, k); one that is missing is a row of NaN."""
    rows = [None if z is None else np.atleast_1d(_checks.with_nan(z)) for z in values]
    sizes = {len(row) for row in rows if row is not None}
    if len(sizes) > 1:
        raise ValueError(
            f"observations: expected as many entries at every step, got {sorted(sizes)}; sensors of several sizes "
            "need a scenario of your own"
        )
    size = max(sizes, default=1)
    missing = np.full(size, np.nan)
    filled = [missing if row is None else row for row in rows]
    return _checks.as_numbers("observations", filled, (len(rows), size))


def _with_truth(recording: Recording, dim: int) -> Recording:
    shape = (len(recording), dim)
    unknown = recording.truth is None
    truth = np.full(shape, np.nan) if unknown else _checks.as_array("truth", recording.truth, shape)
    return replace(recording, truth=truth)
