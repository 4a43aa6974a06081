"""Models from those of the library `particles` (Chopin), and herded filters within its `SMC`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from herdfilter._checks import Array, as_generator, short_repr
from herdfilter.filters.observation import Observation
from herdfilter.filters.particles import Particles
from herdfilter.filters.proposals import AutomaticProposal, ObservingProposal, Proposal
from herdfilter.filters.proposals.base import check_part, returned
from herdfilter.filters.results import DegenerateWeightsError
from herdfilter.filters.transition import Transition

__all__ = ["HerdedFilter", "from_particles"]

try:
    from particles.state_space_models import Bootstrap, StateSpaceModel

    from herdfilter.adapters._state_space import ParticlesModel
except ImportError as error:
    raise ImportError(f"particles: {error}; pip install 'herdfilter[particles]'") from error


def from_particles(ssm: Any, circular: Sequence[int] = (), observation_circular: Sequence[int] = ()) -> ParticlesModel:
    """Return a `StateSpaceModel` of the library `particles` as a model of ours, for any filter that its parts allow.

    =============================================  ===============================================================
    ``PX`` is                                      the model has
    =============================================  ===============================================================
    Gaussian, with one covariance for all states   ``transition_mean`` and ``transition_covariance``: every filter
    another Gaussian, or has a quantile function   ``transition``: every filter that takes such noise
    anything else                                  ``sample_transition``: bootstrap, ranked and automatic, at random
    =============================================  ===============================================================

    Gaussian are ``Normal``, ``MvNormal``, ``VaryingCovNormal``, ``Dirac``, ``LinearD`` of these, and ``IndepProd`` of them.
    ``observation_mean`` and ``observation_covariance`` are there where ``PY`` is Gaussian, or in each entry Gaussian,
    ``Logistic``, ``Laplace`` or ``Student``, unless the mean is the same for all states, as in stochastic volatility: Kalman
    filters would learn nothing from it. Of counts and others, particles are weighed by the likelihood alone. That is
    ``PY``'s own in any case. All this is found out by drawing a few states, from a stream of its own.

    Their first observation is of the state at time 0, of law ``PX0``; ours is of the state at step 1, after one transition.
    So their time t is our step t + 1, and the transition to step 1 draws from ``PX0`` whatever the state at step 0, which
    stands for nothing. Where ``PX0`` is not Gaussian it may be the initial distribution instead, and the transition to step
    1 leaves the state where it is. `dt` and `control` have no meaning and are not used.

    Parameters
    ----------
    ssm : particles.state_space_models.StateSpaceModel
    circular, observation_circular : sequence of int
        Entries of states and of observations that are angles in radians, of which the library knows nothing; the likelihood
        is then that of the value, among those a whole turn apart, that is nearest to the mean.

    Returns
    -------
    ParticlesModel
        Takes observations as vectors (k,): ``np.reshape(data, (len(data), -1))`` makes them of a list of theirs.

    Raises
    ------
    ImportError
        If the library is not installed.
    TypeError
        If `ssm` is no instance of a `StateSpaceModel`.
    ValueError
        If states have named fields, or the observation depends on the state before; within a filter, if a covariance that is
        the same for all states at the first times depends on the state at a later one.

    Examples
    --------
    >>> from particles.state_space_models import StochVol
    >>> from herdfilter.adapters.particles import from_particles
    >>> model = from_particles(StochVol(mu=-1.0, rho=0.9, sigma=0.3))
    >>> print(model.transition_mean(np.array([[0.0]]), 1.0, None, 1))  # mu + rho (x - mu)
    [[-1.]]
    """
    if not isinstance(ssm, StateSpaceModel):
        got = f"the class {ssm.__name__}" if isinstance(ssm, type) else short_repr(ssm)
        raise TypeError(f"ssm: expected an instance of particles' StateSpaceModel, got {got}")
    return ParticlesModel(ssm, circular, observation_circular)


class HerdedFilter(Bootstrap):
    """A Feynman-Kac model that makes `SMC` of the library `particles` a herded filter: ``SMC(fk=HerdedFilter(ssm, data))``.

    Herding cannot be one of the library's resampling schemes: those are given weights, and no positions. Nor can the kernel
    ``M`` do it, which moves particles that were resampled before. But ``time_to_resample``, called before both, is shown
    the weighted particles. It keeps them and says yes; ``M`` draws the new ones by a proposal of ours from the weighted set
    as a whole, and ``logG`` returns the weights that go with them. What `SMC` resampled is not used, so that its arguments
    `resampling` and `ESSrmin` have no meaning.

    Estimates, evidence, collectors and backward sampling of the library work as ever. Ancestors, ``SMC.A``, stand for
    nothing: new particles have none, so that genealogies, and the smoothers that follow them, are of no use. `qmc`,
    conditional SMC and particle Gibbs are refused. The evidence has no randomness, so that particle Metropolis-Hastings
    takes the estimate for the likelihood.

    Parameters
    ----------
    ssm : particles.state_space_models.StateSpaceModel
    data : list
        As the library takes it; NaN where an observation is missing.
    proposal : Proposal, optional
        One that draws from the weighted particles as a whole, `AutomaticProposal` unless given.
    rng : numpy.random.Generator or int, optional
        For proposals that draw at random. Filters of deterministic parts do not use it.
    circular, observation_circular : sequence of int
        As in `from_particles`.

    Raises
    ------
    TypeError, ValueError
        As in `from_particles`; if the proposal needs particles that were resampled, as `BootstrapProposal` does, for which
        the library has ``Bootstrap``.
    DegenerateWeightsError
        Within `SMC`, if all weights vanish.

    Examples
    --------
    >>> import particles
    >>> from particles.state_space_models import StochVol
    >>> from herdfilter.adapters.particles import HerdedFilter
    >>> np.random.seed(0)
    >>> states, data = StochVol().simulate(10)
    >>> smc = particles.SMC(fk=HerdedFilter(StochVol(), data), N=50)
    >>> smc.run()
    >>> same = particles.SMC(fk=HerdedFilter(StochVol(), data), N=50)
    >>> same.run()
    >>> bool(smc.logLt == same.logLt)  # no random number is left
    True
    """

    def __init__(
        self,
        ssm: Any = None,
        data: Any = None,
        proposal: Proposal | None = None,
        rng: np.random.Generator | int | None = None,
        circular: Sequence[int] = (),
        observation_circular: Sequence[int] = (),
    ) -> None:
        self.model = from_particles(ssm, circular, observation_circular)
        super().__init__(ssm=ssm, data=data)
        self.proposal = AutomaticProposal() if proposal is None else proposal
        check_part("proposal", self.proposal, Proposal, "a proposal such as AutomaticProposal()")
        if not self.proposal.absorbs_weights:
            raise ValueError(
                f"proposal: expected one that draws from the weighted particles as a whole, got {self.proposal!r}; the "
                "library's Bootstrap resamples for such"
            )
        self.proposal.check(self.model)
        self.rng = as_generator(rng)
        self._particles: Particles | None = None  # the weighted particles that are to be moved
        self._drawn: tuple[Array, Array] | None = None  # states as the library has them, and their log-weights

    def M0(self, N: int) -> Array:  # noqa: N802
        """Draw the first particles."""
        self._particles = self.proposal.initial(self.model, N, self.rng)
        return self._moved(0)

    def time_to_resample(self, smc: Any) -> bool:
        """Keep the weighted particles; always true."""
        self._particles = Particles.weighted(self.model.ours(smc.X), smc.W)
        return True

    def M(self, t: int, xp: Array) -> Array:  # noqa: N802
        """Draw the particles of time t from the weighted ones before."""
        return self._moved(t)

    def logG(self, t: int, xp: Array | None, x: Array) -> Array:  # noqa: N802
        """Return the log-weights of the particles just drawn: the logarithm of their mean estimates the evidence."""
        if self._drawn is None or not np.array_equal(self._drawn[0], x):
            raise ValueError(
                "logG: expected the particles that M returned, whose weights go with them, got others; qmc, conditional SMC "
                "and particle Gibbs need another Feynman-Kac model"
            )
        return self._drawn[1].copy()

    def _moved(self, t: int) -> Array:
        if self._particles is None:
            raise RuntimeError("M: expected to be called by particles.SMC, after time_to_resample")
        transition = Transition(self.model, step=t + 1)
        seen = Observation.read(self.model, np.ravel(self.data[t]), t + 1)
        if seen is not None and isinstance(self.proposal, ObservingProposal):
            particles = self.proposal.guide(transition, self._particles, seen, self.rng)
        else:
            particles = self.proposal.propose(transition, self._particles, self.rng)
            if seen is not None:
                particles = particles.reweighted(seen.log_likelihood(particles.x))
        particles = returned(particles, self.proposal, "guide", self._particles.x.shape)
        if particles.log_weights.max() == -np.inf:
            raise DegenerateWeightsError(t + 1, len(particles))
        level = 0.0 if seen is None else seen.level or 0.0
        x = self.model.theirs(particles.x)
        self._particles, self._drawn = None, (x.copy(), particles.log_weights + level + math.log(len(particles)))
        return x
