"""Models from those of the library `particles` (Chopin), and herded filters within its `SMC`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from herdfilter import _checks, filters
from herdfilter._checks import Array
from herdfilter.angles import wrap_angles
from herdfilter.filters.results import hold_warnings
from herdfilter.mixture import GaussianMixture
from herdfilter.models.parts import as_observation

try:
    from particles.state_space_models import Bootstrap, StateSpaceModel

    from herdfilter.adapters import _distributions as laws
except ImportError as error:
    raise ImportError(f"particles: {error}; pip install 'herdfilter[particles]'") from error

__all__ = ["HerdedFilter", "from_particles"]

N_TRIALS = 5  # number of states at which dependence on the state is tried


def from_particles(
    ssm: Any, circular: Sequence[int] = (), observation_circular: Sequence[int] = ()
) -> ParticlesModel:
    """Convert a `StateSpaceModel` of the library `particles`; its parts decide which of our filters support it.

    =============================================  ===============================================================
    ``PX`` is                                      the model has
    =============================================  ===============================================================
    Gaussian, with one covariance for all states   ``transition_mean`` and ``transition_covariance``: every filter
    another Gaussian, or has a quantile function   ``transition``: every filter that takes such noise
    anything else                                  ``sample_transition``: bootstrap, ranked and automatic, at random
    =============================================  ===============================================================

    ``Normal``, ``MvNormal``, ``VaryingCovNormal``, ``Dirac``, ``LinearD`` and ``IndepProd`` of these are Gaussian.
    The model has ``observation_mean`` and ``observation_covariance`` if each entry of ``PY`` is Gaussian, ``Logistic``,
    ``Laplace`` or ``Student``, and its mean depends on the state: in stochastic volatility a Kalman filter would learn
    nothing. The likelihood is always that of ``PY``. Trials at a few states, from a stream of their own, decide.

    Time t of the library is our step t + 1, since it observes the state at time 0. The transition to step 1 draws from
    ``PX0`` whatever the state at step 0; if ``PX0`` is not Gaussian it may be the initial distribution instead, and that
    transition leaves the state where it is. `dt` and `control` are not used.

    Parameters
    ----------
    ssm : particles.state_space_models.StateSpaceModel
    circular, observation_circular : sequence of int
        Entries of states and of observations that are angles in radians. The likelihood of an angle is that of the value
        nearest to the mean, among those a whole turn apart.

    Returns
    -------
    ParticlesModel
        It takes observations as vectors (k,): ``np.reshape(data, (len(data), -1))`` makes them of a list of theirs.

    Raises
    ------
    ImportError
        If the library is not installed.
    ValueError
        If states have named fields, or the observation depends on the state before; within a filter, if a covariance
        begins to depend on the state.

    Examples
    --------
    >>> from particles.state_space_models import StochVol
    >>> from herdfilter.adapters.particles import from_particles
    >>> model = from_particles(StochVol(mu=-1.0, rho=0.9, sigma=0.3))
    >>> print(model.transition_mean(np.array([[0.0]]), 1.0, None, 1))  # mu + rho (x - mu)
    [[-1.]]
    """
    if not isinstance(ssm, StateSpaceModel):
        raise TypeError(
            f"ssm: expected an instance of particles' StateSpaceModel, got {_checks.short_repr(ssm)}"
        )
    return ParticlesModel(ssm, circular, observation_circular)


class HerdedFilter(Bootstrap):
    """A Feynman-Kac model that makes `SMC` of the library `particles` a herded filter: ``SMC(fk=HerdedFilter(ssm, data))``.

    The library resamples before its kernel ``M`` is called. So ``time_to_resample`` keeps the weighted particles and returns
    True, ``M`` draws new ones from all of them by a proposal of ours, and ``logG`` returns their weights. The arguments
    `resampling` and `ESSrmin` of `SMC` have no effect.

    Estimates, evidence, collectors and backward sampling of the library work as usual. So do ancestors, ``SMC.A``, and
    genealogies with a proposal whose particles have ancestors, such as `RankedProposal`; of one that draws from a fit to all
    of them, as `AutomaticProposal` does at a Gaussian, they have no meaning. `qmc`, conditional SMC and particle Gibbs are
    refused. With a deterministic proposal the evidence has no randomness: particle Metropolis-Hastings takes it for the
    likelihood.

    Parameters
    ----------
    ssm : particles.state_space_models.StateSpaceModel
    data : list
        As the library takes it; NaN where an observation is missing.
    proposal : Proposal, optional
        A proposal that draws from the weighted particles as a whole; `AutomaticProposal` unless given.
    rng : numpy.random.Generator or int, optional
        For proposals that draw at random.
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
    >>> smc = particles.SMC(fk=HerdedFilter(StochVol(mu=-1.0, rho=0.9, sigma=0.3), [0.5, -0.2, 0.1]), N=50)
    >>> smc.run()
    >>> print(round(smc.logLt, 2))  # the same in every run: no random number is used
    -1.57
    """

    def __init__(
        self,
        ssm: Any = None,
        data: Any = None,
        proposal: filters.Proposal | None = None,
        rng: np.random.Generator | int | None = None,
        circular: Sequence[int] = (),
        observation_circular: Sequence[int] = (),
    ) -> None:
        self.model = from_particles(ssm, circular, observation_circular)
        super().__init__(ssm=ssm, data=data)
        self.proposal = filters.AutomaticProposal() if proposal is None else proposal
        _checks.check_part(
            "proposal", self.proposal, filters.Proposal, "a proposal such as AutomaticProposal()"
        )
        if not self.proposal.uses.weights:
            raise ValueError(
                f"proposal: expected one that draws from the weighted particles as a whole, got {self.proposal!r}, which "
                "needs resampling first; take the library's Bootstrap"
            )
        self.proposal.check(self.model)
        self.rng = _checks.as_generator(rng)
        self._filter: Any = None
        self._smc: Any = None
        # states as the library represents them, and their log-weights
        self._drawn: tuple[Array, Array] | None = None

    def M0(self, N: int) -> Array:  # noqa: N802
        """Draw the first particles."""
        self._filter = filters.ParticleFilter(self.model, N, self.proposal, rng=self.rng)
        return self.M(0, None)

    def time_to_resample(self, smc: Any) -> bool:
        """Return True: the ancestors of `M` are those of resampled particles to the library."""
        self._smc = smc
        return True

    def M(self, t: int, xp: Array | None) -> Array:  # noqa: N802
        """Draw the particles of time t from the weighted ones before, and hand their ancestors to the library."""
        pf = self._filter
        if pf is None or (t > 0 and self._smc is None):
            raise RuntimeError("M: expected to be called by particles.SMC, after time_to_resample")
        pf.predict()
        with hold_warnings(), np.errstate(divide="ignore"):
            increment = pf.update(np.ravel(self.data[t])).log_likelihood
            # The library estimates the evidence by the MEAN of the weights, hence log n.
            log_weights = np.log(pf.weights) + increment + math.log(pf.n_particles)
        if t > 0 and pf.ancestors is not None:
            self._smc.A = pf.ancestors
        x = self.model.theirs(pf.particles)
        self._drawn = x.copy(), log_weights
        return x

    def logG(self, t: int, xp: Array | None, x: Array) -> Array:  # noqa: N802
        """Return the log-weights of the particles just drawn: the logarithm of their mean estimates the evidence."""
        # the library may pass other particles, as in conditional SMC: the weights of the drawn ones would be wrong for them
        if self._drawn is None or not np.array_equal(self._drawn[0], x):
            raise ValueError(
                "logG: expected the particles that M returned, whose weights go with them, got others; qmc, conditional SMC "
                "and particle Gibbs need another Feynman-Kac model"
            )
        return self._drawn[1].copy()


class ParticlesModel:
    """A model that `from_particles` made; `herdfilter.models.contract` documents its functions."""

    def __init__(
        self, ssm: Any, circular: Sequence[int], observation_circular: Sequence[int]
    ) -> None:
        self.ssm = ssm
        self.circular = tuple(circular)
        self.observation_circular = tuple(observation_circular)
        # trial states, from streams of their own: the user's global stream is left as it is
        start = ssm.PX0()
        with drawing_from(np.random.default_rng(0)):
            first = np.asarray(start.rvs(size=N_TRIALS))
            if first.dtype.names or first.ndim > 2:
                raise ValueError(
                    f"PX0: expected states of shape (n,) or (n, d), got shape {first.shape} of {first.dtype}; take an "
                    "MvNormal or an IndepProd"
                )
            law = ssm.PX(1, first)
            self._trials = np.asarray(law.rvs(size=N_TRIALS))
        self.dim = 1 if first.ndim == 1 else first.shape[1]
        self._flat = first.ndim == 1
        self._integers = first.dtype.kind in "iu"
        self._offer_transition(start, law)
        self._offer_observation(first)

    def __repr__(self) -> str:
        return f"ParticlesModel({type(self.ssm).__name__}, dim={self.dim})"

    def _offer_transition(self, start: Any, law: Any) -> None:
        """Set the functions of the transition that its law allows, and the initial distribution."""
        gaussians = laws.as_gaussians(law, N_TRIALS)
        # The transition to step 1 usually draws from PX0 whatever the state: then any initial distribution will do.
        self._start = laws.as_gaussians(start, 1)
        first = self._start or laws.StateGaussians(np.zeros((1, self.dim)), np.eye(self.dim)[None])
        self.initial: Any = GaussianMixture([1.0], first.means, first.covariances)
        # True if that transition leaves the state, drawn from PX0, where it is
        self._stays = False
        if gaussians is not None and gaussians.shared():
            self.transition_mean = self._mean
            self.transition_covariance = self._covariance
            self._stays = self._start is None
        else:
            # of a Gaussian with one covariance, filters compute the density themselves
            self.transition_log_density = self._log_density
            if laws.has_quantiles(law):
                self.transition = self._driven
                self.noise_dim = self.dim
                self._stays = not laws.has_quantiles(start)
            else:
                self.sample_transition = self._drawn
        if self._stays:
            self.initial = laws.as_mixture_on_line(start) or InitialLaw(self, start)

    def _offer_observation(self, first: Array) -> None:
        """Set the moments of the observation if they are known and the mean depends on the state."""
        law = self.ssm.PY(1, first, self._trials)
        with drawing_from(np.random.default_rng(1)):
            z = np.asarray(laws.present_law(law).rvs(size=N_TRIALS))[:1]
        # the same states, after other ones
        after_others = self.ssm.PY(1, first[::-1], self._trials)
        if not np.array_equal(law.logpdf(z), after_others.logpdf(z), equal_nan=True):
            raise ValueError(
                "PY: expected a law of the present state x, got one that depends on the state before, xp; make that a part "
                "of the state"
            )
        at_start = laws.observation_moments(self.ssm.PY(0, None, first), N_TRIALS)
        moments = laws.observation_moments(law, N_TRIALS)
        # Kalman filters get moments only if an observation says something about the mean: not so in stochastic volatility.
        if at_start and moments and (moments.means != moments.means[0]).any():
            constant = at_start.shared() and moments.shared()
            self.observation_mean = self._observation_mean
            self.observation_covariance: Any = self._noise if constant else self._noise_at

    def theirs(self, x: Array) -> Array:
        """Return states (n, d) as the library represents them: (n,) in one dimension, integers if they are discrete."""
        x = x[:, 0] if self._flat else x
        return x.astype(np.int64) if self._integers else x

    def ours(self, x: Any) -> Array:
        """Return states of the library, (n,) or (n, d), as ours, (n, d)."""
        return np.asarray(x, dtype=np.float64).reshape(-1, self.dim)

    def log_likelihood(self, z: Array, x: Array, step: int) -> Array:
        """Log-density of an observation (k,) by ``PY``, at each state; (n, d) -> (n,)."""
        law = self._observation_law(x, step)
        values: Array = as_observation(z, law.dim)
        # the library knows no angles: the turn of z nearest to the mean is the one that it is given
        if self.observation_circular:
            mean = self._observation_mean(x, step)
            values = mean + wrap_angles(values - mean, self.observation_circular)
        return laws.law_log_density(law, values, len(x))

    def sample_observation(self, x: Array, rng: np.random.Generator, step: int) -> Array:
        """Draw an observation of each state by ``PY``, (n, d) -> (n, k)."""
        with drawing_from(rng):
            values = self._observation_law(x, step).rvs(size=len(x))
        return np.asarray(values, np.float64).reshape(len(x), -1)

    # The other functions of the contract. The constructor gives the contract's names to those that the parts allow.

    def _mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        return np.broadcast_to(self._gaussians(x, step).means, x.shape)

    def _covariance(self, dt: float, step: int) -> Array:
        return np.asarray(self._gaussians(self.ours(self._trials), step).covariances[0])

    def _gaussians(self, x: Array, step: int) -> laws.StateGaussians:
        if step == 1:
            return self._start or laws.StateGaussians(x, np.zeros((1, self.dim, self.dim)))
        gaussians = laws.as_gaussians(self._transition_law(x, step), len(x))
        if gaussians is None or not gaussians.shared():
            raise ValueError(
                f"PX: expected a Gaussian with one covariance for all states, as at t = 1, got another law at t = {step - 1}"
            )
        return gaussians

    def _driven(self, x: Array, noise: Array, dt: float, control: Any, step: int) -> Array:
        if step == 1 and self._stays:
            return x
        return laws.map_noise(self._transition_law(x, step), noise)

    def _drawn(
        self, x: Array, rng: np.random.Generator, dt: float, control: Any, step: int
    ) -> Array:
        with drawing_from(rng):
            return self.ours(self._transition_law(x, step).rvs(size=len(x)))

    def _log_density(self, x_next: Array, x: Array, dt: float, control: Any, step: int) -> Array:
        # all pairs in one call: every next state with each state before
        law = self._transition_law(np.tile(x, (len(x_next), 1)), step)
        values = law.logpdf(self.theirs(np.repeat(x_next, len(x), axis=0)))
        return np.broadcast_to(np.ravel(values), len(x_next) * len(x)).reshape(len(x_next), len(x))

    def _transition_law(self, x: Array, step: int) -> Any:
        return self.ssm.PX0() if step == 1 else self.ssm.PX(step - 1, self.theirs(x))

    def _observation_law(self, x: Array, step: int) -> Any:
        states = self.theirs(x)
        return laws.present_law(self.ssm.PY(step - 1, None if step == 1 else states, states))

    def _observation_moments(self, x: Array, step: int) -> laws.StateGaussians:
        moments = laws.observation_moments(self._observation_law(x, step), len(x))
        if moments is None:
            raise ValueError(
                f"PY: expected a law with mean and covariance, as at t = 0, got another at t = {step - 1}"
            )
        return moments

    def _observation_mean(self, x: Array, step: int) -> Array:
        return self._observation_moments(x, step).means

    def _noise(self, step: int) -> Array:
        moments = self._observation_moments(self.ours(self._trials), step)
        if not moments.shared():
            raise ValueError(
                f"PY: expected one covariance for all states, as at t = 0, got some at t = {step - 1}"
            )
        return np.asarray(moments.covariances[0])

    def _noise_at(self, step: int, x: Array) -> Array:
        covariances = self._observation_moments(x, step).covariances
        return np.broadcast_to(covariances, (len(x), *covariances.shape[1:]))


class InitialLaw:
    """The law of the first state, sampled at random; it has mean (d,) and covariance (d, d) if they are known."""

    def __init__(self, model: ParticlesModel, law: Any) -> None:
        self.model = model
        self.law = law
        moments = laws.as_gaussians(law, 1, any_kind=True)
        if moments is not None:
            self.mean = moments.means[0]
            self.covariance = moments.covariances[0]

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw `n` states, (n, d)."""
        with drawing_from(rng):
            return self.model.ours(self.law.rvs(size=n))


@contextmanager
def drawing_from(rng: np.random.Generator) -> Iterator[None]:
    """Seed NumPy's global stream, from which the library draws, by a generator, and restore it afterwards."""
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(rng.integers(2**32))  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002
