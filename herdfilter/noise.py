"""Noise that nobody told: the covariances of a model's transition and observation, by maximum likelihood."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from herdfilter import filters
from herdfilter._checks import Array, as_definite, one_of
from herdfilter._repr import summary_repr
from herdfilter.filters.kalman import UnscentedKalmanFilter
from herdfilter.likelihood import MaximumLikelihood, _LogLikelihood, maximise_likelihood
from herdfilter.models import contract
from herdfilter.models.resolved import Measurement, Transition
from herdfilter.models.series import series

__all__ = ["FittedNoise", "fit_noise"]

LARGEST_PARAMETER = 18.42  # size of a parameter: the logarithm of 1e8
NORMAL_QUANTILE = 1.96  # of intervals of 95 %
# Losses of log-likelihood at a bound: below the first the maximum is there, below the second it is within the interval.
AT_BOUND = 0.05
WITHIN_INTERVAL = 1.92
MOST_EVALUATIONS = 300  # of a filter, in each search

# Root mean square over the parameters, in standard errors, of a point's distance, and that of the farthest that count: near
# enough for a log-likelihood to be quadratic, far enough for jumps to be small beside what it loses there.
SPREAD = 0.75
FARTHEST = 1.4
FIRST_ERROR = 0.3  # standard error of a parameter, a logarithm, before anything is known of it
LARGEST_CHANGE = 4.0  # factor of a curvature from one set of points to the next; the search ends only at a smaller one
NEAR = 0.5  # distance of the maximum from the centre of the points at which the search ends
POINTS_EACH = 4  # points for each coefficient of the quadratic


@dataclass(frozen=True, eq=False, repr=False)
class FittedNoise:
    """A model with the noise covariances under which its observations are most likely: the result of `fit_noise`.

    Attributes
    ----------
    model : object
        The model with the fitted covariances, for any filter.
    sensors : dict of Sensor to Sensor
        The fitted sensor for each of those in the readings.
    covariances : dict of str to ndarray
        ``"Q"``, ``"R"``, and ``"sensor 1"`` and so on by their place in this dictionary, in the order of their first
        readings. A Q that varies is that of the longest step, an R that of the first one.
    standard_errors : dict of str to ndarray
        Standard errors of all their entries, by the delta method; NaN for those that no fitted parameter changes.
    factors : dict of str to ndarray, shape (3,)
        Each factor by which a variance of the model is multiplied, and the 95 % interval of its logarithm: ``"Q"`` of a
        scale, ``"Q[0, 0]"`` and so on of a diagonal. Those of "full" are of the squared diagonal of a Cholesky factor.
    log_likelihood : float
        Of all observations.
    unidentified : tuple of str
        Parameters that the observations do not tell: 0 or infinity is within the 95 % interval, or it reaches beyond a
        factor of 100 on either side. Where the maximum is at 0 or infinity, the other standard errors hold with that fixed.
    maximum : MaximumLikelihood
        What is behind it: the logarithms of the factors, and slopes below the diagonals of Cholesky factors, without those
        that were fixed. Where a quadratic was fitted, `smooth` is False, and errors include those that the jumps leave.

    Examples
    --------
    >>> model = hf.models.linear_chain(1)
    >>> fit = hf.fit_noise(model, hf.simulate(model, steps=40, rng=1)[1], what={"R": "scale"})
    >>> factor, lower, upper = fit.factors["R"]
    >>> bool(lower < 1 < upper), fit.unidentified
    (True, ())
    """

    model: Any
    sensors: dict[Any, Any]
    covariances: dict[str, Array]
    standard_errors: dict[str, Array]
    factors: dict[str, Array]
    log_likelihood: float
    unidentified: tuple[str, ...]
    maximum: MaximumLikelihood

    def __repr__(self) -> str:
        return summary_repr(
            self,
            **self.factors,
            log_likelihood=self.log_likelihood,
            unidentified=self.unidentified,
        )


def fit_noise(
    model: Any,
    observations: Any,
    what: str | Mapping[str, str] = "scale",
    n_particles: int = 500,
    **run: Any,
) -> FittedNoise:
    """Find the covariances Q and R of a model's noise: those under which a filter finds the observations most likely.

    An unscented Kalman filter leads to the neighbourhood of the maximum. If the filter ``auto`` agrees with it there, all is
    linear, and `maximise_likelihood` finds the exact maximum. Otherwise ``auto`` decides. Its log-likelihood jumps a little,
    so that a quadratic is fitted to many of its values. The error that the jumps leave is part of the standard errors.

    Parameters
    ----------
    model : object
        A model with additive Gaussian noise. Its own covariances are the start, which may be wrong by a factor of 1000.
    observations : sequence
        As for ``run``: one observation per step, with None or NaN where one is missing, or readings (time, sensor, z). Or a
        list of such series, (T, k) each, of independent states.
    what : {"scale", "diagonal", "full"} or mapping
        One factor for each covariance; or its variances, while correlations stay, and a variance of 0; or all entries. A
        mapping has a word for ``"Q"``, for ``"R"`` or for both, and leaves the other one as it is. ``"R"`` stands for the
        sensors, too; those whose `mean` has the same code, such as a moving one at different times, share their factors.
    n_particles : int
        Number of particles of ``auto``.
    **run
        ``dt``, ``times``, ``controls``, ``start`` and ``late`` as for ``run``, the same for all series.

    Raises
    ------
    TypeError
        If noise that is to be fitted is not additive and Gaussian, or an R depends on the state.
    ValueError
        If there is no observation, or a covariance that is to be fitted whole is singular.
    Exception
        Errors of the model and of the filter, if the filter finds no likelihood at all.

    See Also
    --------
    maximise_likelihood

    Notes
    -----
    Box and Wilson (1951), "On the experimental attainment of optimum conditions", for quadratics that are fitted anew about
    their maximum. Ionides, Breto, Park, Smith and King (2017), "Monte Carlo profile confidence intervals for dynamic
    systems", for the errors of a log-likelihood that jumps.

    Examples
    --------
    A random walk with steps of variance 4 is observed with noise of variance 1. The model has it the other way round.

    >>> def walk(Q, R):
    ...     return hf.models.LinearGaussian([[1]], [[1]], [[Q]], [[R]], [0], [[1]])
    ...
    >>> truth, z = hf.simulate(walk(4.0, 1.0), steps=100, rng=3)
    >>> fit = hf.fit_noise(walk(1.0, 4.0), z)
    >>> {name: round(matrix.item(), 1) for name, matrix in fit.covariances.items()}
    {'Q': 4.7, 'R': 0.9}
    >>> hf.make_filter("auto", fit.model).run(z).means.shape
    (100, 1)
    """
    contract.require(model, "fit_noise", ("dim", "initial"))
    # A number has no entries; `series` says what is wrong with it.
    first = next(iter(observations), 0) if np.iterable(observations) else 0
    ndim = np.asarray(first, dtype=object).ndim
    runs = list(observations) if ndim > 1 + contract.has_scans(model) else [observations]
    steps = [step for z in runs for step in series(z, **run)]
    covariances = _free_covariances(model, steps, what)
    names = np.concatenate([c.names for c in covariances])
    p = len(names)

    def at(theta: Array) -> Any:
        """Return the model with these covariances, and sensors with theirs in place of the given ones."""
        fitted = model
        sensors = {}
        for c in covariances:
            root = c.root(theta)
            for sensor in c.sensors:
                covariance = congruent(root, sensor.covariance)
                sensors[sensor] = replace(sensor, covariance=covariance, log_likelihood=None)
            if not c.sensors:
                fitted = (FittedTransition if c.name == "Q" else FittedObservation)(fitted, root)
        return fitted, sensors

    errors = []

    def likelihood(make: Any) -> _LogLikelihood:
        """Return the log-likelihood of all series by a filter of the model; -inf where that fails."""

        def build(theta: Array) -> Any:
            def run_all(_: Any) -> Any:
                fitted, sensors = at(theta)
                total = 0.0
                try:
                    for z in runs:
                        if sensors:
                            z = [(time, sensors.get(s, s), value) for time, s, value in z]
                        total += make(fitted).run(z, **run).log_likelihood
                except Exception as error:
                    errors.append(error)
                    total = -np.inf
                return SimpleNamespace(log_likelihood=total)

            return SimpleNamespace(run=run_all)

        return _LogLikelihood(
            build, [], {}, np.full(p, -LARGEST_PARAMETER), np.full(p, LARGEST_PARAMETER)
        )

    f = likelihood(
        lambda fitted: filters.ParticleFilter(
            fitted, n_particles, filters.AutomaticProposal(), rng=0
        )
    )
    by_kalman = likelihood(UnscentedKalmanFilter)
    theta: Array = np.zeros(p)
    if by_kalman(theta) > -np.inf:
        # One search alone may end too early.
        for radius in (2.0, 1.0):
            by_kalman.search(np.full(p, radius), MOST_EVALUATIONS)
        theta = max(theta, by_kalman.best(), key=f)
    if f(theta) == -np.inf:
        raise errors[-1]
    if np.isclose(f(theta), by_kalman(theta), 1e-8):
        # All is linear, and the Kalman filter exact.
        f = by_kalman

    def losses(shifts: Array) -> Array:
        """Return what the log-likelihood loses at the ends of each parameter, (2, p), where the others shift so (p, p)."""
        ends = []
        for sign in (-1, 1):
            moved = theta + sign * shifts
            np.fill_diagonal(moved, sign * LARGEST_PARAMETER)
            ends.append([f(theta) - f(row) for row in moved])
        return np.array(ends)

    at_zero, at_infinity = losses(np.zeros((p, p))) < AT_BOUND
    free = ~(at_zero | at_infinity)
    free |= not free.any()
    # What has no effect at all stays as it was.
    fixed = np.where(free, 0.0, LARGEST_PARAMETER * (1.0 * at_infinity - at_zero))
    units = np.eye(p)[free]
    if f is by_kalman:
        from scipy.optimize import minimize

        bounds = [(-LARGEST_PARAMETER, LARGEST_PARAMETER)] * len(units)

        # To the exact maximum: along what the observations hardly tell, steps as wide as errors are too wide.
        def loss(u: Array) -> float:
            return -f(fixed + u @ units)

        start = minimize(loss, theta[free], method="L-BFGS-B", bounds=bounds).x
        maximum = maximise_likelihood(
            lambda u: f.build(fixed + u @ units), [], start, bounds, names[free]
        )
    else:
        maximum = fit_quadratic(lambda u: f(fixed + u @ units), theta[free], names[free])
    theta = fixed + maximum.theta @ units
    spread = np.where(free, maximum.standard_errors @ units, np.nan)
    half = np.minimum(NORMAL_QUANTILE * spread, LARGEST_PARAMETER)
    intervals = np.transpose(np.exp([theta, theta - half, theta + half]))
    # The others as they are likely at the end of an interval: about where they are best if one goes on to its bound.
    shifts = NORMAL_QUANTILE**2 * (units.T @ maximum.covariance @ units) / half[:, None]
    told = (half < LARGEST_PARAMETER / 4) & (losses(np.nan_to_num(shifts)).min(0) > WITHIN_INTERVAL)
    fitted_covariances = {}
    standard_errors = {}
    for c in covariances:
        fitted_covariances[c.name] = covariance = congruent(c.root(theta), c.start)
        # The delta method, with differences as slopes along the free parameters.
        moved = [congruent(c.root(theta + 1e-6 * unit), c.start) for unit in units]
        slopes = (np.array(moved) - covariance) / 1e-6
        variances = np.einsum("iab,ij,jab->ab", slopes, maximum.covariance, slopes)
        standard_errors[c.name] = np.sqrt(np.where(variances == 0, np.nan, variances))
    fitted, sensors = at(theta)
    return FittedNoise(
        fitted,
        sensors,
        fitted_covariances,
        standard_errors,
        {str(name): x for name, x in zip(names, intervals, strict=True) if "slope" not in name},
        maximum.log_likelihood,
        tuple(names[~told].tolist()),
        maximum,
    )


def _free_covariances(model: Any, steps: Any, what: Any) -> Any:
    """Check the arguments of `fit_noise`, and find out which covariances there are."""
    forms = what if isinstance(what, Mapping) else dict.fromkeys("QR", what)
    for form in forms.values():
        one_of("what", form, ("scale", "diagonal", "full"))
    # Sensors of the same code share a covariance: a moving one is a new object at every time.
    groups: Any = {"Q": []} if "Q" in forms else {}
    for sensor in dict.fromkeys(step.sensor for step in steps) if "R" in forms else ():
        mean = getattr(sensor, "mean", "R")
        groups.setdefault(getattr(mean, "__code__", mean), []).append(sensor)
    if not steps or not groups:
        raise ValueError("observations, what: expected an observation, and Q or R, got none")
    covariances: list[FreeCovariance] = []
    x = model.initial.sample(8, np.random.default_rng(0))
    for key, sensors in groups.items():
        if key == "Q":
            contract.require(model, "a fit of Q", contract.ADDITIVE)
            start = Transition(model, max(step.dt for step in steps)).covariance
        else:
            observed = sensors[0].on(model) if sensors[0] else model
            contract.require(observed, "a fit of R", contract.OBSERVED)
            contract.require_constant_noise(observed, "a fit of R")
            measurement = Measurement(observed)
            means, noises = measurement.moments(x, 1)
            start = noises[0]
            derived = Measurement(FittedObservation(observed, np.eye(len(start))))
            densities = (part.log_likelihood(means[0], x, 1) for part in (measurement, derived))
            if measurement.scans or np.ptp(np.subtract(*densities)) > 1e-6:
                raise TypeError(
                    "model: a fit of R needs additive Gaussian noise, got a log_likelihood of other noise; fit Q alone, "
                    "what={'Q': 'scale'}"
                )
        form = forms["Q" if key == "Q" else "R"]
        name = key if isinstance(key, str) else f"sensor {len(covariances)}"
        if form == "full":
            as_definite(name, start, None)
        first = sum(len(c.names) for c in covariances)
        covariances.append(FreeCovariance(name, form, start, first, list(filter(None, sensors))))
    return covariances


@dataclass(frozen=True, eq=False)
class FreeCovariance:
    """A covariance M C M' with a lower triangular M of free parameters; C is that of the model, M = I where all are 0.

    `form` is "scale", "diagonal" or "full". The parameters, from number `first` on of all, are logarithms of factors of
    variances, and slopes below the diagonal. `sensors` have this covariance; without any, it is the model's.
    """

    name: str
    form: str
    start: Array
    first: int
    sensors: Any

    @property
    def entries(self) -> Any:
        """True for the parameters in M, (k, k); those of a scale are one parameter."""
        return (np.tri if self.form == "full" else np.eye)(len(self.start), dtype=bool)

    @property
    def names(self) -> Any:
        """Names of the parameters."""
        if self.form == "scale":
            return [self.name]
        indices = np.argwhere(self.entries).tolist()
        return [f"{'slope of ' * (i > j)}{self.name}[{i}, {j}]" for i, j in indices]

    def root(self, theta: Array) -> Any:
        """Return M, (k, k), given all parameters."""
        parameters = np.zeros(self.start.shape)
        parameters[self.entries] = theta[self.first : self.first + len(self.names)]
        variances = np.diagonal(self.start)
        sd = np.sqrt(variances + (variances == 0))
        slopes = np.eye(len(sd)) + np.tril(parameters, -1)
        # In units of standard deviations: of the model on the right, of what is fitted on the left.
        return (sd * np.exp(np.diagonal(parameters) / 2))[:, None] * slopes / sd


@dataclass(eq=False)
class Fitted(contract.Wrapper):
    """A model one of whose covariances C is M C M'; M is the `root`."""

    model: Any
    root: Array


class FittedTransition(Fitted):
    """A model whose transition covariance is fitted."""

    # Compiled functions have covariances of their own.
    hidden = ("compiled", "series_engine", "transition_log_density", *contract.FROM_NOISE)

    def transition_covariance(self, dt: float, step: int) -> Any:
        """Return M Q M', (d, d)."""
        return congruent(self.root, self.model.transition_covariance(dt, step))


class FittedObservation(Fitted):
    """A model whose observation covariance is fitted, and whose likelihood is derived from it."""

    hidden = (
        "compiled",
        "series_engine",
        "log_likelihood",
        "partial_observations",
        "sample_observation",
    )

    def observation_covariance(self, step: int) -> Any:
        """Return M R M', (k, k)."""
        return congruent(self.root, self.model.observation_covariance(step))


def congruent(root: Array, covariance: Any) -> Any:
    """Return M C M'."""
    return root @ covariance @ root.T


def fit_quadratic(f: Any, start: Array, names: Any) -> MaximumLikelihood:
    """Fit a quadratic to a log-likelihood about its maximum, by least squares over evenly spread points.

    Points are added about the maximum of the quadratic before, in its shape: response surfaces (Box and Wilson 1951). The
    covariance includes the error of the maximum by the jumps, as that of the regression (Ionides et al. 2017).
    """
    from scipy.special import ndtri
    from scipy.stats import qmc

    p = len(start)
    rows, columns = np.triu_indices(p)
    n_coefficients = 1 + p + len(rows)
    sequence = qmc.Halton(p, seed=0)
    centre = start
    root = FIRST_ERROR * np.eye(p)
    points: Any = []
    values: Any = []
    converged = False
    while not converged and len(values) < MOST_EVALUATIONS:
        batch = centre + SPREAD * ndtri(sequence.random(2 * n_coefficients)) @ root.T
        points += list(batch)
        values += map(f, batch)
        # Points of before count where they are not far, in units of the present standard errors.
        u = np.linalg.solve(root, (np.array(points) - centre).T).T
        near = (np.mean(u**2, axis=1) <= FARTHEST**2) & np.isfinite(values)
        u = u[near]
        y = np.array(values)[near]
        design = np.column_stack([np.ones(len(u)), u, u[:, rows] * u[:, columns]])
        inverse = np.linalg.pinv(design)
        coefficients = inverse @ y
        freedom = max(len(y) - n_coefficients, 1)
        roughness = np.linalg.norm(y - design @ coefficients) / freedom**0.5
        hessian = np.zeros((p, p))
        hessian[rows, columns] = coefficients[p + 1 :]
        curvatures, vectors = np.linalg.eigh(-hessian - hessian.T)
        bounded = np.clip(curvatures, 1 / LARGEST_CHANGE, LARGEST_CHANGE)
        # To the axes of the quadratic, in units of its own standard errors.
        axes = vectors / np.sqrt(bounded)
        root = root @ axes
        step = np.clip(axes.T @ coefficients[1 : p + 1], -FARTHEST, FARTHEST)
        centre = centre + root @ step
        jumps = roughness * root @ axes.T @ inverse[1 : p + 1]
        converged = bool(
            len(y) >= POINTS_EACH * n_coefficients
            and np.linalg.norm(step) <= NEAR
            and (bounded == curvatures).all()
        )
    covariance = (root @ root.T + jumps @ jumps.T) * (1.0 if converged else np.nan)
    return MaximumLikelihood(
        centre,
        np.sqrt(np.diagonal(covariance)),
        covariance,
        coefficients[0] + step @ step / 2,
        len(values),
        np.full(p, roughness),
        False,
        "converged" if converged else "stopped",
        tuple(names),
    )
