"""Simulation of a model: states with their modes, control inputs and observations."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from herdfilter import _checks
from herdfilter._checks import Array, SeedLike
from herdfilter.angles import wrap_angles
from herdfilter.models import contract, resolved
from herdfilter.models.sensors import Sensor, sensed
from herdfilter.models.series import series
from herdfilter.models.trial import check_state

MOST_DRAWS = 10_000  # of a state, until one is within the limits


def simulated_controls(model: contract.Model, steps: int) -> Array | None:
    """Return the simulated control inputs of steps 1 to `steps`, (steps, c); None for a model without ``control``."""
    if not hasattr(model, "control"):
        return None
    return _checks.as_numbers(
        "control", [model.control(step) for step in range(1, steps + 1)], (steps, None)
    )


def simulate_observations(model: contract.Model, truth: Array, rng: Generator) -> Any:
    """Draw an observation of the true state at each of steps 1 to T, (T, d) -> (T, k), or a list of T scans."""
    measurement = resolved.Measurement(model)
    observations = [measurement.sample(x[None], rng, step)[0] for step, x in enumerate(truth, 1)]
    return observations if measurement.scans else np.array(observations)


def simulate(
    model: contract.Model,
    steps: int | None = None,
    rng: SeedLike = None,
    dt: float | Sequence[float] | Array | None = None,
    initial: ArrayLike | None = None,
    modes: ArrayLike | None = None,
    controls: Sequence[Any] | Array | None = None,
    times: ArrayLike | None = None,
    start: Any = None,
    sensors: Sensor | Sequence[Sensor | None] | None = None,
) -> tuple[Array, Any]:
    """Simulate a trajectory and its observations, with all options that the `run` of a filter has.

    A model with a function ``control(step)`` moves by these inputs unless others are given; pass them to the filter, too. A
    state with limits is drawn again until it is inside, which truncates each transition. TypeError if the model lacks a
    function that simulation needs.

    Parameters
    ----------
    model : object
        A model with a transition and with ``sample_observation``, or ``observation_mean`` and ``observation_covariance``.
    steps : int, optional
        Number of steps T, at least 1; by default the length of `times`, `dt`, `sensors` or `controls`.
    rng : numpy.random.Generator or int, optional
        Source of the random draws, or a seed.
    dt, times, start, controls
        Time steps or times, the time of the initial state, and control inputs, as in `ParticleFilter.run`.
    initial : array_like, shape (d,), optional
        The initial state; by default drawn from the model's initial distribution.
    modes : array_like of int, shape (steps + 1,), optional
        Mode at each of steps 0 to `steps` of a model with modes, for example from `sample_modes`; by default drawn.
    sensors : Sensor or sequence of (Sensor or None), length T, optional
        What observes each step in place of the model's own functions (None). Several may observe at one of the `times`.

    Returns
    -------
    truth : ndarray, shape (T, d)
    observations : ndarray, shape (T, k)
        Scans are a list of arrays (k, m). With `sensors`, a list of T readings (time, sensor, z) for a filter's `run`.

    Examples
    --------
    >>> truth, z = hf.simulate(hf.models.CoordinatedTurn(), steps=20, rng=1)
    >>> truth.shape, z.shape
    ((20, 5), (20, 2))

    A robot drives with given speed and turn rate at uneven times; one sensor measures its position, and now and then another
    its heading.

    >>> robot = hf.models.LandmarkLocalisation()
    >>> position = hf.Sensor(lambda x: x[:, :2], np.eye(2))
    >>> compass = hf.Sensor(lambda x: x[:, 2], [[0.01]], circular=[0])
    >>> times, drive = [0.5, 0.5, 2.0, 2.5], [[1.0, 0.2]] * 4
    >>> sensors = [position, compass, position, position]
    >>> truth, readings = hf.simulate(robot, rng=1, times=times, controls=drive, sensors=sensors)
    >>> hf.make_filter("auto", robot, 100).run(readings, controls=drive).means.shape
    (4, 3)
    """
    if steps is None:
        # `initial` and `modes` have other lengths, and a scalar dt has none
        by_step: list[Any] = [
            values
            for values in (times, dt, sensors, controls)
            if isinstance(values, Sized) and getattr(values, "ndim", True)
        ]
        if not by_step:
            raise ValueError(
                "steps: expected a number, or times, dt, controls or sensors for each of them, got none"
            )
        steps = len(by_step[0])
    steps = _checks.check_count("steps", steps, most=_checks.MAX_STEPS)
    rng = _checks.as_generator(rng)
    if controls is None:
        controls = simulated_controls(model, steps)
    if sensors is None or times is None or dt is not None:
        course = series([None] * steps, dt, controls, times, start)
        times = [entry.time for entry in course]
    if sensors is not None:
        by_sensor = [sensors] * steps
        if not isinstance(sensors, Sensor):
            by_sensor = _checks.as_list("sensors", sensors)
        stamps = _checks.as_list("times", times)
        if not len(by_sensor) == len(stamps) == steps:
            raise ValueError(
                f"sensors, times: expected one per step, {steps}, got {len(by_sensor)} and {len(stamps)}"
            )
        # readings, of which several may have one time
        readings = list(zip(stamps, by_sensor, [None] * steps, strict=True))
        course = series(readings, None, controls, None, start, name="sensors")
    # The path of the modes is drawn first: then each step is simulated by the model of its mode.
    if modes is not None:
        contract.require(model, "simulation of given modes", contract.MODES)
        path: Any = _checks.as_numbers("modes", modes, (steps + 1,))
        count = len(model.models)
        if path.shape != (steps + 1,) or not np.isin(path, np.arange(count)).all():
            raise ValueError(
                f"modes: expected the mode, from 0 to {count - 1}, at each of steps 0 to {steps}, shape {(steps + 1,)}, "
                f"got {_checks.short_repr(modes)}"
            )
    elif contract.jumps(model):
        path = sample_modes(model, steps, rng)
    else:
        path = np.zeros(steps + 1)
    # modes that the path does not visit may lack what simulation needs
    models = {mode: contract.in_mode(model, int(mode)) for mode in np.unique(path)}
    for mode_model in models.values():
        check_state(mode_model, "simulation", *(("sample",) if initial is None else ()))
        contract.require(
            mode_model, "simulation", ("transition",), contract.ADDITIVE, ("sample_transition",)
        )
    motion = resolved.Motion(models[path[0]])
    if initial is None:
        states = _draw_inside(motion, 0, motion.sample_initial, 1, rng)
    else:
        x = _checks.as_array("initial", initial, (model.dim,))
        states = wrap_angles(x[None], contract.circular_dims(model))
        if not motion.inside(states).all():
            raise ValueError(
                f"initial: expected a state within the limits of the model, got {x.tolist()}"
            )
    truth = []
    observations = []
    step = 0
    for entry in course:
        # where no time passes, another sensor observes the same state
        step += entry.dt > 0
        mode_model = models[path[step]]
        if entry.dt > 0:
            transition = resolved.Transition(mode_model, entry.dt, entry.control, step)
            states = _draw_inside(transition.motion, step, transition.sample, states, rng)
        truth.append(states[0])
        observed = mode_model if entry.sensor is None else sensed(mode_model, entry.sensor)
        z = resolved.Measurement(observed).sample(states, rng, step)[0]
        observations.append(z if sensors is None else (entry.time, entry.sensor, z))
    # sensors and scans differ in the number of their entries, so there is no one array
    listed = sensors is not None or contract.has_scans(model)
    return np.array(truth), observations if listed else np.array(observations)


def _draw_inside(motion: resolved.Motion, step: int, draw: Any, *arguments: Any) -> Array:
    """Draw one state (1, d), again until it is within the limits of the model, if there are some."""
    for _ in range(MOST_DRAWS):
        states: Array = draw(*arguments)
        if motion.inside(states).all():
            return states
    raise ValueError(
        f"model: expected a state within the limits in {MOST_DRAWS} draws at step {step}, got none; look at feasible and "
        "bounds"
    )


def sample_modes(model: contract.Model, steps: int, rng: SeedLike) -> NDArray[np.int64]:
    """Draw the mode of a model at each of steps 0 to `steps`.

    They are indices of ``model.models``, shape (steps + 1,), drawn with a generator or a seed `rng`. TypeError if the model
    has no modes.

    Examples
    --------
    Draw the modes of a simulation beforehand:

    >>> quiet, lively = hf.models.CoordinatedTurn(turn_density=1e-6), hf.models.CoordinatedTurn(turn_density=1e-3)
    >>> model = hf.models.JumpMarkov([quiet, lively], transition_matrix=[[0.9, 0.1], [0.3, 0.7]])
    >>> modes = hf.models.sample_modes(model, steps=20, rng=0)
    >>> truth, z = hf.simulate(model, steps=20, rng=1, modes=modes)
    """
    contract.require(model, "sample_modes", contract.MODES)
    steps = _checks.check_count("steps", steps)
    rng = _checks.as_generator(rng)
    path = np.zeros(steps + 1, dtype=np.int64)
    # no random number is drawn: the simulation is that of the model alone
    if len(model.models) == 1:
        return path
    cumulative = np.cumsum(model.initial_modes)
    rows = np.cumsum(model.transition_matrix, axis=1)
    # inverse distribution functions; times the last sum, which rounding may keep below 1
    for k, u in enumerate(rng.random(steps + 1)):
        path[k] = np.searchsorted(cumulative, u * cumulative[-1], side="right")
        cumulative = rows[path[k]]
    return path
