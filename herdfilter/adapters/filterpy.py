"""Models from filters of the library filterpy (Labbe)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from filterpy import kalman

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter.adapters import _functions as functions
from herdfilter.models.from_functions import FunctionModel

__all__ = ["from_filterpy"]

POINT_FILTERS = ("UnscentedKalmanFilter", "CubatureKalmanFilter", "EnsembleKalmanFilter")
"""Filters with functions ``fx`` and ``hx``."""

EXTENDED = ("ExtendedKalmanFilter",)
TAKERS = {
    **dict.fromkeys(("fx_args", "control", "time_unit"), POINT_FILTERS),
    **dict.fromkeys(("hx", "HJacobian", "residual", "args"), EXTENDED),
    "hx_args": POINT_FILTERS + EXTENDED,
}
"""Argument of `from_filterpy` -> the filters that it is for."""

FILTERS = (*POINT_FILTERS, *EXTENDED, "KalmanFilter")

STEP_METHODS = ("predict", "update", "compute_process_sigmas", "cross_variance")
"""Prefixes of the names of methods that predict or update."""


def from_filterpy(
    kf: Any,
    *,
    hx: Callable[..., Any] | None = None,
    HJacobian: Callable[..., Any] | None = None,
    residual: Callable[[Any, Any], Any] | None = None,
    fx_args: Any = (),
    hx_args: Any = (),
    args: Any = (),
    control: str | None = None,
    vectorised: functions.Vectorised = False,
    time_unit: float | None = None,
    ignore: Sequence[str] = (),
) -> FunctionModel:
    r"""Convert the model of one of filterpy's filters, for use in any filter of this package.

    ``x``, ``P``, ``Q``, ``R`` (and ``F``, ``H``, ``B``) are copied as they are now; state and covariance become the
    initial distribution. What belongs to the filter and not to the model, such as sigma points, is left out.

    A trial finds the angles: an entry is circular if the filter's ``residual_x`` or ``residual_z`` gives 0.1 for a
    difference of :math:`2 \pi + 0.1`. Entries that are neither numbers nor angles in radians are refused. Mean functions and
    ``state_add`` are not converted: our filters know angles, and average and add them as angles.

    Our unscented and extended Kalman filters on the converted model give filterpy's numbers, unless it averages angles by
    their sines and cosines: ours averages them as numbers about that direction. Q does not depend on `dt`, as in filterpy.

    Parameters
    ----------
    kf : object
        An UnscentedKalmanFilter, CubatureKalmanFilter or EnsembleKalmanFilter, whose ``fx(x, dt)`` and ``hx(x)`` become
        transition and observation; an ExtendedKalmanFilter, with ``F`` and ``B`` or a ``predict_x`` of its own; or a
        KalmanFilter, with ``F``, ``B`` and ``H``.
    hx, HJacobian, residual : callable
        Arguments `Hx`, `HJacobian` and `residual` of ``ExtendedKalmanFilter.update``, only for that filter. Without
        `HJacobian` our extended Kalman filter takes differences.
    fx_args, hx_args, args : tuple or mapping
        Further arguments of `fx`, of `hx` and of `HJacobian`, by position or by name.
    control : str, optional
        Name of the argument by which ``fx`` takes the control input; the two linear filters take ``B @ control``.
    vectorised : bool or "columns"
        Call `fx` and `hx` for one state (d,) at a time, as filterpy does; with ``True`` for all, (n, d) to (n, d) or
        (n, k); with ``"columns"`` for all as columns, (d, n) to (d, n) or (k, n), after a trial.
    time_unit : float, optional
        Duration for ``fx`` of a step ``dt=1.0``: the filter's own ``dt`` unless given. Linear filters have no time.
    ignore : sequence of str
        Methods such as ``"predict"`` that replace filterpy's without a change of the model, for instance to keep a log.
        Other replaced methods that predict or update are refused.

    Returns
    -------
    FunctionModel
        NaN in an observation stands for a missing entry.

    Raises
    ------
    TypeError
        If `kf` is not one of those filters, has a ``predict`` or ``update`` of its own, or an argument is not for it.
    ValueError
        If a part cannot be converted; the message names it.

    Examples
    --------
    >>> from filterpy.kalman import KalmanFilter
    >>> from herdfilter.adapters.filterpy import from_filterpy
    >>> kf = KalmanFilter(dim_x=2, dim_z=1)
    >>> kf.F, kf.H = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    >>> kf.Q, kf.R = 0.01 * np.eye(2), np.array([[0.25]])
    >>> model = from_filterpy(kf)
    >>> truth, z = hf.simulate(model, 20, rng=1)
    >>> kf.x, kf.P = model.initial.mean, model.initial.covariance
    >>> means = [(kf.predict(), kf.update(z_k), kf.x)[2] for z_k in z]
    >>> print(np.allclose(hf.ExtendedKalmanFilter(model).run(z).means, means))
    True
    """
    arguments = locals()  # name -> value, before anything else is defined
    kind = _kind_of_filter(kf, ignore)
    extended = kind in EXTENDED
    for name, takers in TAKERS.items():
        if arguments[name] not in (None, (), {}) and kind not in takers:
            raise TypeError(
                f"{name}: expected None unless kf is {' or '.join(takers)}, got one for a {kind}"
            )
    if extended and hx is None:
        raise TypeError(
            "hx: expected the function that ExtendedKalmanFilter.update is given as Hx, got None"
        )
    # filterpy's states are vectors (d,) or columns (d, 1), ours vectors
    mean = _checks.as_array(f"{kind}.x", np.ravel(kf.x).copy(), (None,))
    d = len(mean)
    k = len(np.atleast_1d(kf.R))
    # filterpy would add a number to every entry
    P, Q, R = (
        _checks.as_covariance(f"{kind}.{name}", np.atleast_2d(getattr(kf, name)), size)
        for name, size in (("P", d), ("Q", d), ("R", k))
    )
    steps = np.diag(np.sqrt(np.diagonal(P)))
    # states at which the user's functions are tried
    probes = np.vstack([mean, mean + steps, mean - steps])
    jacobians: dict[str, Callable[..., Array]] = {}
    transition: Callable[..., Array]
    # The transition: fx(x, dt) of point filters, predict_x of a subclass, or else F x + B u.
    if kind in POINT_FILTERS:
        filter_dt = kf.dt if kind == "EnsembleKalmanFilter" else kf._dt
        unit = _checks.as_positive("time_unit", filter_dt if time_unit is None else time_unit)
        fx = functions.VectorisedFunction(f"{kind}.fx", kf.fx, d, (d,), vectorised, fx_args)
        transition = partial(timed_transition, fx, unit, control)
        if control is None:
            fx.check(probes, unit)
        else:  # only the signature, as no control input is known yet
            fx.check_arguments(unit, **{control: None})
    elif extended and "predict_x" not in ignore and _is_replaced(kf, "predict_x"):
        transition = predict_x = PredictX(kf)
        jacobians["transition_jacobian"] = predict_x.jacobian
    else:
        F = _checks.as_array(f"{kind}.F", kf.F, (d, d)).copy()
        B = None if np.ndim(kf.B) == 0 else np.array(kf.B, dtype=np.float64)
        transition = partial(matrix_transition, F, B)
        jacobians["transition_jacobian"] = partial(functions.repeat_matrix, F)
    # The observation: H x, or hx(x), which extended filters get as an argument of update.
    if kind == "KalmanFilter":
        H = _checks.as_array("KalmanFilter.H", np.atleast_2d(kf.H), (k, d)).copy()
        observation: Callable[[Array], Array] = partial(functions.multiply, H)
        jacobians["observation_jacobian"] = partial(functions.repeat_matrix, H)
    else:
        name = "hx" if extended else f"{kind}.hx"
        shape = np.shape(kf.x) if extended else (d,)
        observation = functions.VectorisedFunction(name, hx or kf.hx, k, shape, vectorised, hx_args)
        observation.check(probes)
    if HJacobian is not None:
        slopes = functions.VectorisedFunction(
            "HJacobian", HJacobian, k * d, np.shape(kf.x), False, args
        )
        slopes.check(probes[:1])
        jacobians["observation_jacobian"] = lambda x, step: slopes(x).reshape(len(x), k, d)
    # The residual functions are tried where the filter is, as they may not be defined everywhere.
    z = observation(mean[None])[0]
    # filters without residual functions subtract
    residual_x = getattr(kf, "residual_x", np.subtract)
    circular = functions.circular_entries(f"{kind}.residual_x", residual_x, mean)
    label = f"{kind}.residual_z" if residual is None else "residual"
    residual_z: Any = residual or getattr(kf, "residual_z", np.subtract)
    observed = functions.circular_entries(label, residual_z, z)
    return FunctionModel(transition, observation, Q, R, mean, P, circular, observed, **jacobians)  # type: ignore[arg-type]


def _kind_of_filter(kf: Any, ignore: Sequence[str]) -> str:
    """Return the name of the filter's class in filterpy; raise an error if it replaces methods of that class."""
    kind = next((name for name in FILTERS if isinstance(kf, getattr(kalman, name))), None)
    if kind is None:
        raise TypeError(
            f"kf: expected a filter of filterpy.kalman ({', '.join(FILTERS)}), got {_checks.short_repr(kf)}"
        )
    methods = [name for name in vars(getattr(kalman, kind)) if name.startswith(STEP_METHODS)]
    ignored = [_checks.one_of("ignore", name, methods) for name in ignore]
    for name in methods:
        # a subclass may replace predict_x: PredictX calls it
        replaced = name in vars(kf) if name == "predict_x" else _is_replaced(kf, name)
        if replaced and name not in ignored:
            instead = "write the model by from_functions"
            if name == "update":
                instead = "give its function of the state as hx"
            raise TypeError(
                f"{type(kf).__name__}.{name}: expected {kind}'s own, got another, which would be lost; {instead}, or "
                f"convert with ignore=[{name!r}] if it changes no part of the model"
            )
    if kind == "KalmanFilter" and (kf.alpha != 1 or np.any(kf.M)):
        raise ValueError(
            f"KalmanFilter.alpha, M: expected 1 and zeros, got {kf.alpha} and {_checks.short_repr(kf.M)}; a model has no "
            "fading memory, and its transition and observation noise are independent"
        )
    return kind


def _is_replaced(kf: Any, name: str) -> bool:
    """Return True if a method of a filter is not filterpy's own."""
    return name in vars(kf) or not getattr(type(kf), name).__module__.startswith("filterpy.")


def timed_transition(
    fx: functions.VectorisedFunction,
    unit: float,
    control_name: str | None,
    x: Array,
    dt: float,
    control: Any,
) -> Array:
    """Return the transition ``fx(x, dt)`` of states (n, d)."""
    if control is None:
        return fx(x, dt * unit)
    if control_name is None:
        raise ValueError(
            f"control: expected None, got {_checks.short_repr(control)}; name the argument of fx that takes it, as in "
            "from_filterpy(kf, control='u')"
        )
    return fx(x, dt * unit, **{control_name: control})


def matrix_transition(F: Array, B: Array | None, x: Array, dt: float, control: Any) -> Array:
    """Return the transition ``F x + B u`` of states (n, d)."""
    if control is None:
        return x @ F.T
    if B is None:
        raise ValueError(
            f"control: expected None, as the filter has no B, got {_checks.short_repr(control)}"
        )
    return x @ F.T + np.ravel(B @ np.ravel(control))


class PredictX:
    """A transition by the ``predict_x`` of a subclass of ExtendedKalmanFilter, with the F that it sets as its Jacobian."""

    def __init__(self, kf: Any) -> None:
        # The user's filter goes on, and must not change the model.
        self.kf = copy.deepcopy(kf)
        self.Q = np.array(kf.Q)

    def __call__(self, x: Array, dt: float, control: Any) -> Array:
        return np.array([np.ravel(self._after(state, control).x) for state in x])

    def jacobian(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """Return the F of each state, (n, d, d)."""
        return np.array([self._after(state, control).F for state in x])

    def _after(self, state: Array, control: Any) -> Any:
        # predict_x changes the filter that it is called on: each state gets a fresh copy
        kf = copy.copy(self.kf)
        kf.F = np.array(kf.F, dtype=np.float64)
        kf.x = state.reshape(np.shape(kf.x)).copy()
        kf.predict_x(0 if control is None else control)
        if not np.array_equal(kf.Q, self.Q):
            raise ValueError(
                f"{type(kf).__name__}.predict_x: expected it to set x and F, got another Q; write a model with this noise"
            )
        return kf
