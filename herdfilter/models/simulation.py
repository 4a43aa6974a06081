"""Simulation of a model: trajectories with their modes, control inputs and observations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdfilter._checks import Array, as_array, as_generator, as_numbers, as_positive, check_count, short_repr
from herdfilter.angles import wrap_angles
from herdfilter.models.contract import (
    ADDITIVE,
    MODES,
    Model,
    check_state,
    circular_dims,
    has_scans,
    in_mode,
    jumps,
    kind,
    require,
    sample_initial,
    sample_observation,
    sample_transition,
)


def simulated_controls(model: Model, steps: int) -> Array | None:
    """Return the control inputs of simulated transitions to steps 1 to `steps`, (steps, c); None if the model has none."""
    if not hasattr(model, "control"):
        return None
    return as_numbers("control", [model.control(step) for step in range(1, steps + 1)], (steps, None))


def simulate_observations(model: Model, truth: Array, rng: np.random.Generator) -> Any:
    """Draw the observation of a given state at each of steps 1 to T, (T, d) -> (T, k), or a list of T scans."""
    drawn = [sample_observation(model, x[None], rng, step)[0] for step, x in enumerate(truth, 1)]
    return drawn if has_scans(model) else np.array(drawn)


def simulate(
    model: Model,
    steps: int,
    rng: np.random.Generator | int,
    dt: float = 1.0,
    initial: ArrayLike | None = None,
    modes: ArrayLike | None = None,
) -> tuple[Array, Any]:
    """Simulate a trajectory and its observations at `steps` steps, `dt` apart.

    A model with a function ``control(step)`` moves with these inputs; a filter of the observations is to be told them.

    Parameters
    ----------
    model : object
        A model with a transition and with ``sample_observation``, or ``observation_mean`` and ``observation_covariance``.
    steps : int
        Number of steps, at least 1.
    rng : numpy.random.Generator or int
        Source of the random draws, or a seed.
    dt : float
        Time between two steps, in the model's unit.
    initial : array_like, shape (d,), optional
        State at step 0; drawn from the model's initial distribution unless given.
    modes : array_like of int, shape (steps + 1,), optional
        Mode at each of steps 0 to `steps` of a model that jumps between some; drawn unless given. `sample_modes` draws them,
        too: so they are known.

    Returns
    -------
    truth, observations : ndarray, shapes (steps, d) and (steps, k)
        At steps 1 to `steps`; the observations are a list of arrays (k, m) where they are scans.

    Raises
    ------
    TypeError, ValueError
        If the model lacks what simulation needs; if `steps`, `dt`, `initial` or `modes` is not as above.

    Examples
    --------
    A truth with its observations, the same for the same seed, and a filter on them:

    >>> model = hf.models.CoordinatedTurn()
    >>> truth, z = hf.simulate(model, steps=20, rng=1)
    >>> truth.shape, z.shape, np.array_equal(truth, hf.simulate(model, steps=20, rng=1)[0])
    ((20, 5), (20, 2), True)
    >>> means = hf.UnscentedKalmanFilter(model).run(z).means
    >>> bool(np.hypot(*(means - truth)[:, [0, 2]].T).mean() < 50)
    True

    From a state of one's own, in steps of half a second:

    >>> truth, z = hf.simulate(model, steps=4, rng=1, dt=0.5, initial=[1000, 300, 1000, 0, 0])
    >>> np.allclose(truth[:, 0], [1150, 1300, 1450, 1600], atol=10)
    True
    """
    steps, dt, rng = check_count("steps", steps), as_positive("dt", dt), as_generator(rng)
    moving = _moving(model, steps, rng, modes)
    for one in {id(one): one for one in moving}.values():
        check_state(one, "simulation", *(("sample",) if initial is None else ()))
        require(one, "simulation", ("transition",), ADDITIVE, ("sample_transition",))
    if initial is None:
        x = sample_initial(moving[0], 1, rng)
    else:
        x = wrap_angles(as_array("initial", initial, (model.dim,))[None], circular_dims(model))
    controls, truth, observations = simulated_controls(model, steps), [], []
    for step in range(1, steps + 1):
        control = None if controls is None else controls[step - 1]
        x = sample_transition(moving[step], x, rng, dt, control, step)
        truth.append(x[0])
        observations.append(sample_observation(moving[step], x, rng, step)[0])
    return np.array(truth), observations if has_scans(model) else np.array(observations)


def sample_modes(model: Model, steps: int, rng: np.random.Generator | int) -> NDArray[np.int64]:
    """Draw the mode at each of steps 0 to `steps` of a model that jumps between some.

    Parameters
    ----------
    model : object
        With ``models``, ``transition_matrix`` and ``initial_modes``, such as `JumpMarkov`.
    steps : int
        Number of steps after step 0.
    rng : numpy.random.Generator or int
        Source of the random draws, or a seed.

    Returns
    -------
    ndarray of int, shape (steps + 1,)
        Indices of ``model.models``.

    Raises
    ------
    TypeError, ValueError
        If the model has no modes, or `steps` is not a positive integer.

    Examples
    --------
    The modes of a simulation, drawn beforehand and so known. In the long run a fourth of the steps is lively.

    >>> quiet, lively = hf.models.CoordinatedTurn(turn_density=1e-6), hf.models.CoordinatedTurn(turn_density=1e-3)
    >>> model = hf.models.JumpMarkov([quiet, lively], transition_matrix=[[0.9, 0.1], [0.3, 0.7]])
    >>> modes = hf.models.sample_modes(model, steps=2000, rng=0)
    >>> len(modes), np.allclose(np.mean(modes), 0.25, atol=0.08)
    (2001, True)
    >>> truth, z = hf.simulate(model, steps=20, rng=1, modes=modes[:21])
    """
    require(model, "sample_modes", MODES)
    steps, rng = check_count("steps", steps), as_generator(rng)
    path = np.zeros(steps + 1, dtype=np.int64)
    if len(model.models) == 1:  # no random number: as the model alone
        return path
    below, rows = np.cumsum(model.initial_modes), np.cumsum(model.transition_matrix, axis=1)
    for k, u in enumerate(rng.random(steps + 1)):
        path[k] = np.searchsorted(below, u * below[-1], side="right")
        below = rows[path[k]]
    return path


def _moving(model: Model, steps: int, rng: np.random.Generator, modes: ArrayLike | None) -> list[Model]:
    """Return the model that holds at each of steps 0 to `steps`."""
    if not jumps(model):
        if modes is not None:
            raise ValueError(f"modes: expected None, as {kind(model)} has none, got {short_repr(modes)}")
        return [model] * (steps + 1)
    known = [in_mode(model, mode) for mode in range(len(model.models))]
    path = sample_modes(model, steps, rng) if modes is None else as_numbers("modes", modes, (steps + 1,))
    if path.shape != (steps + 1,) or not np.isin(path, np.arange(len(known))).all():
        raise ValueError(
            f"modes: expected the mode, from 0 to {len(known) - 1}, at each of steps 0 to {steps}, shape {(steps + 1,)}, "
            f"got {short_repr(modes)}"
        )
    return [known[int(mode)] for mode in path]
