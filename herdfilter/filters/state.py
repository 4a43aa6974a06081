"""Weighted particles that know their ancestors, and the estimates that a filter makes from them."""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from itertools import repeat
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter._checks import Indices as Indices
from herdfilter._repr import summary_repr
from herdfilter.angles import mean_and_covariance, merged, wrap
from herdfilter.filters.saved import waiting_arrays
from herdfilter.models import contract
from herdfilter.models.resolved import Measurement, Motion
from herdfilter.models.sensors import Sensor, sensed, unobserved

NEGLIGIBLE_SET = 0.01  # sets lighter than this fraction of one particle's weight are dropped when sets are merged
COMPUTED = (
    "weights",
    "ess",
    "gaussianity",
    "_normalised",
)  # cached; a changed copy computes them anew
ALONE = 1.1  # effective sample size below which one particle has all the weight
NO_WEIGHT = 1e-12  # an ancestor whose successors weigh less than this in total counts as lost
ONE_PLACE = 1e-3  # relative to the range of all particles: nearer ones of a lineage have not been parted by noise
NEGLIGIBLE_FAMILY = 1e-3  # lighter families count less when the gaps between families are judged
ARRAYS = {"weights": "weights", "log_weights": "log_weights", "modes": "modes", "particles": "x"}
"""Name in a saved state -> attribute; a kind of particles adds those of its own."""
LIMITS = ("feasible_share", "log_feasible")  # numbers of particles of a state with limits


class Particles:
    """Weighted particles; the weights and their effective sample size are computed once, when first asked for.

    Parameters
    ----------
    particles : array_like, shape (n, d)
        States; not copied.
    log_weights : array_like, shape (n,)
        Logarithms of weights, which sum to 1 unless an observation has just been taken up; -inf for weights of zero.
    modes : ndarray of int, shape (n,), optional
        The mode of each particle, where the model jumps between some.
    n_next : int, optional
        How many particles a proposal that uses the weights, or a resampling scheme, makes of these; n unless given. So a
        hypothesis gets its share of the particles, and the union of several hypotheses is brought back to n.
    ancestors : ndarray of int, shape (n,), optional
        Index, among the particles that these were made of, of the one that each comes from; None where they come from all
        of them together, as points of a fitted mixture do.

    Examples
    --------
    Three equal particles meet the likelihoods 1, 2 and 1, whose weighted sum is the evidence.

    >>> particles = hf.Particles.equal(np.array([[0.0], [1.0], [3.0]]))
    >>> posterior, log_evidence = particles.reweighted(np.log([1.0, 2.0, 1.0])).normalised()
    >>> np.round(posterior.weights, 12).tolist(), np.allclose(np.exp(log_evidence), 4 / 3)
    ([0.25, 0.5, 0.25], True)
    >>> round(particles.ess, 6), round(posterior.ess, 6)
    (3.0, 2.666667)
    >>> hf.SystematicResampling().resample(posterior, np.random.default_rng(0)).ancestors.tolist()
    [0, 1, 2]
    """

    _normalised: Any = None
    gaussianity: Any = None
    """Their `Gaussianity`, once a proposal has asked for it."""
    covariances: Any = None
    """Covariances (n, d, d), or (1, d, d) of all, of the Gaussians about the particles; None of points."""
    feasible_share: Any = None
    """Share of the proposed points that were inside the limits of the state; None without limits."""
    log_feasible = 0.0
    """Log-probability of the limits that neither the weights hold nor an increment of the filter does yet."""
    ancestors: Indices | None
    FIELDS: ClassVar[tuple[str, ...]] = ("x", "log_weights", "modes", "n_next", "ancestors")
    """Names of all that is not computed from the rest."""

    def __init__(
        self,
        particles: ArrayLike,
        log_weights: ArrayLike,
        modes: NDArray[np.int64] | None = None,
        n_next: int | None = None,
        ancestors: Indices | None = None,
    ) -> None:
        self.x = _checks.as_particles("particles", particles)
        n = len(self.x)
        self.log_weights = _checks.as_array("log_weights", log_weights, (n,), finite=False)
        if not (self.log_weights < np.inf).all():  # NaN, too
            raise ValueError(
                f"log_weights: expected numbers below infinity, got {self.log_weights.max()}"
            )
        for name, labels in (("modes", modes), ("ancestors", ancestors)):
            if labels is not None and (shape := _checks.as_any(name, labels).shape) != (n,):
                raise ValueError(f"{name}: expected shape ({n},), got {shape}")
        self.modes = modes
        self.ancestors = ancestors
        self.n_next = n if n_next is None else _checks.check_count("n_next", n_next)

    @classmethod
    def unchecked(
        cls,
        particles: Array,
        log_weights: Array,
        modes: Any = None,
        n_next: Any = None,
        ancestors: Any = None,
    ) -> Self:
        """Build without validation, for arrays that are valid by construction."""
        self = object.__new__(cls)
        self.x = particles
        self.log_weights = log_weights
        self.modes = modes
        self.ancestors = ancestors
        self.n_next = len(particles) if n_next is None else n_next
        return self

    @classmethod
    def equal(cls, particles: ArrayLike, ancestors: Any = None) -> Self:
        """Particles (n, d) of equal weight."""
        x = _checks.as_particles("particles", particles)
        return cls.unchecked(x, np.full(len(x), -math.log(len(x))), ancestors=ancestors)

    @classmethod
    def weighted(cls, particles: ArrayLike, weights: ArrayLike) -> Self:
        """Particles (n, d) with weights (n,) that sum to 1."""
        x, weights = _checks.as_weighted_particles(particles, weights)
        with np.errstate(divide="ignore"):
            weighted = cls.unchecked(x, np.log(weights))
        weighted.weights = weights
        return weighted

    @classmethod
    def of(cls, particles: Any) -> Self:
        """Convert particles to this kind; here they are returned as they are."""
        converted: Self = particles
        return converted

    def __len__(self) -> int:
        return len(self.x)

    def fits(self, shape: tuple[int, int]) -> bool:
        """Return True if these can be the particles (n, d) of a filter."""
        return np.shape(self.x) == shape and np.shape(self.log_weights) == shape[:1]

    def settled(self) -> Particles:
        """Return these particles after the probability of the limits has been counted."""
        particles = copy.copy(self)
        particles.log_feasible = 0.0
        return particles

    @cached_property
    def weights(self) -> Array:
        """Weights (n,)."""
        return np.exp(self.log_weights)

    @cached_property
    def ess(self) -> float:
        r"""Effective sample size :math:`1 / \sum_i w_i^2`."""
        total = float(self.weights @ self.weights)
        return 1.0 / total if total else math.inf

    def moments(self, circular: tuple[int, ...] = ()) -> tuple[Array, Array]:
        """Mean (d,), its angles wrapped, and covariance (d, d), that of Gaussians about the particles included."""
        mean, covariance = mean_and_covariance(self.x, self.weights, circular)
        covariances = self.covariances
        if covariances is None:
            return mean, covariance
        within = (
            covariances[0] if len(covariances) == 1 else np.tensordot(self.weights, covariances, 1)
        )
        return mean, covariance + within

    def points(self, circular: tuple[int, ...], step: int) -> Particles:
        """Points that represent the whole distribution at a step: the particles, unless each carries a Gaussian."""
        return self

    def updated(self, observation: Any) -> Particles:
        """Return the particles with their weights times the likelihood, not normalised."""
        return self.replaced(
            log_weights=self.log_weights + observation.log_likelihood(self.x, self.modes)
        )

    def predicted_observation(self, reader: Measurement, step: int) -> tuple[Array, Array]:
        """Mean (k,) and covariance (k, k) of the observation at a step, noise included, in the modes of the particles."""
        if self.modes is None:
            mean, covariance, noise = predicted_moments(reader, self.x, self.weights, step)
            return mean, covariance + noise
        parts = []
        for mode in np.unique(self.modes):
            members = self.modes == mode
            # a mode without weight has no moments
            share = self.weights[members].sum()
            if share > 0:
                weights = self.weights[members] / share
                mean, covariance, noise = predicted_moments(
                    reader.modes[mode], self.x[members], weights, step
                )
                parts.append((share, mean, covariance + noise))
        shares, means, covariances = (np.array(values) for values in zip(*parts, strict=True))
        return merged(means, covariances, shares, reader.modes[0].circular(means.shape[1]))

    def reweighted(self, log_factors: Array | float) -> Self:
        """Return the particles with their weights multiplied by ``exp(log_factors)``, not normalised."""
        return self.replaced(log_weights=self.log_weights + log_factors)

    def take(self, which: Indices, log_weights: Array | None = None) -> Self:
        """Return the particles at these indices (m,), which become their ancestors, with their weights or others."""
        fields = {"ancestors": which, "n_next": self.n_next}
        fields["log_weights"] = self.log_weights.take(which) if log_weights is None else log_weights
        for name in self.FIELDS:
            if name not in fields:
                rows = self.__dict__[name]
                # one covariance for all particles
                shared = rows is None or len(rows) < len(self.x)
                fields[name] = rows if shared else rows.take(which, axis=0)
        particles = object.__new__(type(self))
        particles.__dict__ = fields
        return particles

    def replaced(self, **changes: Any) -> Self:
        """Return the particles with other fields."""
        fields = self.__dict__ | changes
        for name in COMPUTED:
            fields.pop(name, None)
        particles = object.__new__(type(self))
        particles.__dict__ = fields
        return particles

    @classmethod
    def join(cls, parts: Sequence[Particles], n_next: int | None = None) -> Self:
        """Concatenate parts, with the weights that they have; the next step makes `n_next` particles, or as many."""
        kinds: set[Any] = {cls, *map(type, parts)}
        kind = cls
        if len(kinds) > 1:
            kind = max(kinds, key=lambda kind: len(kind.FIELDS))
            parts = [kind.of(part) for part in parts]
        joined: Self = object.__new__(kind)
        for name in kind.FIELDS:
            columns = list(map(operator.attrgetter(name), parts))
            absent = name == "n_next" or any(map(operator.is_, columns, repeat(None)))
            for i, part in enumerate(() if absent else parts):
                if len(columns[i]) < len(part.x):  # one for all
                    columns[i] = np.broadcast_to(columns[i], (len(part.x), *columns[i].shape[1:]))
            setattr(joined, name, None if absent else np.concatenate(columns))
        joined.n_next = len(joined.x) if n_next is None else n_next
        return joined

    def traced(self, indices: Indices | None) -> Self:
        """Count ancestors in a larger set, from which those that they index now were taken at `indices`; return self."""
        if self.ancestors is each_its_own(len(self.x)):  # the cached identity: no look-up
            self.ancestors = indices
        elif self.ancestors is not None:
            self.ancestors = None if indices is None else indices[self.ancestors]
        return self

    def normalised(self) -> tuple[Self, float]:
        """Return the particles with weights that sum to 1, and the logarithm of the sum before.

        Where all weights are zero they stay so, and the logarithm is minus infinity. Weights do not depend on a constant
        added to their logarithms, however large.
        """
        if self._normalised is not None:
            return self._normalised  # type: ignore[no-any-return]
        # The largest weight is scaled to 1 first, so that exp neither overflows nor loses all weights.
        peak = self.log_weights.max()
        if peak == -np.inf:
            return self, -np.inf
        relative = self.log_weights - peak
        weights = np.exp(relative)
        total = float(np.add.reduce(weights))
        log_sum = float(peak) + math.log(total)
        particles = self.replaced(log_weights=relative - math.log(total))
        particles.weights = weights / total
        self._normalised = particles, log_sum
        return particles, log_sum

    def counts(
        self, mean: Array, covariance: Array, circular: tuple[int, ...]
    ) -> tuple[float, float, bool]:
        r"""Return the effective sample size, the number of ancestors, and whether few particles are left.

        `mean` (d,) and `covariance` (d, d) are the `moments`. The number is NaN where ancestors are not known; ancestors
        without weight are not counted. Few particles are left if one has all the weight. Or they descend from few, which the
        effective sample size does not show: with the total weights :math:`v_j` of the successors of each ancestor,
        :math:`m = 1 / \sum_j v_j^2` is below :math:`\sqrt n \le` ESS, and the transition noise has not closed the gaps
        between these families: in some dimension less than :math:`1 / m^2` of the variance is within families, or one family
        has all the weight.
        """
        ess = self.ess
        if self.ancestors is None:
            return ess, math.nan, ess < ALONE
        if self.ancestors is each_its_own(len(self.x)):  # every family has one member
            return ess, float(len((self.weights > NO_WEIGHT).nonzero()[0])), ess < ALONE
        weights = np.bincount(self.ancestors, self.weights)
        distinct = float(len((weights > NO_WEIGHT).nonzero()[0]))
        count = 1 / float(weights @ weights)
        if not count < math.sqrt(len(self.x)) <= ess:
            return ess, distinct, ess < ALONE
        # Analysis of variance: what is left of each dimension's variance after that between families is within them.
        deviations = wrap(self.x - mean, circular) if circular else self.x - mean
        sums = [np.bincount(self.ancestors, self.weights * column) for column in deviations.T]
        between = np.square(sums) @ (1 / np.maximum(weights, NEGLIGIBLE_FAMILY))
        total = covariance.diagonal()
        spread = (total - between) * count**2 >= total
        return ess, distinct, count < ALONE or not spread.all()

    def lineages(self, origins: Indices | None) -> tuple[Indices | None, bool]:
        r"""Trace the particles one step further: return the origins (n,) of each, and whether the lineages have collapsed.

        `origins` are those of the particles of the step before, None if each begins a lineage. Once few lineages are left,
        :math:`m = 1 / \sum_j v_j^2 < \sqrt n` with their total weights :math:`v_j`, new ones begin. The old ones have
        collapsed if in some dimension particles of one lineage are at one place, though their ancestors differ, and those
        of other lineages elsewhere: the transition has no noise there, and never parts the few values that are left.
        """
        n = len(self.x)
        ancestors = self.ancestors
        # not of histories, whose number varies
        if ancestors is None or type(self) is not Particles:
            return None, False
        if ancestors is each_its_own(n):
            return origins, False
        origins = ancestors if origins is None else origins[ancestors]
        weights = np.bincount(origins, self.weights)
        if 1 / (weights @ weights) >= math.sqrt(n):
            return origins, False
        member = np.empty(len(weights), dtype=int)
        member[origins] = each_its_own(n)
        relatives = member[origins]
        # Noise of the last step may not have reached all dimensions, as it takes two steps to reach a position.
        gaps = np.abs(self.x - self.x[relatives])[ancestors != ancestors[relatives]]
        if not len(gaps):
            return origins, False
        return None, bool((gaps.max(axis=0) < ONE_PLACE * np.ptp(self.x, axis=0)).any())

    @classmethod
    def checked(
        cls,
        particles: Any,
        part: object,
        method: str,
        shape: tuple[int, int],
    ) -> Particles:
        """Return the result of a part's method if it is particles of this shape, else raise an error that names it."""
        if isinstance(particles, Particles) and particles.fits(shape):
            return particles
        name = f"{type(part).__name__}.{method}"
        if not isinstance(particles, Particles):
            raise TypeError(
                f"{name}: expected a herdfilter.filters.Particles(particles, log_weights), got {type(particles).__name__}"
            )
        raise ValueError(
            f"{name}: expected particles of shape {shape} and as many weights, got {np.shape(particles.x)} and "
            f"{np.shape(particles.log_weights)}; look at the model's initial and dim, or at the sampler"
        )

    def arrays(self) -> dict[str, Any]:
        """Return all that `restored` needs, as arrays by name."""
        # Fields of this kind only, such as covariances, are saved under their own names.
        names = ARRAYS | {name: name for name in self.FIELDS[len(Particles.FIELDS) :]}
        arrays = {name: getattr(self, attribute) for name, attribute in names.items()}
        if self.feasible_share is not None:
            arrays |= {name: getattr(self, name) for name in LIMITS}
        return {name: array for name, array in arrays.items() if array is not None}

    @staticmethod
    def restored(saved: Any, n_next: int, dim: int) -> Particles:
        """Return the particles of a `SavedState`; the arrays it contains tell of which kind they are."""
        kinds: list[type[Particles]] = sorted(
            (Particles, *Particles.__subclasses__()), key=lambda kind: -len(kind.FIELDS)
        )
        kind = next(
            kind for kind in kinds if {*kind.FIELDS[len(Particles.FIELDS) :]} <= {*saved.entries}
        )
        n = np.size(saved.entries["weights"])
        # `weights` are stored beside their logarithms, as exp does not give the same bits everywhere.
        names = [name for name in ARRAYS if name in saved.entries]
        arrays = {
            ARRAYS[name]: saved.read(name, (n, dim) if name == "particles" else (n,))
            for name in names
        }
        particles = kind.unchecked(arrays["x"], arrays["log_weights"], n_next=n_next)
        vars(particles).update(arrays, **kind.restored_spread(saved, n, dim))
        vars(particles).update({k: saved.read(k).item() for k in LIMITS if k in saved.entries})
        if not (
            np.abs(np.exp(particles.log_weights) - particles.weights) <= _checks.SUM_ERROR
        ).all():
            raise ValueError(
                "state: expected log_weights that are the logarithms of weights, got other numbers"
            )
        return particles

    @classmethod
    def restored_spread(cls, saved: Any, n: int, dim: int) -> dict[str, Array]:
        """Read the arrays of a saved state that this kind has beyond those of plain particles."""
        return {}

    def __repr__(self) -> str:
        return summary_repr(self, n=len(self), dim=self.x.shape[1])


@lru_cache(maxsize=64)
def each_its_own(n: int) -> Indices:
    """Return the indices 0 to n - 1, the ancestors where each particle has one successor; shared, so read-only."""
    identity = np.arange(n)
    identity.flags.writeable = False
    return identity


def predicted_observations(
    sets: Sequence[Particles], measurement: Measurement, step: int
) -> tuple[Array, Array]:
    """Means (T, k) and covariances (T, k, k) of the observation at a step, noise included, by T sets of particles."""
    if {*map(type, sets)} != {Particles} or sets[0].modes is not None:
        moments = [particles.predicted_observation(measurement, step) for particles in sets]
        means, covariances = (np.array(values) for values in zip(*moments, strict=True))
        return means, covariances
    x = np.concatenate(list(map(operator.attrgetter("x"), sets)))
    values, noises = measurement.moments(x, step)
    size = values.shape[1]
    circular = measurement.circular(size)
    means = np.empty((len(sets), size))
    covariances = np.empty((len(sets), size, size))
    start = 0
    for t, particles in enumerate(sets):
        rows = slice(start, start + len(particles.x))
        means[t], covariances[t] = mean_and_covariance(values[rows], particles.weights, circular)
        covariances[t] += (
            noises[0] if len(noises) == 1 else np.tensordot(particles.weights, noises[rows], 1)
        )
        start = rows.stop
    return means, covariances


def predicted_moments(
    measurement: Measurement, x: Array, weights: Array, step: int
) -> tuple[Array, Array, Array]:
    """Mean (k,) and covariance (k, k) of the mean observations of weighted states (n, d), and that of the noise (k, k)."""
    values, noises = measurement.moments(x, step)
    # Law of total covariance: noise that depends on the state counts by its expectation.
    noise = noises[0] if len(noises) == 1 else np.tensordot(weights, noises, 1)
    return *mean_and_covariance(values, weights, measurement.circular(values.shape[1])), noise


class ParticleEstimates:
    """The estimates of a particle filter at its present step."""

    n_particles: int
    step: int
    has_weights = True
    _particles: Any
    _waiting: Any
    _resampled: bool
    _untouched: bool
    log_likelihood: float
    _current: Callable[[], Particles]
    _weigh: Callable[[Any], Particles]
    _settle: Callable[[], None]

    @property
    def model(self) -> contract.Model:
        """The state-space model; another one may be given at any step."""
        return self._motion.model

    @model.setter
    def model(self, model: contract.Model) -> None:
        self._motion = Motion(model)
        self._measurement = Measurement(model)
        self._circular = self._motion.circular
        self._needs_sensor = unobserved(model)

    @property
    def particles(self) -> Array:
        """The particles, shape (n, d); where each carries a Gaussian (`RaoBlackwellisedProposal`), the means of these.

        A proposal that looks at the observation has not moved them yet between `predict` and `update`. A prediction is then
        drawn on request, and the request does not change later results.
        """
        return self._points().x

    @property
    def weights(self) -> Array:
        """Weights of the particles, shape (n,), summing to 1."""
        return self._points().weights

    @property
    def ancestors(self) -> Indices | None:
        """Index (n,) of each particle's ancestor among the particles of the step before.

        None at the start, and after a proposal that draws its particles from a fit to all of them.
        """
        return self._points().ancestors

    @property
    def mean(self) -> Array:
        """Mean of the weighted particles, shape (d,); circular in angle-valued dimensions."""
        return self._current().moments(self._circular)[0]

    @property
    def covariance(self) -> Array:
        """Covariance of the weighted particles, shape (d, d)."""
        return self._current().moments(self._circular)[1]

    @property
    def ess(self) -> float:
        r"""Effective sample size :math:`1 / \sum_i w_i^2`."""
        return float(self._current().ess)

    @property
    def mode_probabilities(self) -> Array:
        """Probability of each of the J modes that the model jumps between, shape (J,); 1 for a model without modes."""
        particles = self._current()
        if particles.modes is None:
            return np.ones(1)
        return np.bincount(particles.modes, particles.weights, len(self.model.models)).astype(
            np.float64
        )

    def predicted_observation(self, sensor: Sensor | None = None) -> tuple[Array, Array] | None:
        """Mean (k,) and covariance (k, k) of the observation at this step, noise included, between `predict` and `update`.

        None where the model, or the sensor, has no mean and covariance of the observation.
        """
        measurement = (
            self._measurement if sensor is None else Measurement(sensed(self.model, sensor))
        )
        if not measurement.in_mode(0).has_moments:
            return None
        return self._current().predicted_observation(measurement, self.step)

    def suppose(self, observation: Any) -> tuple[Self, float]:
        """Return a copy that has taken up an observation of this step, None for a miss, and the log-evidence.

        Where the likelihood vanishes the evidence is minus infinity, and the copy stands where this filter does.
        """
        supposed = copy.copy(self)
        vars(supposed)["record"] = None
        if observation is None:
            supposed._settle()
            return supposed, 0.0
        particles, log_evidence = supposed._weigh(observation).normalised()
        if log_evidence > -np.inf:
            log_evidence += observation.log_offset or 0.0
            supposed.log_likelihood += log_evidence
            vars(supposed).update(_particles=particles, _waiting=None, _untouched=False)
        return supposed, log_evidence

    def combine(self, others: Sequence[Any], weights: Array) -> Self:
        """Unite the particles of several filters at the same step, whose weights (H,) scale those of their particles.

        The next step brings the union back to the number of particles of one filter.
        """
        # The heaviest set is kept even if all are light.
        heavy = np.flatnonzero(
            weights >= min(NEGLIGIBLE_SET / self.n_particles, weights.max())
        ).tolist()
        union: Self = copy.copy(others[heavy[0]])
        vars(union)["record"] = None
        if len(heavy) == 1:
            return union
        parts = []
        for i, log_weight in zip(heavy, np.log(weights[heavy] / weights[heavy].sum()), strict=True):
            particles = others[i]._current()
            parts.append(particles.replaced(log_weights=particles.log_weights + log_weight))
        # lineages of different filters have no common origins
        vars(union).update(
            _particles=Particles.join(parts, self.n_particles), _waiting=None, _origins=None
        )
        return union

    def _points(self) -> Particles:
        """Return the particles, with points in place of the Gaussians of histories."""
        return self._current().points(self._circular, self.step)

    def _own_entries(self) -> dict[str, Any]:
        flags = {"resampled": self._resampled, "untouched": self._untouched}
        if self._waiting is None:
            return self._current().arrays() | flags
        entries: dict[str, Any] = self._particles.arrays() | flags | waiting_arrays(self._waiting)
        return entries

    def _restored_attributes(self, entries: Any) -> dict[str, Any]:
        particles = Particles.restored(entries, self.n_particles, self.model.dim)
        flags = {f"_{name}": entries.read(name).item() for name in ("resampled", "untouched")}
        return {
            "_particles": particles,
            "_waiting": entries.transition(self.model),
            "_predicted": None,
            **flags,
        }

    def __repr__(self) -> str:
        names = ("n_particles", "proposal", "resampling", "step", "log_likelihood")
        facts = {name: getattr(self, name) for name in names}
        # A step may have put others in the place of points: histories, from the first scan on.
        if isinstance(self._particles, Particles) and type(self._particles) is not Particles:
            facts["particles"] = self._particles
        return summary_repr(self, model=self.model, dim=self.model.dim, **facts)
