"""The calls: marginals, and marginals with the evidence, by any of the methods."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from numpy.typing import ArrayLike

from herdfilter._checks import Array, one_of
from herdfilter.association._clusters import Association, ClusterMethod, check_method, solved
from herdfilter.association.belief_propagation import BeliefPropagation
from herdfilter.association.exact import Exact
from herdfilter.association.herded_gibbs import HerdedGibbs
from herdfilter.association.k_best import KBest
from herdfilter.association.random_gibbs import RandomGibbs

METHODS: dict[str, Callable[[], ClusterMethod]] = {
    "exact": Exact,
    "auto": partial(Exact, max_ways=300_000, otherwise=BeliefPropagation()),
    "belief-propagation": BeliefPropagation,
    "k-best": KBest,
    "random-gibbs": RandomGibbs,
    "herded-gibbs": HerdedGibbs,
}
"""Name -> class of the methods that may be asked for by name, with their default options."""


def marginals(ratios: ArrayLike, method: str | ClusterMethod = "exact", rng: Any = None) -> Array:
    """Marginal probabilities of which measurement belongs to which track.

    An assignment gives every track a measurement or none, and no measurement to two tracks. Its weight is the product over
    the tracks t of ``ratios[t, a]``, with a = 0 for no measurement and a = 1 + j for measurement j. Tracks that compete for
    no measurement, however indirectly, are independent: each such cluster is solved on its own.

    Parameters
    ----------
    ratios : array_like, shape (T, 1 + M)
        Weights, not negative; rows may have any scale. Column 0: the track has no measurement, be it missed or dead.
        Column 1 + j: likelihood of measurement j next to that of it being clutter; 0 outside the gate. `ratios` of this
        package makes it.
    method : str or object
        ``"exact"``, ``"auto"`` (exact where a cluster takes no more than a fraction of a second, else belief propagation),
        ``"belief-propagation"``, ``"k-best"``, ``"random-gibbs"``, ``"herded-gibbs"``, or an instance of one of the classes
        with options, such as ``HerdedGibbs(sweeps=1000)``.
    rng : numpy.random.Generator, int or None
        For the methods that draw.

    Returns
    -------
    ndarray, shape (T, 1 + M)
        Rows sum to 1.

    Raises
    ------
    ValueError
        If `ratios` has the wrong shape, an entry that is negative or not finite, or a row of zeros; if no assignment has a
        positive weight; if the method is not known, or is exact and a cluster is too large for it.

    Examples
    --------
    >>> p = hf.association.marginals([[0.1, 2.0, 0.0], [0.1, 1.0, 2.0]])
    >>> print(p.round(3))  # a row for each track; the first column: no measurement
    [[0.069 0.931 0.   ]
     [0.047 0.022 0.931]]
    >>> print(p.sum(axis=1))
    [1. 1.]
    """
    return associate(ratios, method, rng).marginals


def associate(ratios: ArrayLike, method: str | ClusterMethod = "exact", rng: Any = None) -> Association:
    """Marginals as `marginals` gives them, together with the log of the total weight of all assignments.

    Returns
    -------
    Association
        With attributes `marginals`, shape (T, 1 + M), and `log_evidence`, NaN where the method has none.

    Examples
    --------
    >>> found = hf.association.associate([[0.1, 2.0]])  # one track, one detection
    >>> print(found.marginals.round(3), round(found.log_evidence, 3))  # log(0.1 + 2.0)
    [[0.048 0.952]] 0.742
    """
    return solved(as_method("method", method), ratios, rng)


def as_method(name: str, method: Any) -> ClusterMethod:
    """Return the method of that name, or the method itself."""
    if isinstance(method, str):
        return METHODS[one_of(name, method, METHODS)]()
    check_method(name, method, METHODS)
    return cast(ClusterMethod, method)
