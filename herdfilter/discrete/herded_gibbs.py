"""Herded Gibbs sampling on discrete variables (Bornn and others, ICLR 2013; Chen and others, JMLR 17, 2016)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdfilter._checks import Array, as_any, as_array, as_list, as_numbers, as_weights, check_count, check_flags, short_repr
from herdfilter.discrete.herding import TIED_SCORES

CHECKED_REVISITS = 16  # for each variable: a check that its conditional depends on nothing but its neighbours
States = NDArray[np.int64]
DiscreteConditional = Callable[[int, States], ArrayLike]
PROBABILITY_ERROR = 1e-6  # of the sum of a conditional distribution


class DictionaryFullError(RuntimeError):
    """Herded Gibbs sampling met more weight vectors than it may keep.

    Attributes
    ----------
    states : ndarray of int, shape (m, d)
        The states completed before, without the burn-in: a valid but shorter sample.
    vectors, n_bytes : int
        Weight vectors in the dictionary, and their memory.

    Examples
    --------
    >>> table = np.arange(1.0, 9.0).reshape(2, 2, 2)
    >>> try:
    ...     hf.discrete.HerdedGibbs.from_joint(table, max_vectors=3).sample(10)
    ... except hf.discrete.DictionaryFullError as error:
    ...     print(error.vectors, len(error.states))
    3 1
    """

    def __init__(self, vectors: int, n_bytes: int, states: States) -> None:
        super().__init__(
            f"max_vectors: expected at most {vectors:,} weight vectors ({n_bytes / 1e6:,.1f} MB), got one more after "
            f"{len(states):,} states (attribute `states`); pass `neighbours`, the variables each conditional depends on, "
            "or a larger `max_vectors`"
        )
        self.vectors, self.n_bytes, self.states = vectors, n_bytes, states

    def __reduce__(self) -> tuple[type, tuple[int, int, States]]:
        return type(self), (self.vectors, self.n_bytes, self.states)


@dataclass(frozen=True, eq=False)
class HerdedGibbs:
    """Deterministic Gibbs sampling on discrete variables: every conditional distribution is herded.

    There is one weight vector for each variable and configuration of its neighbours, kept in a dictionary and zero at the
    first visit. One sweep gives one state; for i = 0, ..., d - 1 in turn, with w the vector of i and its neighbours' values,

        w <- w + p(x_i = . | rest),    x_i <- argmax w,    w[x_i] <- w[x_i] - 1

    with ties to the lowest value. Keyed by all other variables, the default, the distribution of the states converges to
    the target in total variation at the rate 1/n, that of random Gibbs sampling at n^(-1/2). Keyed by the neighbours in a
    sparse graph, far fewer vectors are needed; single variables still follow their conditionals closely, but the joint
    distribution is met about as slowly as by random Gibbs sampling and a bias may stay (Yamashita and Suzuki 2019).

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

    Raises
    ------
    ValueError
        If an argument is not of the stated kind.

    Examples
    --------
    >>> table = np.array([[0.4, 0.1], [0.2, 0.3]])  # joint probabilities of two binary variables
    >>> states = hf.discrete.HerdedGibbs.from_joint(table).sample(500, burn_in=50)
    >>> print((np.histogram2d(*states.T, bins=2)[0] / 500).round(2))
    [[0.4 0.1]
     [0.2 0.3]]
    """

    conditional: DiscreteConditional
    cardinalities: Sequence[int]
    neighbours: Sequence[Sequence[int]] | None = None
    max_vectors: int = 1_000_000
    strict: bool = False
    remember: bool = True

    def __post_init__(self) -> None:
        check_flags(strict=self.strict, remember=self.remember)
        if not callable(self.conditional):
            raise ValueError(f"conditional: expected a function of (i, x), got {self.conditional!r}")
        sizes = np.atleast_1d(as_any("cardinalities", self.cardinalities))
        if sizes.ndim != 1 or sizes.size == 0 or sizes.dtype.kind not in "iu" or (sizes < 1).any():
            raise ValueError(
                f"cardinalities: expected positive integers, one per variable, got {short_repr(self.cardinalities)}"
            )
        object.__setattr__(self, "cardinalities", tuple(sizes.tolist()))
        if self.neighbours is not None:
            object.__setattr__(self, "neighbours", as_neighbours(self.neighbours, len(sizes)))
        object.__setattr__(self, "max_vectors", check_count("max_vectors", self.max_vectors))

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
        joint = as_numbers("table", table, (None, None))
        if joint.ndim == 0:
            raise ValueError(f"table: expected one axis per variable, got {table!r}")
        joint = as_weights("table", joint.ravel()).reshape(joint.shape)
        return cls(JointConditional(joint), joint.shape, **options)

    @property
    def possible_vectors(self) -> int:
        """Number of all weight vectors: configurations of the neighbours, summed over the variables."""
        return sum(prod(self.cardinalities[j] for j in around) for around in self._around())

    def sample(self, n: int, start: ArrayLike | None = None, burn_in: int = 0) -> States:
        """Run sweeps from `start` and return the states after each.

        Every call starts with an empty dictionary: equal arguments give equal states.

        Parameters
        ----------
        n : int
            Number of states.
        start : array_like of int, shape (d,), optional
            The state before the first sweep; all zeros by default.
        burn_in : int
            Sweeps before the first state that is kept.

        Returns
        -------
        ndarray of int, shape (n, d)

        Raises
        ------
        DictionaryFullError
            If `max_vectors` is hit on the way; the error holds the states so far.
        ValueError
            If `max_vectors` is certain to be hit (or could be, with `strict`); if a conditional has the wrong length,
            negative or NaN entries, or does not sum to 1; or if it depends on more than the neighbours.
        """
        n, burn_in = check_count("n", n), check_count("burn_in", burn_in, minimum=0)
        d = len(self.cardinalities)
        x = np.zeros(d, np.int64) if start is None else self._state(start)
        self._refuse_if_too_large(n + burn_in)

        key_type = np.min_scalar_type(max(self.cardinalities) - 1)
        around = [np.array(indices, dtype=np.intp) for indices in self._around()]
        dictionaries: list[dict[bytes, Array]] = [{} for _ in range(d)]
        revisits = [CHECKED_REVISITS if self.neighbours is not None else 0] * d
        vectors = 0
        compact = x.astype(key_type)
        states = np.empty((n, d), np.int64)
        for t in range(-burn_in, n):
            for i in range(d):
                key = compact[around[i]].tobytes()
                entry = dictionaries[i].get(key)  # the conditional and the weights, shape (2, k)
                if entry is None:
                    if vectors == self.max_vectors:
                        raise DictionaryFullError(vectors, _n_bytes(dictionaries), states[: max(t, 0)].copy())
                    entry = np.zeros((2, self.cardinalities[i]))
                    entry[0] = self._probabilities(i, x)
                    dictionaries[i][key] = entry
                    vectors += 1
                elif not self.remember:
                    entry[0] = self._probabilities(i, x)
                elif revisits[i]:
                    revisits[i] -= 1
                    self._check_neighbours(i, x, entry[0])
                weights = entry[1]
                weights += entry[0]
                value = int((weights > weights.max() - TIED_SCORES).argmax())
                weights[value] -= 1.0
                x[i] = compact[i] = value
            if t >= 0:
                states[t] = x
        return states

    def _around(self) -> Sequence[Sequence[int]]:
        if self.neighbours is not None:
            return self.neighbours
        d = len(self.cardinalities)
        return [[j for j in range(d) if j != i] for i in range(d)]

    def _state(self, start: ArrayLike) -> States:
        state = as_array("start", start, (len(self.cardinalities),))
        for i, (value, k) in enumerate(zip(state, self.cardinalities, strict=True)):
            if value != int(value) or not 0 <= value < k:
                raise ValueError(f"start: expected variable {i} to be an integer from 0 to {k - 1}, got {value:g}")
        return state.astype(np.int64)

    def _refuse_if_too_large(self, sweeps: int) -> None:
        """Raise an error if `max_vectors` is too small: a variable meets at most as many configurations as sweeps."""
        d = len(self.cardinalities)
        counts = [prod(self.cardinalities[j] for j in around) for around in self._around()]
        most = sum(min(count, sweeps) for count in counts)
        if d > self.max_vectors or (self.strict and most > self.max_vectors):
            raise ValueError(
                f"max_vectors: {sum(counts):.6g} weight vectors are possible, from {d:,} to {most:,} of them needed for "
                f"{sweeps:,} sweeps over {d:,} variables, and {self.max_vectors:,} may be kept; pass `neighbours`, the "
                "variables each conditional depends on, or a larger `max_vectors`"
            )

    def _probabilities(self, i: int, x: States) -> Array:
        return as_probabilities(self.conditional(i, x.copy()), self.cardinalities[i], i, x)

    def _check_neighbours(self, i: int, x: States, known: Array) -> None:
        now = self._probabilities(i, x)
        if np.abs(now - known).max() > PROBABILITY_ERROR:
            raise ValueError(
                f"neighbours: expected variable {i} to depend on its neighbours {list(self._around()[i])} only, got the "
                f"conditionals {known.tolist()} and {now.tolist()} for the same values of these, the latter at {x.tolist()}"
            )


def _n_bytes(dictionaries: list[dict[bytes, Array]]) -> int:
    """Return the memory of the dictionaries; keys and vectors of one variable are all of one size."""
    total = 0
    for vectors in dictionaries:
        total += sys.getsizeof(vectors)
        for key, entry in list(vectors.items())[:1]:
            total += len(vectors) * (sys.getsizeof(key) + sys.getsizeof(entry))
    return total


@dataclass(frozen=True, eq=False)
class JointConditional:
    """Conditional distributions of a joint table for `HerdedGibbs`; uniform if all values are impossible."""

    table: Array

    def __call__(self, i: int, x: States) -> Array:
        """Return the probabilities of the values of variable i given the others in `x`."""
        column = self.table[(*x[:i], slice(None), *x[i + 1 :])]
        total = column.sum()
        return column / total if total > 0 else np.full(len(column), 1.0 / len(column))


def as_probabilities(came: ArrayLike, values: int, i: int, x: States) -> Array:
    """Return the answer of the conditional of variable i at x as probabilities, shape (values,)."""
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
    if not abs(total - 1.0) <= PROBABILITY_ERROR:
        raise ValueError(f"{where}: expected a sum of 1, got {total:.9g} from {p.tolist()}")
    return p / total


def as_neighbours(neighbours: Sequence[Sequence[int]], d: int) -> tuple[tuple[int, ...], ...]:
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
