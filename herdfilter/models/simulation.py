"""Simulation of a model: states with their modes, control inputs and observations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdfilter._checks import Array, as_array, as_generator, as_numbers, as_positive, check_count, short_repr
from herdfilter.angles import wrap_angles
from herdfilter.models import contract


def simulated_controls(model: contract.Model, steps: int) -> Array | None:
    """Return the simulated control inputs of steps 1 to `steps`, (steps, c); None for a model without ``control``."""
    if not hasattr(model, "control"):
        return None
    return as_numbers("control", [model.control(step) for step in range(1, steps + 1)], (steps, None))


def simulate_observations(model: contract.Model, truth: Array, rng: np.random.Generator) -> Any:
    """Draw the observation of a given state at each of steps 1 to T, (T, d) -> (T, k), or a list of T scans."""
    drawn = [contract.sample_observation(model, x[None], rng, step)[0] for step, x in enumerate(truth, 1)]
    return drawn if contract.has_scans(model) else np.array(drawn)


def simulate(
    model: contract.Model,
    steps: int,
    rng: np.random.Generator | int,
    dt: float = 1.0,
    initial: ArrayLike | None = None,
    modes: ArrayLike | None = None,
) -> tuple[Array, Any]:
    """Simulate a trajectory and its observations at `steps` steps, `dt` apart.

    A model with a function ``control(step)`` moves with these inputs; give them to the filter, too. TypeError if the model
    lacks a function that simulation needs.

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
        State at step 0; by default drawn from the model's initial distribution.
    modes : array_like of int, shape (steps + 1,), optional
        Mode at each of steps 0 to `steps` of a model with modes, for example from `sample_modes`; by default drawn.

    Returns
    -------
    truth, observations : ndarray, shapes (steps, d) and (steps, k)
        At steps 1 to `steps`; scans are a list of arrays (k, m).

    Examples
    --------
    >>> truth, z = hf.simulate(hf.models.CoordinatedTurn(), steps=20, rng=1)
    >>> truth.shape, z.shape
    ((20, 5), (20, 2))
    """
    steps, dt, rng = check_count("steps", steps), as_positive("dt", dt), as_generator(rng)
    if contract.jumps(model):
        known = [contract.in_mode(model, mode) for mode in range(len(model.models))]
        path = sample_modes(model, steps, rng) if modes is None else as_numbers("modes", modes, (steps + 1,))
        if path.shape != (steps + 1,) or not np.isin(path, np.arange(len(known))).all():
            raise ValueError(
                f"modes: expected the mode, from 0 to {len(known) - 1}, at each of steps 0 to {steps}, shape "
                f"{(steps + 1,)}, got {short_repr(modes)}"
            )
        by_step = [known[int(mode)] for mode in path]
    elif modes is None:
        by_step = [model] * (steps + 1)
    else:
        raise ValueError(f"modes: expected None, as {contract.kind(model)} has none, got {short_repr(modes)}")
    for one in {id(one): one for one in by_step}.values():
        contract.check_state(one, "simulation", *(("sample",) if initial is None else ()))
        contract.require(one, "simulation", ("transition",), contract.ADDITIVE, ("sample_transition",))
    if initial is None:
        x = contract.sample_initial(by_step[0], 1, rng)
    else:
        x = wrap_angles(as_array("initial", initial, (model.dim,))[None], contract.circular_dims(model))
    controls, truth, observations = simulated_controls(model, steps), [], []
    for step in range(1, steps + 1):
        control = None if controls is None else controls[step - 1]
        x = contract.sample_transition(by_step[step], x, rng, dt, control, step)
        truth.append(x[0])
        observations.append(contract.sample_observation(by_step[step], x, rng, step)[0])
    return np.array(truth), observations if contract.has_scans(model) else np.array(observations)


def sample_modes(model: contract.Model, steps: int, rng: np.random.Generator | int) -> NDArray[np.int64]:
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
    steps, rng = check_count("steps", steps), as_generator(rng)
    path = np.zeros(steps + 1, dtype=np.int64)
    if len(model.models) == 1:  # draws no random number, like the model alone
        return path
    below, rows = np.cumsum(model.initial_modes), np.cumsum(model.transition_matrix, axis=1)
    for k, u in enumerate(rng.random(steps + 1)):
        path[k] = np.searchsorted(below, u * below[-1], side="right")
        below = rows[path[k]]
    return path
