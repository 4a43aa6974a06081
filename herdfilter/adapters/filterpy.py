"""Models from filters of the library filterpy (Labbe)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from herdfilter._checks import Array, as_array, as_covariance, as_numbers, as_positive
from herdfilter.adapters._calls import Calls, Vectorised
from herdfilter.adapters._circles import check_addition, check_mean, circular_entries
from herdfilter.adapters._filterpy_parts import Linear, Matrix, Predicted, Slopes, Timed, check_methods
from herdfilter.models.from_functions import FunctionModel

__all__ = ["from_filterpy"]

POINTS = ("UnscentedKalmanFilter", "CubatureKalmanFilter", "EnsembleKalmanFilter")
"""Filters with functions ``fx`` and ``hx``."""

EXTENDED = ("ExtendedKalmanFilter",)
LINEAR = (*EXTENDED, "KalmanFilter")
"""Filters with a matrix F."""

TAKE = dict.fromkeys(("hx", "HJacobian", "residual", "args"), EXTENDED) | {"hx_args": (*POINTS, *EXTENDED)}
"""Argument -> the filters that it is for; all others are for those of `POINTS`."""


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
    vectorised: Vectorised = False,
    time_unit: float | None = None,
    ignore: Sequence[str] = (),
) -> FunctionModel:
    r"""Return the model that a filter of filterpy was given, for any filter of ours.

    Its ``x``, ``P``, ``Q``, ``R`` (and ``F``, ``H``, ``B``) are copied as they are now: state and covariance become the
    initial distribution, and what is done to the filter later changes nothing here. What belongs to the filter and not to
    the model, such as sigma points, is left behind.

    Angles are found out by trying: an entry is circular if the filter's ``residual_x`` or ``residual_z`` gives 0.1 for a
    difference of :math:`2 \pi + 0.1`, and plain if it gives differences as they are. Mean functions and ``state_add`` are
    tried, too. Whatever is neither a number nor an angle in radians is refused.

    Parameters
    ----------
    kf : object
        An UnscentedKalmanFilter, CubatureKalmanFilter or EnsembleKalmanFilter, whose ``fx(x, dt)`` and ``hx(x)`` become
        transition and observation; an ExtendedKalmanFilter, with ``F`` and ``B`` or a ``predict_x`` of its own; or a
        KalmanFilter, with ``F``, ``B`` and ``H``.
    hx, HJacobian, residual : callable
        What ``ExtendedKalmanFilter.update`` is given as `Hx`, `HJacobian` and `residual`, and only for that filter. Without
        `HJacobian` our extended Kalman filter takes differences.
    fx_args, hx_args, args : tuple or mapping
        Further arguments of `fx`, of `hx` and of `HJacobian`, by position or by name.
    control : str, optional
        Name of the argument by which ``fx`` takes the control input, where there is one; the two linear ones take
        ``B @ control``.
    vectorised : bool or "columns"
        How `fx` and `hx` are called: for one state (d,) at a time, as filterpy does; with ``True`` for all, (n, d) to
        (n, d) or (n, k); with ``"columns"`` for all as columns, (d, n) to (d, n) or (k, n), which functions that are written
        with ``x[0]``, ``F @ x`` and NumPy's functions allow as they are: whether they do is tried.
    time_unit : float, optional
        What a step of ``dt=1.0`` is to ``fx``: the filter's own ``dt`` unless given, so that `run` without times makes the
        steps of ``kf.predict()``. With 1.0, times and `dt` are those that filterpy is given. Linear ones have no time.
    ignore : sequence of str
        Methods such as ``"predict"`` that the filter's own class, or the filter, has in place of filterpy's, and that change
        no part of the model: one that keeps a log. All others that predict or update are refused.

    Returns
    -------
    FunctionModel
        As of `herdfilter.models.from_functions`; NaN in an observation stands for a missing entry.

    Raises
    ------
    ImportError
        If filterpy is not installed.
    TypeError
        If `kf` is none of those filters, has a ``predict`` or ``update`` of its own, or an argument is not for it.
    ValueError
        If a part cannot be converted; the message names it.

    Notes
    -----
    Our unscented and extended Kalman filters on the converted model give filterpy's numbers, unless it averages angles by
    their sines and cosines: ours averages them as numbers about that direction, as the unscented transform means it. Q
    does not depend on `dt`, as it does not in filterpy.

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
    >>> means = [(kf.predict(), kf.update(one), kf.x)[2] for one in z]
    >>> print(np.allclose(hf.ExtendedKalmanFilter(model).run(z).means, means))
    True
    """
    kind = _kind(kf, ignore)
    given = {
        "hx": hx,
        "HJacobian": HJacobian,
        "residual": residual,
        "control": control,
        "time_unit": time_unit,
    }
    given |= {"fx_args": _some(fx_args), "hx_args": _some(hx_args), "args": _some(args)}
    for name, value in given.items():
        if value is not None and kind not in TAKE.get(name, POINTS):
            raise TypeError(f"{name}: only for {' and '.join(TAKE.get(name, POINTS))}, and this is a {kind}")
    if kind == "ExtendedKalmanFilter" and hx is None:
        raise TypeError("hx: expected the function that ExtendedKalmanFilter.update is given as Hx, got None")
    x = as_numbers(f"{kind}.x", kf.x, (None,))
    shape, mean = x.shape, as_array(f"{kind}.x", np.ravel(x).copy(), (None,))
    d = len(mean)
    P, Q = _covariance(f"{kind}.P", kf.P, d), _covariance(f"{kind}.Q", kf.Q, d)
    k = int(kf.dim_z if hasattr(kf, "dim_z") else kf._dim_z)
    R, probes = _covariance(f"{kind}.R", kf.R, k), _probes(mean, P)
    jacobians: dict[str, Callable[..., Array]] = {}
    moved: Callable[..., Array]
    if kind in LINEAR:
        own = kind == "ExtendedKalmanFilter" and "predict_x" not in ignore and _predicts(kf)
        linear = Predicted(kf) if own else Linear(as_array(f"{kind}.F", kf.F, (d, d)), kf.B)
        moved, jacobians["transition_jacobian"] = linear, linear.jacobian
    else:
        unit = as_positive("time_unit", _own_dt(kf) if time_unit is None else time_unit)
        fx = Calls(f"{kind}.fx", kf.fx, d, (d,), vectorised, fx_args)
        moved = Timed(fx, unit, control)
        if control is None:
            fx.check(probes, unit)
    seen: Callable[[Array], Array]
    if kind == "KalmanFilter":
        seen = matrix = Matrix(as_array("KalmanFilter.H", np.atleast_2d(kf.H), (k, d)).copy())
        jacobians["observation_jacobian"] = matrix.jacobian
    else:
        name, function, one = (f"{kind}.hx", kf.hx, (d,)) if hx is None else ("hx", hx, shape)
        seen = calls = Calls(name, function, k, one, vectorised, hx_args)
        calls.check(probes)
    if HJacobian is not None:
        slopes = Slopes(Calls("HJacobian", HJacobian, k * d, shape, False, args), k)
        slopes.jacobian(probes[:1], 1)
        jacobians["observation_jacobian"] = slopes.jacobian
    z = seen(mean[None])[0]
    turned = _angles(kf, kind, "z", z) if residual is None else circular_entries("residual", residual, z)
    model = FunctionModel(moved, seen, Q, R, mean, P, _angles(kf, kind, "x", mean), turned)
    for name, jacobian in jacobians.items():
        setattr(model, name, jacobian)
    return model


def _kind(kf: Any, ignore: Sequence[str]) -> str:
    """Return which of filterpy's filters this is, with the methods of that."""
    try:
        from filterpy import kalman
    except ImportError:
        raise ImportError("filterpy: not installed; pip install filterpy") from None
    kinds = (
        kalman.UnscentedKalmanFilter,
        kalman.CubatureKalmanFilter,
        kalman.EnsembleKalmanFilter,
        kalman.ExtendedKalmanFilter,
        kalman.KalmanFilter,
    )
    for kind in kinds:
        if isinstance(kf, kind):
            break
    else:
        got = f"the class {kf.__name__}" if isinstance(kf, type) else type(kf).__name__
        raise TypeError(f"kf: expected a filter of filterpy.kalman ({', '.join((*POINTS, *LINEAR))}), got {got}")
    check_methods(kf, kind, ignore)
    if kind is kalman.KalmanFilter:
        if kf.alpha != 1:
            raise ValueError(f"KalmanFilter.alpha: expected 1, got {kf.alpha:g}: fading memory is no model")
        if np.any(kf.M):
            raise ValueError(
                "KalmanFilter.M: expected zeros, got others: transition and observation noise have to be independent"
            )
    return kind.__name__


def _some(arguments: Any) -> Any:
    """Return further arguments, None if there are none."""
    return None if isinstance(arguments, tuple | Mapping) and not arguments else arguments


def _predicts(kf: Any) -> bool:
    """Whether an ExtendedKalmanFilter has a prediction of its own."""
    from filterpy.kalman import ExtendedKalmanFilter

    return "predict_x" in vars(kf) or type(kf).predict_x is not ExtendedKalmanFilter.predict_x


def _own_dt(kf: Any) -> float:
    return kf.dt if hasattr(kf, "dt") else kf._dt


def _covariance(name: str, value: Any, size: int) -> Array:
    """Return a copy; a number stands for a variance, in one dimension only, as filterpy would add it to every entry."""
    matrix = np.atleast_2d(value) if np.ndim(value) == 0 else value
    return as_covariance(name, as_array(name, matrix, (size, size)).copy(), size)


def _probes(mean: Array, P: Array) -> Array:
    """States at which functions are tried, (2 d + 1, d)."""
    steps = np.diag(np.sqrt(np.diagonal(P)))
    return np.vstack([mean, mean + steps, mean - steps])


def _angles(kf: Any, kind: str, of: str, base: Array) -> tuple[int, ...]:
    """Return the circular entries of states, or of observations, by the filter's functions."""
    circular = circular_entries(f"{kind}.residual_{of}", getattr(kf, f"residual_{of}", np.subtract), base)
    check_mean(f"{kind}.{of}_mean", getattr(kf, f"{of}_mean", None), base, circular)
    if of == "x":
        check_addition(f"{kind}.state_add", getattr(kf, "state_add", np.add), base, circular)
    return circular
