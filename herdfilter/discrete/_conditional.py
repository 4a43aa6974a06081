"""Conditional distributions of discrete variables: their types, their checks, and those of a joint table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdfilter._checks import Array, as_any, as_list, as_numbers, short_repr

States = NDArray[np.int64]
Conditional = Callable[[int, States], ArrayLike]

TOLERANCE = 1e-6  # by how much the sum of a conditional distribution may differ from 1


@dataclass(frozen=True, eq=False)
class JointConditional:
    """Conditional distributions of a joint table, as `HerdedGibbs` asks for them; uniform where all is impossible."""

    table: Array

    def __call__(self, i: int, x: States) -> Array:
        """Probabilities of the values of variable i given the others in `x`."""
        column = self.table[(*x[:i], slice(None), *x[i + 1 :])]
        total = column.sum()
        return column / total if total > 0 else np.full(len(column), 1.0 / len(column))


def checked_probabilities(came: ArrayLike, values: int, i: int, x: States) -> Array:
    """Return what the conditional of variable i gave at x as probabilities of its values, shape (values,)."""
    try:
        p = as_numbers("p", came, (values,))
    except ValueError:
        p = np.empty(0)
    where = f"conditional of variable {i} at x = {x.tolist()}"
    if p.shape != (values,):
        raise ValueError(f"{where}: expected {values} numbers, got {short_repr(came)}")
    total = p.sum()
    if not (p >= 0).all():
        raise ValueError(f"{where}: expected non-negative numbers, got {p.tolist()}")
    if not abs(total - 1.0) <= TOLERANCE:
        raise ValueError(f"{where}: expected a sum of 1, got {total:.9g} from {p.tolist()}")
    return p / total


def checked_neighbours(neighbours: Sequence[Sequence[int]], d: int) -> tuple[tuple[int, ...], ...]:
    """Return the neighbours of every variable, sorted, if they are distinct other variables."""
    neighbours = as_list("neighbours", neighbours, "a list for each variable")
    if len(neighbours) != d:
        raise ValueError(f"neighbours: expected {d} lists, one per variable, got {len(neighbours)}")
    checked = []
    for i, around in enumerate(neighbours):
        index = as_any("neighbours", around)
        if index.size == 0:
            index = index.astype(np.int64)
        allowed = index.ndim == 1 and index.dtype.kind in "iu" and not ((index < 0) | (index >= d) | (index == i)).any()
        if not allowed or len(set(index.tolist())) != len(index):
            raise ValueError(
                f"neighbours: expected distinct variables from 0 to {d - 1} other than {i} for variable {i}, "
                f"got {short_repr(around)}"
            )
        checked.append(tuple(sorted(index.tolist())))
    return tuple(checked)
