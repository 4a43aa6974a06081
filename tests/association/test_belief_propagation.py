"""Association by belief propagation."""

import numpy as np
import pytest
from helpers import cases
from numpy.random import default_rng
from numpy.testing import assert_allclose

from herdfilter import association
from herdfilter.association import AssociationWarning, BeliefPropagation


def test_it_is_exact_where_the_graph_has_no_circle():
    """A tree: each track after the first shares one measurement with an earlier one."""
    rng = default_rng(0)
    ratios = np.zeros((8, 11))
    ratios[:, 0] = rng.exponential(size=8)
    ratios[0, 1:4] = rng.exponential(size=3)
    for t in range(1, 8):
        ratios[t, [rng.integers(1, t + 3), t + 3]] = rng.exponential(size=2)
    exact = association.associate(ratios)
    found = association.associate(ratios, BeliefPropagation(tolerance=1e-14))
    assert_allclose(found.marginals, exact.marginals, rtol=0, atol=1e-12)
    assert found.log_evidence == pytest.approx(exact.log_evidence, abs=1e-12)


def test_messages_that_have_not_settled_are_reported():
    """In one text, so that Python shows it once for many scans."""
    told = []
    for ratios in default_rng(0).exponential(size=(2, 5, 6)):
        with pytest.warns(
            AssociationWarning, match=r"by more than the tolerance, 1e-10, after 2 iter.*take Exact"
        ) as caught:
            BeliefPropagation(max_iterations=2).marginals(ratios)
        told.append(caught[0].message)
    assert str(told[0]) == str(told[1])


@cases("tolerance", 0.3, 1e-2, 1e-6)
def test_messages_go_to_and_fro_until_none_changes_by_more_than_the_tolerance(tolerance):
    """Williams and Lau's messages and the Bethe free energy, written out one by one."""
    ratios = default_rng(2).exponential(size=(4, 6))
    missed = ratios[:, 0]
    pairs = ratios[:, 1:]
    free = np.ones(pairs.shape)
    change = 1.0
    while change > tolerance:
        wish = np.zeros(pairs.shape)
        before = free.copy()
        for t, j in np.ndindex(pairs.shape):
            wish[t, j] = pairs[t, j] / (missed[t] + np.delete(pairs[t] * free[t], j).sum())
        for t, j in np.ndindex(pairs.shape):
            free[t, j] = 1 / (1 + np.delete(wish[:, j], t).sum())
        change = np.abs(free - before).max()
    belief = np.column_stack([missed, pairs * free])
    log_evidence = np.log(belief.sum(axis=1)).sum()
    log_evidence += np.log(1 + wish.sum(axis=0)).sum() - np.log(1 + wish * free).sum()
    found = association.associate(ratios, BeliefPropagation(tolerance=tolerance))
    assert_allclose(found.marginals, belief / belief.sum(axis=1, keepdims=True), rtol=1e-12)
    assert found.log_evidence == pytest.approx(log_evidence, rel=1e-12)
