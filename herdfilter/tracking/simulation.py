"""Simulation of many targets: paths, and scans of detections and false alarms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter.models import contract
from herdfilter.models.resolved import Measurement, Transition
from herdfilter.models.with_clutter import WithClutter


def simulate_scans(model: Any, truth: ArrayLike, rng: np.random.Generator | int) -> list[Array]:
    """Simulate a scan (k, m) for each step: detections of the targets that exist, and false alarms, in random order.

    Parameters
    ----------
    model : WithClutter
        Detection of one target, and density and region of false alarms.
    truth : array_like, shape (T, targets, d)
        States at steps 1 to T; NaN where a target is absent.
    rng : numpy.random.Generator or int
        Source of the random draws, or a seed.

    Examples
    --------
    The target is never missed, and a scan has two false alarms on average.

    >>> walk = hf.models.ConstantVelocity(0.01, 0.5, initial_mean=[0, 1], initial_covariance=np.eye(2))
    >>> model = hf.models.WithClutter(walk, detection_probability=1.0, clutter_density=0.02, region=[[-50, 50]])
    >>> scans = hf.tracking.simulate_scans(model, np.zeros((1000, 1, 2)), rng=0)
    >>> np.allclose(np.mean([len(scan) for scan in scans]), 3, atol=0.2)
    True
    """
    _checks.check_part("model", model, WithClutter, "a herdfilter.models.WithClutter")
    states = _checks.as_array("truth", truth, (None, None, model.dim), finite=False)
    rng = _checks.as_generator(rng)
    size: Any = model.detection_size(step=1)
    scans = []
    for step, x in enumerate(states, start=1):
        # The model gets numbers for absent targets, too; what it says of them is not used.
        chances = np.broadcast_to(model.detection_probabilities(np.nan_to_num(x), step), len(x))
        detected = np.isfinite(x).all(axis=1) & (rng.random(len(x)) < chances)
        scan = model.clutter_sampler(size, rng, step)()
        if detected.any():
            detections = Measurement(model.model).sample(x[detected], rng, step)
            scan = np.concatenate([scan, detections])
        scans.append(rng.permutation(scan))
    return scans


def simulate_path(
    model: Any,
    initial: Array,
    at: int,
    steps: Sequence[int],
    rng: np.random.Generator,
    dt: float = 1.0,
    noise: bool = True,
) -> Array:
    """Simulate a target's states (len(steps), d) at consecutive steps, given its state `initial` (d,) at step `at`.

    Steps before `at` need a linear transition with additive Gaussian noise. Without `noise` the path is deterministic.
    """
    states = {at: initial}
    for step in range(at + 1, steps[-1] + 1):
        transition = Transition(model, dt, None, step)
        x = states[step - 1][None]
        states[step] = (transition.sample(x, rng) if noise else transition.mean(x))[0]
    for step in range(at, steps[0], -1):
        contract.require(model, "simulation back in time", contract.ADDITIVE)
        transition = Transition(model, dt, None, step)
        x = states[step]
        # The transition x F' + c, from its values at the origin and at the unit vectors.
        origin, *columns = transition.mean(np.vstack([np.zeros_like(x), np.eye(len(x))]))
        added = transition.factor @ rng.standard_normal(len(x)) if noise else 0.0
        earlier = np.linalg.solve((np.array(columns) - origin).T, x - added - origin)
        # Forward again: a transition that is not linear leads elsewhere.
        again = transition.mean(earlier[None])[0] + added
        if not np.allclose(again, x, rtol=1e-6, atol=1e-6 * (1 + np.abs(earlier).max())):
            raise ValueError(
                f"model: simulation back in time needs a linear transition, {type(model).__name__} has none"
            )
        states[step - 1] = earlier
    return np.array([states[step] for step in steps])
