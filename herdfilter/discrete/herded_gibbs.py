"""Herded Gibbs sampling on discrete variables (Bornn and others, ICLR 2013; Chen and others, JMLR 17, 2016)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter.discrete.herding import TIED_SCORES

# For each variable: checks that its conditional depends on nothing but its neighbours.
CHECKED_REVISITS = 16
PROBABILITY_ERROR = 1e-6  # of the sum of a conditional distribution
States = NDArray[np.int64]


class DictionaryFullError(RuntimeError):
    """Herded Gibbs sampling met more weight vectors than it may keep.

    Attributes
    ----------
    states : ndarray of int, shape (m, d)
        The states completed before, without the burn-in: a valid but shorter sample.
    vectors : int
        Weight vectors in the dictionary.

    Examples
    --------
    >>> table = np.arange(1.0, 9.0).reshape(2, 2, 2)
    >>> try:
    ...     hf.discrete.HerdedGibbs.from_joint(table, max_vectors=3).sample(10)
    ... except hf.discrete.DictionaryFullError as error:
    ...     print(error.vectors, len(error.states))
    3 1
    """

    def __init__(self, vectors: int, states: States) -> None:
        super().__init__(
            f"max_vectors: expected at most {vectors:,} weight vectors, got one more after "
            f"{len(states):,} states (attribute `states`); pass `neighbours`, the variables each conditional depends on, "
            "or a larger `max_vectors`"
        )
        self.vectors = vectors
        self.states = states

    def __reduce__(self) -> tuple[type, tuple[int, States]]:
        return type(self), (self.vectors, self.states)


@dataclass(frozen=True, eq=False)
class HerdedGibbs:
    r"""Deterministic Gibbs sampling on discrete variables: every conditional distribution is herded.

    There is one weight vector for each variable and configuration of its neighbours, kept in a dictionary and zero at the
    first visit. One sweep gives one state; for i = 0, ..., d - 1 in turn, with w the vector of i and its neighbours' values,

    .. math:: w \leftarrow w + p(x_i = \cdot \mid x_{-i}) , \qquad x_i \leftarrow \arg\max_v w_v , \qquad
        w_{x_i} \leftarrow w_{x_i} - 1

    with ties to the lowest value. Keyed by all other variables, the default, the distribution of the states converges to
    the target in total variation at the rate 1/n, that of random Gibbs sampling at :math:`n^{-1/2}`. Keyed by the
    neighbours in a sparse graph, far fewer vectors are needed; single variables still follow their conditionals closely,
    but the joint distribution is met about as slowly as by random Gibbs sampling and a bias may stay (Yamashita and Suzuki
    2019).

    Parameters
    ----------
    conditional : callable
        ``conditional(i, x)`` gives the probabilities, shape (cardinalities[i],), of the values of variable i given the
        others in the state `x`, shape (d,) of int; it ignores entry i.
    cardinalities : sequence of int, shape (d,)
        Number of values of each variable; they are counted from 0.
    neighbours : sequence of d sequences of int, optional
        For each variable the others that its conditional depends on (its Markov blanket); by default all.
    max_vectors : int
        The largest number of weight vectors to keep. One takes a few hundred bytes.
    strict : bool
        Refuse before the start if the bound could be hit; by default only if it is certain to be.
    remember : bool
        Keep conditionals beside their weights, so that `conditional` is called once for each configuration of the
        neighbours, and a few times more to check that it depends on nothing else. Otherwise it is called at every
        update; then `neighbours` may leave out some of the variables it depends on, as an approximation.

    Examples
    --------
    >>> table = np.array([[0.4, 0.1], [0.2, 0.3]])  # joint probabilities of two binary variables
    >>> states = hf.discrete.HerdedGibbs.from_joint(table).sample(500, burn_in=50)
    >>> print((np.histogram2d(*states.T, bins=2)[0] / 500).round(2))
    [[0.4 0.1]
     [0.2 0.3]]
    """

    conditional: Callable[[int, States], ArrayLike]
    cardinalities: Sequence[int]
    neighbours: Sequence[Sequence[int]] | None = None
    max_vectors: int = 1_000_000
    strict: bool = False
    remember: bool = True

    def __post_init__(self) -> None:
        _checks.check_flags(strict=self.strict, remember=self.remember)
        if not callable(self.conditional):
            raise ValueError(
                f"conditional: expected a function of (i, x), got {_checks.short_repr(self.conditional)}"
            )
        sizes = _checks.as_list(
            "cardinalities", self.cardinalities, "a list with the size of each variable"
        )
        sizes = [_checks.check_count("cardinalities", size) for size in sizes]
        if not sizes:
            raise ValueError("cardinalities: expected at least one variable, got none")
        object.__setattr__(self, "cardinalities", tuple(sizes))
        if self.neighbours is not None:
            object.__setattr__(self, "neighbours", as_neighbours(self.neighbours, len(sizes)))
        _checks.check_fields(self, max_vectors=_checks.check_count)

    @classmethod
    def from_joint(cls, table: ArrayLike, **options: Any) -> HerdedGibbs:
        """Build the sampler of a joint table, for small problems.

        Parameters
        ----------
        table : array_like, shape cardinalities
            Non-negative weights of all states; normalised to sum to 1. A conditional is uniform if the others have a
            configuration of probability 0.
        **options
            `neighbours`, `max_vectors`, `strict` and `remember` as above.
        """
        joint = np.atleast_1d(_checks.as_numbers("table", table, (None, None)))
        joint = _checks.as_weights("table", joint.ravel()).reshape(joint.shape)
        return cls(partial(joint_conditional, joint), joint.shape, **options)

    @property
    def possible_vectors(self) -> int:
        """Number of all weight vectors: configurations of the neighbours, summed over the variables."""
        return sum(self._possible_counts())

    def _possible_counts(self) -> list[int]:
        return [prod(self.cardinalities[j] for j in indices) for indices in self._around()]

    def sample(self, n: int, start: ArrayLike | None = None, burn_in: int = 0) -> States:
        """Run sweeps from `start` and return the states after each, integers (n, d).

        Every call starts with an empty dictionary: equal arguments give equal states.

        Parameters
        ----------
        n : int
            Number of states.
        start : array_like of int, shape (d,), optional
            The state before the first sweep; all zeros by default.
        burn_in : int
            Sweeps before the first state that is kept.

        Raises
        ------
        DictionaryFullError
            If `max_vectors` is hit on the way; the error holds the states so far.
        ValueError
            If `max_vectors` is certain to be hit (or could be, with `strict`), or a conditional is not as documented.
        """
        n = _checks.check_count("n", n)
        burn_in = _checks.check_count("burn_in", burn_in, minimum=0)
        d = len(self.cardinalities)
        first = _checks.as_array("start", np.zeros(d) if start is None else start, (d,))
        x = first.astype(np.int64)
        for i in np.flatnonzero((first != x) | (x < 0) | (x >= self.cardinalities)).tolist():
            raise ValueError(
                f"start: expected variable {i} to be an integer from 0 to {self.cardinalities[i] - 1}, got {first[i]}"
            )
        # A variable meets at most as many configurations as there are sweeps.
        sweeps = n + burn_in
        largest = sum(min(count, sweeps) for count in self._possible_counts())
        if d > self.max_vectors or (self.strict and largest > self.max_vectors):
            raise ValueError(
                f"max_vectors: expected room for the weight vectors of {sweeps:,} sweeps, at least {d:,} and up to "
                f"{largest:,} of {self.possible_vectors:.6g} that are possible, got {self.max_vectors:,}; pass "
                "`neighbours`, the variables each conditional depends on, or a larger `max_vectors`"
            )

        key_type = np.min_scalar_type(max(self.cardinalities) - 1)
        around = [np.array(indices, dtype=np.intp) for indices in self._around()]
        # Variable and values of its neighbours -> the conditional and the weights, shape (2, k).
        vectors: dict[tuple[int, bytes], Array] = {}
        revisits = [CHECKED_REVISITS if self.neighbours is not None else 0] * d
        states = np.empty((n, d), np.int64)
        for t in range(-burn_in, n):
            for i in range(d):
                key = (i, x[around[i]].astype(key_type).tobytes())
                vector = vectors.get(key)
                if vector is None:
                    if len(vectors) == self.max_vectors:
                        raise DictionaryFullError(len(vectors), states[: max(t, 0)].copy())
                    vector = np.zeros((2, self.cardinalities[i]))
                    vector[0] = self._probabilities(i, x)
                    vectors[key] = vector
                elif not self.remember:
                    vector[0] = self._probabilities(i, x)
                elif revisits[i]:
                    # A conditional that changes between visits of one key depends on more than the neighbours.
                    revisits[i] -= 1
                    p = self._probabilities(i, x)
                    if np.abs(p - vector[0]).max() > PROBABILITY_ERROR:
                        raise ValueError(
                            f"neighbours: expected variable {i} to depend on its neighbours {around[i].tolist()} only, got "
                            f"the conditionals {vector[0].tolist()} and {p.tolist()} for the same values of these, the "
                            f"latter at {x.tolist()}"
                        )
                weights = vector[1]
                weights += vector[0]
                x[i] = (weights > weights.max() - TIED_SCORES).argmax()
                weights[x[i]] -= 1.0
            if t >= 0:
                states[t] = x
        return states

    def _around(self) -> Sequence[Sequence[int]]:
        """Return the variables whose values select a weight vector, for each variable."""
        if self.neighbours is not None:
            return self.neighbours
        d = len(self.cardinalities)
        return [[j for j in range(d) if j != i] for i in range(d)]

    def _probabilities(self, i: int, x: States) -> Array:
        """Return the checked conditional of variable i at x, shape (cardinalities[i],)."""
        values = self.conditional(i, x.copy())
        with suppress(ValueError):
            p = _checks.as_array("p", values, (self.cardinalities[i],))
            if (p >= 0).all() and abs(p.sum() - 1.0) <= PROBABILITY_ERROR:
                return np.asarray(p / p.sum())
        raise ValueError(
            f"conditional of variable {i} at x = {x.tolist()}: expected {self.cardinalities[i]} non-negative numbers with a "
            f"sum of 1, got {_checks.short_repr(values)}"
        )


def joint_conditional(table: Array, i: int, x: States) -> Array:
    """Return the distribution of variable i given the others in `x`, by a joint table; uniform if all are impossible."""
    column = table[(*x[:i], slice(None), *x[i + 1 :])]
    total = column.sum()
    return column / total if total > 0 else np.full(len(column), 1.0 / len(column))


def as_neighbours(neighbours: Sequence[Sequence[int]], d: int) -> tuple[tuple[int, ...], ...]:
    """Return the neighbours of every variable, sorted, if they are distinct other variables."""
    neighbours = _checks.as_list("neighbours", neighbours, "a list for each variable")
    if len(neighbours) != d:
        raise ValueError(f"neighbours: expected {d} lists, one per variable, got {len(neighbours)}")
    checked = []
    for i, variables in enumerate(neighbours):
        indices = sorted(_checks.as_dims("neighbours", variables, d))
        if i in indices or len({*indices}) < len(indices):
            raise ValueError(
                f"neighbours: expected distinct variables from 0 to {d - 1} other than {i} for variable {i}, "
                f"got {_checks.short_repr(variables)}"
            )
        checked.append(tuple(indices))
    return tuple(checked)
