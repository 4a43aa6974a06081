"""Particles for the nonlinear part of a state, each with a Kalman filter for the linear part."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from herdfilter import _checks, angles
from herdfilter.filters.observation import Observation, linear_part_observation
from herdfilter.filters.proposals import base
from herdfilter.filters.proposals.flow import FlowProposal
from herdfilter.filters.proposals.gaussianity import GOLDEN, Gaussianity
from herdfilter.filters.state import Indices, Particles
from herdfilter.mixture import GaussianMixture
from herdfilter.models import contract, evaluations, resolved
from herdfilter.samplers import balanced

LEAST_PIVOT = 1e-13  # a conditional variance below this share of the variance is rounding
ODD = np.random.default_rng(0).integers(2**63, size=1000, dtype=np.uint64) * np.uint64(
    2
) + np.uint64(1)  # hash factors


@dataclass(frozen=True)
class RaoBlackwellisedProposal:
    r"""Moves the nonlinear part of the state by any proposal, and the linear part of each particle by a Kalman filter.

    Given the path of the nonlinear part of particle i its linear part is :math:`N(m_i, P_i)` (Schön, Gustafsson and Nordlund
    2005, in the names of `ConditionallyLinear`). The proposal sees a model of the nonlinear part alone, with the transition
    :math:`N(f^n + A^n m_i, A^n P_i A^{nT} + Q^n)` and the observation :math:`N(h + C m, C P C^T + R)`, and moves it by its
    own points: random, ranked or herded. The linear part then takes up the new state and the observation.

    A point of the predictive mixture, as `HerdedProposal` draws it, gets an ancestor by the probabilities of the components
    there. For ancestors drawn from a fit, as in `AutomaticProposal`, the linear part is the regression on the nonlinear part
    if one Gaussian fits the particles, else that of the nearest particle.

    In a filter ``particles`` hold the means :math:`m_i`; ``mean`` and ``covariance`` are those of the whole state. Particle
    smoothers ignore :math:`P_i`. The noise of the observation is treated as Gaussian.

    Parameters
    ----------
    proposal : Proposal
        For the nonlinear part; not `FlowProposal`.

    Raises
    ------
    TypeError
        In a filter, if the model names no ``linear`` dimensions, its noise is not additive, its initial distribution is not
        a `GaussianMixture`, or it has scans or modes.

    Examples
    --------
    An angle shows a target on a line, at unknown speed. 50 particles for its position alone halve the error, and more.

    >>> plain = hf.models.from_functions(
    ...     lambda x: x @ [[1, 0], [1, 1]], lambda x: np.arctan(x[:, :1] / 5), 0.01 * np.eye(2), [[0.001]], [0, 0], np.eye(2)
    ... )
    >>> model = hf.models.ConditionallyLinear(plain, linear=[1])
    >>> truth, z = hf.simulate(model, steps=20, rng=1)
    >>> reference = hf.ParticleFilter(plain, 20_000, rng=1).run(z).means
    >>> def error(proposal):
    ...     runs = [hf.ParticleFilter(model, 50, proposal, rng=seed).run(z).means for seed in range(10)]
    ...     return np.sqrt(np.mean(np.square(runs - reference)))
    ...
    >>> bool(error(hf.RaoBlackwellisedProposal(hf.BootstrapProposal())) < 0.5 * error(hf.BootstrapProposal()))
    True
    """

    proposal: base.Proposal = field(default_factory=base.BootstrapProposal)

    def __post_init__(self) -> None:
        _checks.check_part(
            "proposal", self.proposal, base.Proposal, "a proposal such as RankedProposal()"
        )
        if isinstance(self.proposal, FlowProposal):
            raise TypeError(
                "proposal: expected one that does not move what it drew, got FlowProposal; take RankedProposal()"
            )

    @property
    def uses(self) -> base.Uses:
        """See `Proposal`."""
        return self.proposal.uses

    def check(self, model: contract.Model) -> None:
        """See `Proposal`."""
        user = type(self).__name__
        if not hasattr(model, "linear"):
            raise TypeError(
                f"model: {user} needs linear, dimensions that are linear given the others; {contract.kind(model)} has no "
                "linear: take herdfilter.models.ConditionallyLinear(model, linear=[...])"
            )
        contract.require(model, user, (*contract.ADDITIVE, *contract.OBSERVED))
        contract.refuse_limits(model, user)
        if contract.has_scans(model):
            raise TypeError(
                f"model: {user} needs observations, got scans; take the model without WithClutter"
            )
        if not isinstance(prior := model.initial, GaussianMixture):
            raise TypeError(
                f"model.initial: {user} needs a GaussianMixture, as GaussianFit().fit(points) is, got {prior!r}"
            )
        self.proposal.check(_Nonlinear(model))  # the wrapped proposal sees the nonlinear part only

    def initial(self, model: contract.Model, n: int, rng: np.random.Generator) -> Particles:
        """See `Proposal`."""
        part = _Nonlinear(model)
        part.start(model.initial.weights, model.initial.means, model.initial.distinct_covariances)
        return part.whole(self.proposal.initial(part, n, rng))

    def propose(
        self,
        transition: resolved.Transition,
        particles: Particles,
        rng: np.random.Generator,
        observation: Observation | None = None,
    ) -> Particles:
        """See `Proposal`."""
        if not isinstance(particles, ConditionalGaussians):
            raise ValueError(
                "resampling: expected a scheme that copies particles with their Gaussians, such as SystematicResampling(), "
                "got one that drops these"
            )
        part = _Nonlinear(
            transition.model,
            transition,
            particles,
            None if observation is None else observation.measurement,
        )
        part.start(particles.weights, *part.predicted(particles.x, particles.covariances))
        onward = _PartTransition(part, *transition.arguments)
        nonlinear = Particles.unchecked(part.x, particles.log_weights, None, particles.n_next)
        if observation is None:
            return part.whole(self.proposal.propose(onward, nonlinear, rng))
        partial = observation.by(part)
        successors = part.whole(self.proposal.propose(onward, nonlinear, rng, partial))
        observation.log_offset = partial.log_offset
        # The weights contain the evidence of the linear part already: its update here leaves them.
        return successors.conditioned(observation)[0]


class ConditionalGaussians(Particles):
    """Particles each of which carries the Gaussian of a linear part, given the path of the nonlinear part."""

    FIELDS = (*Particles.FIELDS, "covariances")

    covariances: _checks.Array
    """Covariances (n, d, d) of the Gaussians about the particles, or (1, d, d) of all."""

    @classmethod
    def about(cls, x: _checks.Array, covariances: _checks.Array, particles: Particles) -> Self:
        """Return Gaussians about states (n, d) with the weights and ancestors of `particles`."""
        gaussians = cls.unchecked(
            x, particles.log_weights, None, particles.n_next, particles.ancestors
        )
        gaussians.covariances = covariances
        return gaussians

    @classmethod
    def restored_spread(cls, saved: Any, n: int, dim: int) -> dict[str, _checks.Array]:
        """See `Particles`."""
        shared = np.shape(saved.entries["covariances"]) == (1, dim, dim)
        return {"covariances": saved.read("covariances", (1 if shared else n, dim, dim))}

    def predicted_observation(
        self, reader: resolved.Measurement, step: int
    ) -> tuple[_checks.Array, _checks.Array]:
        """See `Particles`."""
        means, covariances, _ = linear_part_observation(reader, self.x, self.covariances, step)
        covariances = np.broadcast_to(covariances, (len(self), *covariances.shape[1:]))
        return angles.merged(means, covariances, self.weights, reader.circular(means.shape[1]))

    def updated(self, observation: Observation) -> ConditionalGaussians:
        """See `Particles`: the Gaussians are updated as well."""
        gaussians, log_densities = self.conditioned(observation)
        return gaussians.reweighted(observation.less_offset(log_densities))

    def conditioned(self, observation: Observation) -> tuple[ConditionalGaussians, _checks.Array]:
        """Kalman update of the Gaussian about each particle; return them, weighted as before, and the log-densities (n,)."""
        means, observed, cross = linear_part_observation(
            observation.measurement, self.x, self.covariances, observation.step
        )
        observed = observation.part(observed)
        cross = cross[..., observation.observed_entries]
        residuals = observation.residuals(means)
        log_densities = contract.gaussian_log_density(residuals, observed, observation.step)
        # K' = S^-1 P_zx; the update is x + K r, P - P_xz K'.
        gains = np.linalg.solve(observed, cross.transpose(0, 2, 1))
        after = self.covariances - cross @ gains
        x = self.x + (
            residuals @ gains[0] if len(gains) == 1 else np.einsum("ikd,ik->id", gains, residuals)
        )
        after = 0.5 * (after + after.transpose(0, 2, 1))  # symmetric despite rounding
        return ConditionalGaussians.about(x, after, self), log_densities


class _Gaussians(NamedTuple):
    """M Gaussians of the whole state, split by its nonlinear dimensions `free` into ``means + columns @ v`` and a rest.

    Means (M, d); columns (M, d, dim) of the Cholesky factor, where v ~ N(0, I) fixes the nonlinear part; and covariances
    (M, d, d) of the linear part given v. The last two may have one row shared by all.
    """

    means: _checks.Array
    columns: _checks.Array
    conditional: _checks.Array
    free: Indices

    @classmethod
    def of(cls, means: _checks.Array, covariances: _checks.Array, free: Indices) -> _Gaussians:
        conditional = covariances.copy()
        columns = np.zeros((*covariances.shape[:2], len(free)))
        # Cholesky elimination of the nonlinear dimensions only; the Schur complement is the conditional covariance.
        for column, j in enumerate(free):
            pivot = conditional[:, j, j]
            root = np.sqrt(np.where(pivot > LEAST_PIVOT * covariances[:, j, j], pivot, np.inf))
            columns[:, :, column] = conditional[:, :, j] / root[:, None]
            conditional -= columns[:, :, None, column] * columns[:, None, :, column]
            conditional[:, j] = 0.0
            conditional[:, :, j] = 0.0
        return cls(means, columns, conditional, free)

    def states(self, rows: Indices, v: _checks.Array) -> _checks.Array:
        """Whole states (m, d) of the members (m,) at noise v (m, dim)."""
        offsets: _checks.Array = np.einsum("...ij,...j->...i", _rows_of(self.columns, rows), v)
        return self.means[rows] + offsets

    def white(
        self, x: _checks.Array, circular: tuple[int, ...], rows: Any = slice(None)
    ) -> _checks.Array:
        """Noise v that leads the members to x (..., dim); zero in directions without variance."""
        inverse = np.linalg.pinv(self.columns[:, self.free])
        offsets = angles.wrap(x - self.means[rows][:, self.free], circular)
        return np.asarray(np.einsum("...ij,...j->...i", _rows_of(inverse, rows), offsets))

    def at(self, rows: Indices, x: _checks.Array, circular: tuple[int, ...]) -> _checks.Array:
        """Whole states (m, d) of the members (m,) whose nonlinear part is x (m, dim)."""
        full = self.states(rows, self.white(x, circular, rows))
        full[:, self.free] = x  # exactly: the noise leads there only up to rounding
        return full


def _rows_of(array: _checks.Array, rows: Any) -> _checks.Array:
    """Return rows of an array, or the one row that all share."""
    return array if len(array) == 1 else array[rows]


class _Nonlinear:
    """The model of the nonlinear part at a step, as a proposal sees it; it records the ancestor of every successor.

    A proposal sees only nonlinear parts. It passes some of them back, to be observed or as its result, and the linear parts
    that belong to them are then looked up by the bits of the nonlinear part.
    """

    partial_observations = True

    def __init__(
        self,
        model: contract.Model,
        transition: Any = None,
        particles: Any = None,
        measurement: resolved.Measurement | None = None,
    ) -> None:
        self.model = model
        self.measurement = measurement or resolved.Measurement(model)
        self.observation_circular = self.measurement.entries_circular
        self.linear = np.array(model.linear)
        self.all_circular = self.measurement.state_circular
        self.free = np.array([i for i in range(model.dim) if i not in model.linear])
        self.dim = self.noise_dim = len(self.free)
        self.circular = tuple(j for j, i in enumerate(self.free.tolist()) if i in self.all_circular)
        self._transition = transition
        self._particles = particles
        self.x: Any = None if particles is None else particles.x[:, self.free]
        # Whole states (m, d) of all successors so far, and the covariances (m, d, d) of their linear parts.
        self._states: _checks.Array = np.empty((0, model.dim))
        self._covariances: _checks.Array = np.empty((0, model.dim, model.dim))
        # the nonlinear parts asked for last, and what `whole_states` has returned for them
        self._latest: tuple[Any, Any] = (None, None)

    def start(
        self, weights: _checks.Array, means: _checks.Array, covariances: _checks.Array
    ) -> None:
        """Set the Gaussians of the whole state after the step, with their weights."""
        self.weights = weights
        self.gaussians = _Gaussians.of(means, covariances, self.free)
        # factors of the covariances of the nonlinear part
        self.roots = self.gaussians.columns[:, self.free]

    @property
    def initial(self) -> GaussianMixture:
        return self.model.initial.marginal(self.free)  # type: ignore[no-any-return]

    def predicted(
        self, x: _checks.Array, covariances: _checks.Array
    ) -> tuple[_checks.Array, _checks.Array]:
        """Means (n, d) and covariances of the successors of Gaussians about states (n, d)."""
        transition = self._transition
        means, slopes = contract.linear_slopes(transition.function, x, covariances, self.linear)
        linear_covariances = covariances[:, self.linear[:, None], self.linear]
        return means, slopes @ linear_covariances @ slopes.transpose(
            0, 2, 1
        ) + transition.covariance

    def transition(
        self, x: _checks.Array, noise: _checks.Array, dt: float, control: Any, step: int
    ) -> _checks.Array:
        """Successors of the nonlinear part, recorded with their linear part."""
        # The model was asked in `predicted`, which is counted.
        evaluations.THREAD.evaluations.add()
        gaussians = self.gaussians
        rows = np.arange(len(x)) if x is self.x else find(x, self.x)
        if rows.min() < 0:
            gaussians = self._fitted_ancestors(x)
            rows = np.arange(len(x))
        # Wrapped twice, as the caller wraps the result again: the look-up is by bits.
        full = angles.wrap(
            angles.wrap(gaussians.states(rows, noise), self.all_circular), self.all_circular
        )
        covariances = _rows_of(gaussians.conditional, rows)
        self._latest = (full[:, self.free], (full, covariances))
        self._states = np.concatenate([self._states, full])
        each = np.broadcast_to(covariances, (len(x), *covariances.shape[1:]))
        self._covariances = np.concatenate([self._covariances, each])
        return self._latest[0]

    def _fitted_ancestors(self, x: _checks.Array) -> _Gaussians:
        """Return the predicted Gaussians of ancestors (m, dim) that are not particles, but drawn from a fit to them."""
        particles = self._particles
        mean, covariance = particles.moments(self.all_circular)
        # One Gaussian: the linear part is its regression on the nonlinear part. Else that of the nearest particle.
        if self._gaussian:
            fitted = _Gaussians.of(mean[None], covariance[None], self.free)
            full = fitted.at(np.zeros(len(x), dtype=np.int64), x, self.circular)
            covariances = fitted.conditional
        else:
            scale = np.sqrt(np.diagonal(covariance)[self.free])
            distances = angles.wrap(x[:, None] - self.x, self.circular) / np.where(
                scale > 0, scale, 1.0
            )
            nearest = (distances**2).sum(axis=2).argmin(axis=1)
            full = particles.x[nearest]
            covariances = _rows_of(particles.covariances, nearest)
            full[:, self.free] = x
        return _Gaussians.of(*self.predicted(full, covariances), self.free)

    @cached_property
    def _gaussian(self) -> bool:
        """True if one Gaussian fits the particles, each with one point drawn from its Gaussian."""
        particles = self._particles
        linear = self.linear
        noise = np.random.default_rng(0).permutation(
            balanced.balanced_noise(len(particles), len(linear), 0)
        )
        x = particles.x.copy()
        x[:, linear] += contract.correlated(
            noise, particles.covariances[:, linear[:, None], linear]
        )
        return Gaussianity(
            Particles.unchecked(x, particles.log_weights), self.all_circular
        ).gaussian

    def whole_states(self, x: _checks.Array) -> tuple[_checks.Array, _checks.Array]:
        """Return the whole states (m, d) of successors (m, dim), and the covariances of their linear parts."""
        if x is not self._latest[0]:
            indices = find(x, self._states[:, self.free])
            # points of the predictive mixture, which this model has not made
            if indices.min() < 0:
                rows = self._draw_components(x)
                full = self.gaussians.at(rows, x, self.circular)
                covariances = _rows_of(self.gaussians.conditional, rows)
            else:
                full = self._states[indices]
                covariances = self._covariances[indices]
            alike = (covariances == covariances[0]).all()
            self._latest = (x, (full, covariances[:1] if alike else covariances))
        return self._latest[1]  # type: ignore[no-any-return]

    def _draw_components(self, x: _checks.Array) -> Indices:
        """Choose a component of the prediction for each point (m, dim), by the probabilities of the components there.

        The numbers u that choose are fixed, and spread evenly along the Hilbert curve through the points.
        """
        pivots = np.diagonal(self.roots, axis1=1, axis2=2)
        white = self.gaussians.white(x[:, None], self.circular)
        terms = -0.5 * (white**2).sum(axis=2) - np.log(np.where(pivots > 0, pivots, 1.0)).sum(
            axis=1
        )
        sums = np.cumsum(self.weights * np.exp(terms - terms.max(axis=1, keepdims=True)), axis=1)
        u = np.empty(len(x))
        u[balanced.hilbert_order(x, np.ones(len(x)), self.circular)] = (
            0.5 + GOLDEN * np.arange(len(x))
        ) % 1.0
        components: Indices = (u[:, None] * sums[:, -1:] >= sums).sum(axis=1)
        return np.minimum(components, len(self.weights) - 1)

    def transition_mean(
        self, x: _checks.Array, dt: float, control: Any, step: int
    ) -> _checks.Array:
        return self.transition(x, np.zeros(x.shape), dt, control, step)

    def transition_covariance(self, dt: float, step: int) -> _checks.Array:
        # each particle has a covariance of its own: see `_PartTransition`
        raise NotImplementedError

    def observation_mean(self, x: _checks.Array, step: int) -> _checks.Array:
        return self.measurement.mean(self.whole_states(x)[0], step)

    def observation_covariance(self, step: int, x: _checks.Array) -> _checks.Array:
        observed = linear_part_observation(self.measurement, *self.whole_states(x), step)[1]
        return np.broadcast_to(observed, (len(x), *observed.shape[1:]))

    def whole(self, successors: Particles) -> ConditionalGaussians:
        """Return particles of the whole state, each with its Gaussian, from those of the nonlinear part."""
        return ConditionalGaussians.about(*self.whole_states(successors.x), successors)


class _PartTransition(resolved.Transition):
    """The transition of the nonlinear part, whose noise has a covariance for each particle."""

    @property
    def has_density(self) -> bool:
        return bool(np.diagonal(self.model.roots, axis1=1, axis2=2).all())

    def noises(self, x: _checks.Array) -> _checks.Array:
        roots: _checks.Array = self.model.roots
        return roots @ roots.transpose(0, 2, 1)

    def predictive(self, x: _checks.Array, weights: _checks.Array) -> GaussianMixture:
        means = self.model.gaussians.means[:, self.model.free]
        return GaussianMixture.unchecked(
            weights, angles.unwrap(means, weights, self.circular), self.noises(x)
        )


def find(x: _checks.Array, states: _checks.Array) -> Indices:
    """Find states x (m, d) among others (n, d) by their bits: indices (m,), -1 where one is not there."""
    if not len(states):
        return np.full(len(x), -1)
    keys = []
    for points in (x, states):
        # + 0.0 makes -0.0 and 0.0 the same
        bits = np.ascontiguousarray(points + 0.0).view(np.uint64)
        keys.append((bits ^ (bits >> np.uint64(29))) @ ODD[: x.shape[1]])
    order = keys[1].argsort()
    ranks = np.searchsorted(keys[1], keys[0], sorter=order).clip(max=len(order) - 1)
    indices = order[ranks]
    return np.where(keys[1][indices] == keys[0], indices, -1)
