"""Models refuse bad parameters: each argument is named, with what was expected and what came."""

import numpy as np
from helpers import EYE, refuses

from herdfilter.models import (
    UNGM,
    BearingsOnly,
    BearingsTracking,
    CirclingRange,
    ConstantVelocity,
    DoubleWell,
    LandmarkLocalisation,
    Lorenz96,
    RangeOnly,
    UniformBox,
    linear_chain,
)

test_bad_parameters_are_named = refuses(
    lambda make, given: make(**given),
    (BearingsTracking, {"sensors": [[0, 0]]}, "sensors: expected at least 2 positions, got 1"),
    (
        BearingsOnly,
        {"initial_covariance": -np.eye(4)},
        "initial_covariance: expected positive semi-definite",
    ),
    (CirclingRange, {"damping": 1.0}, "damping: expected a number between 0 and 1, got 1.0"),
    (
        ConstantVelocity,
        {
            "spectral_density": 1.0,
            "position_sd": 1.0,
            "initial_mean": [1.0, 2.0, 3.0],
            "initial_covariance": np.eye(3),
        },
        "initial_mean: expected positions and as many velocities, got 3",
    ),
    (DoubleWell, {"observed_every": 0}, "observed_every: expected an integer of at least 1, got 0"),
    (Lorenz96, {"observed_every": 11}, "observed_every: expected at most dim = 10, got 11"),
    (Lorenz96, {"initial_mean": [1.0]}, r"initial_mean: expected shape \(10,\), got \(1,\)"),
    (RangeOnly, {"beacons": np.empty((0, 2))}, "beacons: expected at least one entry, got none"),
    (linear_chain, {"dim": 2, "coupling": 1.0}, "coupling: expected"),
    (UniformBox, {"lower": [0.0, 1.0], "upper": [1.0, 1.0]}, "upper: expected more than lower"),
    (UNGM, {"initial_variance": np.inf}, "initial_variance: expected a positive finite"),
)

X = np.zeros((1, 3))
BEACONS = RangeOnly(EYE)

test_bad_calls_are_named = refuses(
    lambda call: call(),
    (
        lambda: LandmarkLocalisation().transition_mean(X, 1.0, [1, 2, 3], 1),
        r"control: expected shape \(2,\), got \(3,\)",
    ),
    (
        lambda: BEACONS.log_likelihood([-1, 10.0], X, 1),
        "z: expected a beacon index from 0 to 1, got -1",
    ),
)
