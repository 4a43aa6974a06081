"""Models made of filterpy's filters, beside filterpy's own numbers."""

import pickle
import types
from functools import partial

import filterpy.kalman as fp
import numpy as np
from filterpy.kalman.CubatureKalmanFilter import spherical_radial_sigmas
from helpers import cases, refusal, refuses
from numpy.testing import assert_allclose, assert_array_equal

import herdfilter as hf
from herdfilter.adapters.filterpy import from_filterpy

DT = 0.5
F = np.array([[1, DT, 0, 0], [0, 1, 0, 0], [0, 0, 1, DT], [0, 0, 0, 1]])
SENSOR = np.array([-2.0, -1.0])
Z = np.random.default_rng(3).normal([[3.0, 0.9]], [[1.0, 0.3]], (20, 2))


def moved(x, dt):
    return np.array([x[0] + dt * x[1], x[1], x[2] + dt * x[3], x[3] - 0.1 * dt * x[3] * abs(x[3])])


def seen(x):
    return np.array(
        [
            np.hypot(x[0] - SENSOR[0], x[2] - SENSOR[1]),
            np.arctan2(x[2] - SENSOR[1], x[0] - SENSOR[0]),
        ]
    )


def wrapped(entries):
    def residual(a, b):
        y = np.subtract(a, b)
        for i in entries:
            y[i] = (y[i] + np.pi) % (2 * np.pi) - np.pi
        return y

    return residual


def mean_about(entries):
    """Mean of numbers about the direction that the weighted sines and cosines have."""

    def mean(points, weights):
        about = points[0] * 0.0
        for i in entries:
            about[i] = np.arctan2(weights @ np.sin(points[:, i]), weights @ np.cos(points[:, i]))
        residual = wrapped(entries)
        return about + weights @ np.array([residual(p, about) for p in points])

    return mean


def changed(kf, **attributes):
    for name, value in attributes.items():
        setattr(kf, name, value)
    return kf


def prepared(kf):
    kf.x = np.array([1.0, 0.4, 2.0, -0.3]).reshape(np.shape(kf.x))
    kf.P = np.diag([0.5, 0.2, 0.4, 0.3]) + 0.05
    kf.Q = 0.02 * np.eye(4) + 0.001
    kf.R = np.diag([0.09, 0.01])
    return kf


def unscented(points=fp.MerweScaledSigmaPoints(4, 0.5, 2.0, 0.5), **options):  # noqa: B008
    return prepared(fp.UnscentedKalmanFilter(4, 2, DT, seen, moved, points, **options))


def updated(kf, z):
    kf.update(z)


def largest_difference(kf, ours, observations, update=updated):
    """Largest difference of means, covariances and log-likelihoods of the two, and of angles but for whole turns."""
    worst = 0.0
    for z in observations:
        kf.predict()
        ours.predict()
        update(kf, z)
        record = ours.update(z)
        circular = getattr(ours.model, "circular", ())
        apart = hf.angles.wrap_angles(record.mean - np.ravel(kf.x), circular)
        apart = [apart, record.covariance - kf.P, record.log_likelihood - kf.log_likelihood]
        worst = max(worst, *(np.abs(part).max() for part in apart))
    return worst


def with_new_points(kf, z):
    """filterpy updates with the propagated points, which lack the transition noise; the algorithm draws new ones."""
    kf.sigmas_f = spherical_radial_sigmas(kf.x, kf.P)
    kf.update(z[:, None])


@cases(
    "kf ours update",
    (unscented(), partial(hf.UnscentedKalmanFilter, alpha=0.5, beta=2.0, kappa=0.5), updated),
    (
        unscented(fp.JulierSigmaPoints(4, kappa=-0.5)),
        partial(hf.UnscentedKalmanFilter, kappa=-0.5),
        updated,
    ),
    (
        prepared(fp.CubatureKalmanFilter(4, 2, DT, seen, moved)),
        hf.CubatureKalmanFilter,
        with_new_points,
    ),
    ids=["scaled", "negative kappa", "cubature"],
)
def test_filters_of_points_have_filterpys_numbers(kf, ours, update):
    model = from_filterpy(kf, vectorised="columns")
    assert largest_difference(kf, ours(model), Z, update=update) < 1e-10


def test_an_ensemble_is_taken():
    kf = prepared(fp.EnsembleKalmanFilter(np.zeros(4), np.eye(4), 2, DT, 10, seen, moved))
    model = from_filterpy(kf)
    x = np.array([[1.0, 2.0, 3.0, 4.0]])
    assert_array_equal(model.transition_mean(x, 1.0, None, 1)[0], moved(x[0], DT))
    assert_array_equal(model.initial.means[0], kf.x)


def test_linear_kalman_filter_has_filterpys_numbers_with_control():
    kf = prepared(fp.KalmanFilter(4, 2, 1))
    kf.F = F
    kf.H = np.eye(4)[::2] + 0.1
    kf.B = np.array([[0.1], [0.4], [0.0], [0.2]])
    model = from_filterpy(kf)
    inputs = np.sin(np.arange(20.0))
    for ours in (hf.UnscentedKalmanFilter(model), hf.ExtendedKalmanFilter(model)):
        theirs = pickle.loads(pickle.dumps(kf))
        result = ours.run(Z, controls=inputs[:, None])
        means = []
        for z, u in zip(Z, inputs, strict=True):
            theirs.predict(u=np.array([[u]]))
            theirs.update(z)
            means.append(theirs.x.ravel())
        assert_allclose(result.means, means, rtol=0, atol=1e-12)
        assert_allclose(result.covariances[-1], theirs.P, rtol=0, atol=1e-12)


@cases("own", False, True, ids=["F", "predict_x"])
def test_extended_kalman_filter_has_filterpys_numbers(own):
    def slope_seen(x):
        dx = x[0] - SENSOR[0]
        dy = x[2] - SENSOR[1]
        r = np.hypot(dx, dy)
        return np.array([[dx / r, 0, dy / r, 0], [-dy / r**2, 0, dx / r**2, 0]])

    class Nonlinear(fp.ExtendedKalmanFilter):
        def predict_x(self, u=0):
            self.F = F.copy()
            self.F[3, 3] = 1 - 0.2 * DT * abs(self.x[3])
            self.x = moved(self.x, DT)

    kf = prepared((Nonlinear if own else fp.ExtendedKalmanFilter)(4, 2))
    kf.x = kf.x.ravel()
    kf.F = F
    residual = wrapped([1])
    model = from_filterpy(kf, hx=seen, HJacobian=slope_seen, residual=residual)
    assert model.observation_circular == (1,)
    ours = hf.ExtendedKalmanFilter(model)

    def update(kf, z):
        kf.update(z, slope_seen, seen, residual=residual)

    assert largest_difference(kf, ours, Z, update) < 1e-10


def test_bearings_and_a_heading_across_the_cut_have_filterpys_numbers():
    """Heading 3.1, turned past pi, and bearings on both sides of the cut; filterpy is told how by five functions."""

    def drive(x, dt):
        return np.array([x[0] + dt * np.cos(x[2]), x[1] + dt * np.sin(x[2]), x[2] + 0.05 * dt])

    def look(x):
        return np.array([np.arctan2(x[1], x[0]), x[2]])

    points = fp.MerweScaledSigmaPoints(3, 0.8, 2.0, 0.0, subtract=wrapped([2]))
    kf = fp.UnscentedKalmanFilter(
        3, 2, 1.0, look, drive, points, x_mean_fn=mean_about([2]), z_mean_fn=mean_about([0, 1]),
        residual_x=wrapped([2]), residual_z=wrapped([0, 1]), state_add=np.add,
    )  # fmt: skip
    kf.x = np.array([-3.0, 0.5, 3.1])
    kf.P = np.diag([0.1, 0.1, 0.05])
    kf.Q = 0.01 * np.eye(3)
    kf.R = np.diag([0.02, 0.05])
    model = from_filterpy(kf)
    assert model.circular == (2,)
    assert model.observation_circular == (0, 1)
    z = hf.simulate(model, 20, rng=1)[1]
    assert np.abs(np.diff(z[:, 1])).max() > 5  # the data cross the cut
    assert largest_difference(kf, hf.UnscentedKalmanFilter(model, 0.8, 2.0, 0.0), z) < 1e-10


def test_time_is_counted_in_the_filters_own_steps_unless_told_otherwise():
    kf = unscented()
    x = kf.x[None] + np.arange(3.0)[:, None]
    own = from_filterpy(kf)
    seconds = from_filterpy(kf, time_unit=1.0)
    assert_array_equal(own.transition_mean(x, 1.0, None, 1), [moved(s, DT) for s in x])
    assert_array_equal(seconds.transition_mean(x, 0.2, None, 1), [moved(s, 0.2) for s in x])


def test_further_arguments_and_control_reach_the_functions():
    kf = unscented()
    kf.fx = lambda x, dt, gain, u=0.0: x + dt * gain * u
    kf.hx = lambda x, origin: x[:2] - origin
    model = from_filterpy(kf, fx_args={"gain": 2.0}, hx_args=(1.0,), control="u")
    x = np.zeros((2, 4))
    assert_array_equal(model.transition_mean(x, 1.0, 3.0, 1), x + DT * 6.0)
    assert_array_equal(model.observation_mean(x, 1), x[:, :2] - 1.0)


def test_what_is_done_to_the_filter_later_changes_nothing():
    kf = unscented()
    model = from_filterpy(kf)

    def parts():
        return [model.initial.means, model.initial.covariances, model.transition_covariance(1.0, 1),
                model.observation_covariance(1)]  # fmt: skip

    before = [part.copy() for part in parts()]
    for matrix in (kf.x, kf.P, kf.Q, kf.R):
        matrix *= 7
    for old, new in zip(before, parts(), strict=True):
        assert_array_equal(old, new)


@cases("vectorised", False, "columns")
def test_functions_that_draw_random_numbers_are_named(vectorised):
    kf = unscented()
    kf.fx = lambda x, dt, u: x + u + np.random.normal(size=x.shape)  # noqa: NPY002
    with refusal(r"^f: expected the same value at every call"):
        hf.make_filter("auto", from_filterpy(kf, vectorised=vectorised, control="u"))


# Methods that are not filterpy's own


class Counting:
    """A mixin that comes before filterpy's class."""

    def update(self, z, **options):
        self.count = getattr(self, "count", 0) + 1
        super().update(z, **options)


class Counted(Counting, fp.KalmanFilter):
    pass


def patched(name, value, kind=fp.KalmanFilter):
    kf = kind(2, 1)
    setattr(kf, name, value(kf))
    return kf


def predict_of_another(kf, u=None):
    kf.x = kf.x + 1


EKF = fp.ExtendedKalmanFilter


def first(x):
    return x[:1]


def convert(kf, options):
    return from_filterpy(kf, **options)


test_a_method_that_is_not_filterpys_is_named = refuses(
    convert,
    (Counted(2, 1), {}, "Counted.update"),
    (patched("predict", lambda kf: types.MethodType(predict_of_another, kf)), {}, "KalmanFilter.predict"),
    (patched("predict", lambda kf: fp.KalmanFilter(2, 1).predict), {}, "KalmanFilter.predict"),
    (patched("predict_x", lambda kf: lambda u=0: print(kf.x), EKF), {"hx": first}, "ExtendedKalmanFilter.predict_x"),
    error=TypeError,
    words="^{}: expected .*, got .*ignore=",
)  # fmt: skip


def test_an_update_of_its_own_is_given_as_hx():
    kf = patched("update", lambda kf: print, EKF)
    with refusal("give its function of the state as hx, or convert", TypeError):
        from_filterpy(kf, hx=first)


def test_no_states_have_no_values_and_no_arguments_are_none():
    model = from_filterpy(unscented())
    assert model.observation_mean(np.empty((0, model.dim)), 1).shape[0] == 0
    assert from_filterpy(fp.KalmanFilter(2, 1), fx_args={}, hx_args={}).dim == 2


def test_what_changes_no_part_of_the_model_is_converted():
    rows = {}
    for kind in (fp.KalmanFilter, Counted):
        kf = kind(2, 1)
        kf.F = np.array([[1.0, 1.0], [0.0, 1.0]])
        kf.H = np.array([[1.0, 0.0]])
        model = from_filterpy(kf, ignore=["update"] if kind is Counted else ())
        rows[kind] = hf.ExtendedKalmanFilter(model).run([1.0, 2.0]).means
    assert_array_equal(rows[Counted], rows[fp.KalmanFilter])


class Adaptive(EKF):
    def predict_x(self, u=0):
        self.Q = self.Q * float(self.x[0, 0])


KALMAN = prepared(fp.KalmanFilter(4, 2))

test_what_cannot_be_converted_is_named = refuses(
    convert,
    (unscented(residual_z=lambda a, b: (np.subtract(a, b) + 180) % 360 - 180), {}, "residual_z: .* in entry 0 .*radians"),
    (changed(unscented(), hx=first), {}, r"hx: expected 2 numbers .*got shape \(9, 1\)"),
    (changed(unscented(), hx=lambda x: np.array([x[0] if x[0] > 0 else 0.0, x[1]])), {"vectorised": "columns"},
     "hx: expected the same values for states as columns"),
    (changed(unscented(), fx=lambda x, dt, u: x + u), {},
     r"^UnscentedKalmanFilter.fx: expected a function of a state and dt, got .*'u'\); .* control='u', "),
    (changed(unscented(), Q=np.eye(3)), {}, r"UnscentedKalmanFilter.Q: .*\(4, 4\)"),
    (unscented(), {"vectorised": "rows"}, "vectorised"),
    (fp.InformationFilter(2, 1), {}, "InformationFilter"),
    (KALMAN, {"time_unit": 2.0}, "time_unit: expected None unless kf is UnscentedKalmanFilter or"),
    (changed(prepared(fp.KalmanFilter(4, 2)), alpha=1.02), {}, "fading memory"),
    (Counted(2, 1), {"ignore": ["updte"]}, r"^ignore: unknown 'updte'; did you mean 'update'"),
    error=(TypeError, ValueError),
)  # fmt: skip

test_what_cannot_be_predicted_is_named = refuses(
    lambda model, x, control: model.transition_mean(x, 1.0, control, 1),
    (from_filterpy(KALMAN), np.zeros((1, 4)), np.ones(1), "no B"),
    (from_filterpy(Adaptive(2, 1), hx=first), np.array([[3.0, 2.0]]), None,
     r"^Adaptive.predict_x: expected it to set x and F, got another Q"),
)  # fmt: skip
