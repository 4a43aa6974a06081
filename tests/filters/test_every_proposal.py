"""Every proposal, run through what any proposal must do, by itself and outside of a filter."""

import copy
import inspect

import numpy as np
import pytest
from helpers import EYE, plane
from numpy.testing import assert_allclose, assert_array_equal

from herdfilter.filters import (
    Observation,
    Outcome,
    ParticleFilter,
    Particles,
    Proposal,
    Transition,
    Uses,
    proposals,
)
from herdfilter.models import LinearGaussian
from herdfilter.models.simulation import simulate

PLANE = plane(H=EYE, R=[[0.4, 0.1], [0.1, 0.2]])
SEEN = Observation(PLANE, np.array([0.7, -0.2]), 1)


@pytest.fixture
def particles():
    rng = np.random.default_rng(4)
    weights = rng.dirichlet(np.full(25, 0.5))
    weights[[3, 7]] = 0.0
    return Particles.weighted(rng.normal([0.5, -0.5], 1.0, (25, 2)), weights / weights.sum())


def results(proposal, particles, seed=0):
    """What each method of a proposal returns, and whether its weights must sum to 1."""
    rng = np.random.default_rng(seed)
    yield proposal.initial(PLANE, 25, rng), True
    yield proposal.propose(Transition(PLANE), particles, rng), True
    yield proposal.propose(Transition(PLANE), particles, rng, SEEN), False


def test_every_proposal_of_the_package_is_in_the_registry(registry):
    """Except three that wrap another: those of models that jump, `tests/filters/modes`, and of linear parts."""
    wrappers = {
        proposals.HistoryProposal,
        proposals.ModeProposal,
        proposals.RaoBlackwellisedProposal,
    }
    classes = {
        c for c in vars(proposals).values() if inspect.isclass(c) and not inspect.isabstract(c)
    }
    assert {type(p.make()) for p in registry.values()} == classes - {Proposal, Uses} - wrappers


def test_the_contract_is_followed_and_weights_are_normalised_where_no_observation_has_been_seen(
    promised, particles
):
    """The particles given are left as they are."""
    proposal = promised.make()
    before = copy.deepcopy((particles.x, particles.log_weights, particles.weights))
    assert isinstance(proposal, Proposal)
    assert proposal.uses.observation is promised.observes
    proposal.check(PLANE)
    for moved, normalised in results(proposal, particles):
        assert isinstance(moved, Particles)
        assert moved.x.shape == (25, 2)
        assert np.isfinite(moved.x).all()
        assert not np.isnan(moved.log_weights).any()
        assert not np.shares_memory(moved.x, particles.x)
        if normalised:
            assert np.exp(moved.log_weights).sum() == pytest.approx(1, abs=1e-12)
    for array, kept in zip(
        (particles.x, particles.log_weights, particles.weights), before, strict=True
    ):
        assert_array_equal(array, kept)


def test_particles_without_weight_may_lie_anywhere(proposal, particles):
    particles.x[[3, 7]] = 1e6
    for moved, _ in list(results(proposal, particles))[1:]:
        mean = moved.normalised()[0].weights @ moved.x
        assert np.abs(mean).max() < 10


def test_an_entry_that_is_missing_is_as_good_as_one_that_is_not_there(proposal):
    one = LinearGaussian(
        PLANE.F, [[1.0, 0.0]], PLANE.Q, [[0.4]], PLANE.initial_mean, PLANE.initial_covariance
    )
    z = simulate(PLANE, 6, 3)[1]
    z[:, 1] = np.nan
    z[4] = np.nan
    partial = ParticleFilter(PLANE, 30, copy.deepcopy(proposal), rng=2)
    whole = ParticleFilter(one, 30, proposal, rng=2)
    for reading in z:
        partial.predict()
        whole.predict()
        records = partial.update(reading), whole.update(reading[:1])
        for field in ("mean", "log_likelihood"):
            assert_allclose(*(getattr(r, field) for r in records), rtol=1e-9, atol=1e-9)
        # from the same particles again: what is herded from them may depend on their last bits
        whole._particles = partial._particles
        assert (records[0].outcome is Outcome.MISSING) is bool(np.isnan(reading).all())
