"""Models refuse bad parameters: each argument is named, with what was expected and what came."""

import numpy as np
from helpers import refuses

from herdfilter.models import (
    UNGM,
    BallisticReentry,
    BearingsOnly,
    BearingsTracking,
    CirclingRange,
    ConstantVelocity,
    CoordinatedTurn,
    DoubleWell,
    LandmarkLocalisation,
    LinearGaussian,
    Lorenz63,
    Lorenz96,
    RadarTracking,
    RangeOnly,
    RangeTracking,
    StochasticVolatility,
    UniformBox,
    linear_chain,
)

NEEDED = {
    LinearGaussian: dict(zip(("F", "H", "Q", "R", "initial_covariance"), np.eye(2)[None].repeat(5, 0), strict=True))
    | {"initial_mean": [0.0, 1.0]},
    ConstantVelocity: {
        "spectral_density": 1.0,
        "position_sd": 1.0,
        "initial_mean": np.zeros(4),
        "initial_covariance": np.eye(4),
    },
    RangeOnly: {"beacons": [[0.0, 0.0], [30.0, 0.0], [0.0, 40.0]]},
    UniformBox: {"lower": [0.0, 0.0], "upper": [1.0, 1.0]},
}
"""Arguments without a default, which the cases below change."""

test_bad_parameters_are_named = refuses(
    lambda make, given: make(**NEEDED.get(make, {}) | given),
    (BearingsTracking, {"sensors": [[0, 0]]}, "sensors: expected at least 2 positions, got 1"),
    (BearingsTracking, {"spectral_density": -1.0}, "spectral_density: expected a positive"),
    (BearingsOnly, {"acceleration_sd": 0}, "acceleration_sd: expected a positive"),
    (BearingsOnly, {"initial_covariance": -np.eye(4)}, "initial_covariance: expected positive semi-definite"),
    (CirclingRange, {"damping": 1.0}, "damping: expected a number between 0 and 1, got 1.0"),
    (CirclingRange, {"sensor": [1.0]}, r"sensor: expected shape \(2,\)"),
    (ConstantVelocity, {"initial_mean": [1.0, 2.0, 3.0]}, "initial_mean: expected positions and as many velocities, got 3"),
    (CoordinatedTurn, {"range_sd": np.nan}, "range_sd: expected a positive"),
    (DoubleWell, {"observed_every": 0}, "observed_every: expected an integer of at least 1, got 0"),
    (LandmarkLocalisation, {"landmarks": np.empty((0, 2))}, "landmarks: expected at least one position, got none"),
    (LandmarkLocalisation, {"reverse_every": 0}, "reverse_every: expected an integer of at least 1, got 0"),
    (LinearGaussian, {"H": [[1.0]]}, r"H: expected shape \(\*, 2\), got \(1, 1\)"),
    (LinearGaussian, {"Q": [[1.0, 0.5], [0.0, 1.0]]}, "Q: expected symmetric"),
    (LinearGaussian, {"R": [[1.0, 1.0], [1.0, 1.0]]}, r"R: expected a positive definite \(2, 2\) matrix"),
    (Lorenz63, {"integration_step": np.nan}, "integration_step: expected a positive"),
    (Lorenz96, {"observed_every": 11}, "observed_every: expected at most dim = 10, got 11"),
    (Lorenz96, {"initial_mean": [1.0]}, r"initial_mean: expected shape \(10,\), got \(1,\)"),
    (RadarTracking, {"radar": [1.0, 2.0]}, r"radar: expected shape \(3,\), got \(2,\)"),
    (RangeOnly, {"beacons": np.empty((0, 2))}, "beacons: expected at least one position, got none"),
    (RangeOnly, {"position_noise": -0.1}, "position_noise: expected a positive"),
    (RangeTracking, {"sensors": np.empty((0, 2))}, "sensors: expected at least 1 positions, got 0"),
    (BallisticReentry, {"drag": -0.59783}, "drag: expected a positive"),
    (StochasticVolatility, {"rho": 1.0}, "rho: expected a number above -1 and below 1, got 1.0"),
    (linear_chain, {"coupling": 1.0}, "coupling: expected"),
    (UniformBox, {"lower": [0.0, 1.0]}, "upper: expected more than lower"),
    (UNGM, {"initial_variance": np.inf}, "initial_variance: expected a positive finite"),
)

X = np.zeros((1, 3))

test_bad_calls_are_named = refuses(
    lambda make, call: call(make(**NEEDED.get(make, {}))),
    (RangeOnly, lambda m: m.transition_mean(X, 1.0, [1.0, 2.0], 1), r"control: expected shape \(3,\), got \(2,\)"),
    (LandmarkLocalisation, lambda m: m.transition_mean(X, 1.0, [1, 2, 3], 1), r"control: expected shape \(2,\), got \(3,\)"),
    (RangeOnly, lambda m: m.log_likelihood([-1, 10.0], X, 1), "z: expected a beacon index from 0 to 2, got -1"),
    (UniformBox, lambda box: box.sample(0, 1), "n: expected an integer of at least 1, got 0"),
)
