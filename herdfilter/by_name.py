"""`make_filter`: a filter of the catalogue by its name, with types by which checkers know the class and its options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Required, TypedDict, Unpack, overload

import numpy as np

from herdfilter import _checks, filters
from herdfilter.catalogue import expressions, specifications
from herdfilter.filters import kalman as kf
from herdfilter.filters.kalman.rules import MomentRule

if TYPE_CHECKING:
    from herdfilter.tracking import Birth, BirthFromMeasurements, LMBTracker

ParticleFilterName = Literal[
    "bootstrap", "sqmc", "sqmc-guided", "auxiliary", "guided", "edh-weighted", "ledh-weighted", "mixture-random",
    "herded-kh", "herded-quantile", "herded-chg", "herded-random", "mixture-kh", "mixture-chg",
    "augmented-kh", "augmented-chg", "augmented-sobol", "augmented-random", "augmented-gauss-kh",
    "kalman-mixture-kh", "kalman-mixture-quantile", "guided-augmented-gauss-kh",
    "ranked", "ranked-unguided", "auto", "auto-random", "auto-random-modes", "rb-bootstrap", "rb-auto",
]  # fmt: skip
TrackerName = Literal[
    "lmb-ukf", "lmb-auto", "lmb-bootstrap", "lmb-bp", "lmb-herded-gibbs", "lmb-random-gibbs"
]


class ParticleFilterOptions(TypedDict, total=False):
    """Options of a particle filter; see `ParticleFilter`."""

    proposal: filters.Proposal | str
    resampling: filters.Resampling | str
    resample_below: float
    on_degeneracy: Literal["raise", "predict"]


class TrackerOptions(TypedDict, total=False):
    """Options of a tracker; see `LMBTracker`."""

    birth: Required[Sequence[Birth] | BirthFromMeasurements]
    survival_probability: float
    association: Any
    filter: str | Callable[[Any, int, np.random.Generator], Any]
    initial: Sequence[Birth]
    report: float
    prune: float
    max_tracks: int
    gate_probability: float
    confirm: Sequence[int]


@overload
def make_filter(
    name: ParticleFilterName,
    model: Any,
    n_particles: int = ...,
    rng: _checks.SeedLike = ...,
    **options: Unpack[ParticleFilterOptions],
) -> filters.ParticleFilter: ...
@overload
def make_filter(
    name: Literal["ekf", "ckf", "enkf", "s2kf"],
    model: Any,
    n_particles: int = ...,
    rng: _checks.SeedLike = ...,
) -> kf.KalmanFilter: ...
@overload
def make_filter(
    name: Literal["ukf"],
    model: Any,
    n_particles: int = ...,
    rng: _checks.SeedLike = ...,
    *,
    alpha: float = ...,
    beta: float = ...,
    kappa: float = ...,
) -> kf.UnscentedKalmanFilter: ...
@overload
def make_filter(
    name: Literal["imm", "mkf"],
    model: Any,
    n_particles: int = ...,
    rng: _checks.SeedLike = ...,
    *,
    rule: str | MomentRule = ...,
) -> kf.KalmanFilter: ...
@overload
def make_filter(
    name: Literal["edh", "ledh"],
    model: Any,
    n_particles: int = ...,
    rng: _checks.SeedLike = ...,
    *,
    local: bool = ...,
    kalman: Callable[[Any], kf.KalmanFilter] = ...,
    flow_steps: int = ...,
) -> filters.DaumHuangFilter: ...
@overload
def make_filter(
    name: TrackerName,
    model: Any,
    n_particles: int = ...,
    rng: _checks.SeedLike = ...,
    **options: Unpack[TrackerOptions],
) -> LMBTracker: ...
# A name that is not a literal: only the options of a particle filter are known.
@overload
def make_filter(
    name: str,
    model: Any,
    n_particles: int = ...,
    rng: _checks.SeedLike = ...,
    **options: Unpack[ParticleFilterOptions],
) -> Any: ...
def make_filter(
    name: str,
    model: Any,
    n_particles: int = 100,
    rng: _checks.SeedLike = None,
    **options: Any,
) -> Any:
    """Build a filter of the catalogue for a model, or a tracker.

    Parameters
    ----------
    name : str
        Such as ``"auto"`` or ``"bootstrap"``; ``herdfilter filters`` lists them.
    model : object
        A state-space model; see `herdfilter.models.contract`.
    n_particles : int
        Number of particles; not used by filters without any.
    rng : numpy.random.Generator or int, optional
        Source of every random draw, or a seed; not used by deterministic filters.
    **options
        Keyword arguments of the filter's class, which replace those of the catalogue: objects, or constructor expressions
        such as ``"ResidualResampling()"``. Type checkers know those of each name. A tracker (`LMBTracker`) needs ``birth``.

    Examples
    --------
    On a linear Gaussian model two of three filters agree exactly with the Kalman filter.

    >>> model = hf.models.linear_chain(2)
    >>> truth, z = hf.simulate(model, steps=10, rng=1)
    >>> exact = hf.make_filter("ekf", model).run(z)
    >>> for name in ["auto", "ukf", "bootstrap"]:
    ...     result = hf.make_filter(name, model, n_particles=100, rng=0).run(z)
    ...     print(name, np.allclose(result.means, exact.means, atol=1e-9))
    ...
    auto True
    ukf True
    bootstrap False
    >>> hf.make_filter("bootstrap", model, 100, rng=0, resampling="SSPResampling()", resample_below=0.8).resampling
    SSPResampling()
    """
    spec = specifications.catalogue_spec(specifications.filter_name("name", name))
    for key, value in options.items():
        # The options are those of the class behind the name.
        known = specifications.parameter_names(spec.built())
        _checks.one_of(f"option of {name}", key, known, _checks.OPTION_SYNONYMS)
        # A string without a call is a name, such as that of a tracker's filter.
        if isinstance(value, str) and "(" in value:
            with expressions.prefix_errors(f"{key}: "):
                options[key] = expressions.evaluate(value)
    return spec(model, n_particles, _checks.as_generator(rng), **options)
