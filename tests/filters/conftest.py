"""Every proposal with what it promises, and the smallest models that serve them."""

from collections.abc import Callable
from dataclasses import dataclass

import helpers
import numpy as np
import pytest

from herdfilter.filters import (
    AugmentedProposal,
    AutomaticProposal,
    AuxiliaryProposal,
    BootstrapProposal,
    FlowProposal,
    GuidedAugmentedProposal,
    GuidedProposal,
    HerdedProposal,
    KalmanMixtureProposal,
    Proposal,
    RankedProposal,
    SequentialQuasiMonteCarlo,
)
from herdfilter.fitting import EMFit, GaussianFit, KernelDensityFit
from herdfilter.samplers import (
    ContinuousHerdedGibbs,
    KernelHerding,
    MappedSampling,
    RandomSampling,
    lcd,
)


@pytest.fixture(autouse=True)
def few_starts(monkeypatch):
    """Optimal Gaussian points from few starts of their search: what the best of many gains matters to no filter here."""
    monkeypatch.setattr(lcd, "POINTS_OF_ALL_STARTS", 20)


@dataclass(frozen=True)
class Promised:
    """Makes a fresh proposal; the shared suites hold it to what it promises."""

    make: Callable[[], Proposal]
    # results do not depend on the seed, and the generator is left alone
    deterministic: bool = False
    observes: bool = False  # it looks at the observation before it moves the particles
    # it takes transition noise of deficient rank; else it refuses that by name
    singular: bool = True
    keeps_modes: bool = True  # modes far apart stay apart; a fit of one Gaussian blurs them
    # it needs transition noise that is additive; else it takes other noise, too
    additive: bool = True
    moments: bool = False  # it needs a mean and a covariance of the observation
    turns: bool = True  # where zero lies on a circle does not matter; else rounding decides near-ties of a greedy search
    spread: float = 0.2  # largest relative error of a variance over two steps of skewed noise in 3 dimensions, 600 points


def mapped():
    return MappedSampling(KernelHerding())


PROPOSALS = {
    "bootstrap": Promised(BootstrapProposal, additive=False),
    "herded, random": Promised(lambda: HerdedProposal(RandomSampling())),
    "herded, kernel herding": Promised(lambda: HerdedProposal(KernelHerding()), deterministic=True),
    "herded, herded Gibbs": Promised(
        lambda: HerdedProposal(ContinuousHerdedGibbs()), deterministic=True
    ),
    "augmented, random": Promised(
        lambda: AugmentedProposal(GaussianFit(), RandomSampling()),
        keeps_modes=False,
        additive=False,
    ),
    "augmented, mapped": Promised(
        lambda: AugmentedProposal(GaussianFit(), mapped()),
        deterministic=True,
        keeps_modes=False,
        additive=False,
    ),
    "augmented, kernel herding": Promised(
        lambda: AugmentedProposal(KernelDensityFit(), KernelHerding()),
        deterministic=True,
        keeps_modes=False,
        additive=False,
        turns=False,
        spread=0.25,
    ),
    "quasi-Monte Carlo": Promised(SequentialQuasiMonteCarlo, additive=False),
    "quasi-Monte Carlo, guided": Promised(
        lambda: SequentialQuasiMonteCarlo(guided=True), observes=True, additive=False
    ),
    "auxiliary": Promised(AuxiliaryProposal, observes=True, additive=False),
    "guided": Promised(GuidedProposal, observes=True, moments=True, singular=False),
    "flow": Promised(FlowProposal, observes=True, moments=True),
    "flow, one for all": Promised(lambda: FlowProposal(local=False), observes=True, moments=True),
    "guided augmented, random": Promised(
        lambda: GuidedAugmentedProposal(GaussianFit(), RandomSampling()),
        observes=True,
        moments=True,
        keeps_modes=False,
        additive=False,
    ),
    "guided augmented, mapped": Promised(
        lambda: GuidedAugmentedProposal(EMFit(3), mapped()),
        deterministic=True,
        observes=True,
        moments=True,
        keeps_modes=False,
        additive=False,
    ),
    "Kalman mixture, random": Promised(
        lambda: KalmanMixtureProposal(RandomSampling()), observes=True, moments=True, singular=False
    ),
    "Kalman mixture, kernel herding": Promised(
        lambda: KalmanMixtureProposal(KernelHerding()),
        deterministic=True,
        observes=True,
        moments=True,
        singular=False,
    ),
    "ranked": Promised(RankedProposal, deterministic=True, observes=True, additive=False),
    "ranked, random": Promised(
        lambda: RankedProposal(RandomSampling()), observes=True, additive=False
    ),
    "ranked, randomised": Promised(
        lambda: RankedProposal(randomised=True), observes=True, additive=False
    ),
    "automatic": Promised(AutomaticProposal, deterministic=True, observes=True, additive=False),
}


def chosen(promise, make=True):
    """A fixture: fresh proposals that promise something, or else their promises."""
    kept = {name: promised for name, promised in PROPOSALS.items() if promise(promised)}
    return pytest.fixture(
        lambda request: request.param.make() if make else request.param,
        params=kept.values(),
        ids=kept,
    )


promised = chosen(lambda p: True, make=False)
of_any_rank = chosen(lambda p: p.singular, make=False)
of_any_noise = chosen(lambda p: not p.additive, make=False)
deterministic = chosen(lambda p: p.deterministic)
blind = chosen(lambda p: not p.observes)
observing = chosen(lambda p: p.observes)
of_full_rank = chosen(lambda p: not p.singular)
of_additive_noise = chosen(lambda p: p.additive)
of_moments = chosen(lambda p: p.moments)
turning = chosen(lambda p: p.turns)


@pytest.fixture
def proposal(promised):
    return promised.make()


TYPICAL = [
    "bootstrap",
    "herded, kernel herding",
    "augmented, mapped",
    "auxiliary",
    "guided",
    "ranked, randomised",
]
typical = pytest.fixture(lambda request: PROPOSALS[request.param], params=[*TYPICAL, "automatic"])
"""Proposals of every kind, for what the filter promises whatever its proposal is."""


class Walk(helpers.Walk):
    """A random walk with controls and time steps, written to the contract of models, without any base class of theirs."""

    def transition_mean(self, x, dt, control, step):
        return x + (0.0 if control is None else control[0] * dt)

    def transition_covariance(self, dt, step):
        return np.array([[0.5 * dt]])

    def log_likelihood(self, z, x, step):
        return -0.5 * (z[0] - x[:, 0]) ** 2 - 0.5 * np.log(2 * np.pi)


registry = pytest.fixture(lambda: PROPOSALS)
walk = pytest.fixture(lambda: Walk())
walk_class = pytest.fixture(lambda: Walk)  # to derive models from that lack or change something
