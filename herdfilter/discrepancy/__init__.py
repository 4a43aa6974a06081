"""Distances between points and a mixture, and the weights that minimise them; one measure in each file.

They raise a ValueError if dimensions or shapes do not fit together, and a TypeError if points or mixture are something else.
"""

from herdfilter.discrepancy.energy import energy_distance, expected_energy_distance
from herdfilter.discrepancy.herding_error import herding_error, normalised_l2
from herdfilter.discrepancy.quadrature import kernel_matrix, optimal_weights, simplex_weights

__all__ = [
    "energy_distance",
    "expected_energy_distance",
    "herding_error",
    "kernel_matrix",
    "normalised_l2",
    "optimal_weights",
    "simplex_weights",
]
