"""What a user's function is given is read-only, and the same arguments give the same value: else an error names it."""

import numpy as np
from helpers import Walk, cases, refusal
from numpy.testing import assert_array_equal

import herdfilter as hf
from herdfilter._checks import ask_twice
from herdfilter.tracking import Birth, LMBTracker


def walk(**changes):
    given = {"f": lambda x: x, "h": lambda x: 2 * x, "Q": [[1.0]], "R": [[1.0]]}
    return hf.models.from_functions(
        **given | {"initial_mean": [0.0], "initial_covariance": [[1.0]]} | changes
    )


def noise(x):
    return np.random.normal(size=np.shape(x))  # noqa: NPY002  that it does so is the fault


def bootstrap(model):
    return hf.make_filter("bootstrap", model, 10, rng=0)


def sensing(*given, **options):
    sensor = hf.Sensor(*given, **options)
    return bootstrap(walk(h=None, R=None)).update([1.0], sensor=sensor)


def put(x):
    x[:] = 1e6
    return x


def noisy(x):
    return x + noise(x)


def tracker(**clutter):
    model = hf.models.WithClutter(
        walk(), **{"detection_probability": 0.9, "clutter_density": 0.1} | clutter
    )
    return LMBTracker(model, [Birth(0.1, model.initial)])


DOORS = {
    "f": lambda wrong: bootstrap(walk(f=wrong)),
    "f of one state": lambda wrong: bootstrap(walk(f=wrong, vectorised=False)),
    "f with a control": lambda wrong: bootstrap(walk(f=lambda x, control: x + wrong(control)[:1])),
    "f with two controls": lambda wrong: bootstrap(walk(f=lambda x, control: wrong(x) + control[0] + control[1])),
    "f with a product of controls": lambda wrong: bootstrap(walk(f=lambda x, control: wrong(x) + np.ones((1, 3)) @ control)),
    "f of the second mode": lambda wrong: hf.make_filter(
        "imm", hf.models.JumpMarkov([walk(), walk(f=wrong)], [[0.9, 0.1], [0.1, 0.9]])
    ),
    "f of a model for sensors": lambda wrong: bootstrap(walk(f=wrong, h=None, R=None)),
    "h": lambda wrong: hf.make_filter("ukf", walk(h=wrong)),
    "R": lambda wrong: hf.GridFilter(walk(R=lambda x: wrong(x)[:, :, None] ** 2), -9, 9, 50),
    "observation_jacobian": lambda wrong: bootstrap(walk(observation_jacobian=lambda x: wrong(x)[:, :, None])),
    "log_likelihood": lambda wrong: bootstrap(Walk(log_likelihood=lambda z, x, step: wrong(z) - x[:, 0])),
    "transition": lambda wrong: bootstrap(
        Walk(noise_dim=2, transition=lambda x, noise, dt, control, step: x + wrong(noise)[:, :1])
    ),
    "mean": lambda wrong: sensing(wrong, [[1.0]]),
    "log_likelihood of a sensor": lambda wrong: sensing(None, None, log_likelihood=lambda z, x: wrong(x)[:, 0]),
    "detection_probabilities": lambda wrong: tracker(detection_probability=lambda x: np.exp(-abs(wrong(x)))[:, 0]),
    "clutter_densities": lambda wrong: tracker(clutter_density=lambda z: np.exp(wrong(z))[:, 0]),
}  # fmt: skip
"""Function of a user -> what tries it, with a fault."""

ANOTHER_VALUE = "the same value at every call"


@cases("door", *DOORS)
@cases(
    "wrong message",
    (put, "a function that leaves its arguments as they are.*read-only"),
    (noisy, ANOTHER_VALUE),
)
def test_a_function_that_writes_to_its_arguments_or_draws_random_numbers_is_named(
    door, wrong, message
):
    with refusal(f"^{door.split()[0]}: expected {message}"):
        DOORS[door](wrong)


def test_a_random_covariance_is_named():
    with refusal(f"^Q: expected {ANOTHER_VALUE}"):
        hf.make_filter("ekf", walk(Q=lambda dt: noise(np.eye(1)) ** 2))


def test_a_function_that_remembers_its_calls_is_refused_each_time():
    class Counter:
        calls = 0

        def __call__(self, x):
            self.calls += 1
            return x + self.calls

    model = walk(f=Counter())
    for _ in range(2):
        with refusal(r"^f: expected the same value"):
            hf.make_filter("auto", model)


def test_rounding_and_nan_are_no_other_value():
    values = iter([[np.nan, -np.inf, 1.0], [np.nan, -np.inf, 1.0 + 1e-12], [0.0], [1e-6]])
    assert ask_twice("f", lambda: next(values)).shape == (1, 3)
    with refusal(r"^f: .* got \[\[0\.0\]\] and \[\[1e-06\]\]; leave noise to the filter$"):
        ask_twice("f", lambda: next(values))


@cases("name", "bootstrap", "auto", "herded-kh", "ukf", "enkf", "edh")
def test_what_is_written_later_changes_no_particle(name):
    """The check calls functions at step 1 only; afterwards NumPy refuses, and the filter stays as it was."""
    pf = hf.make_filter(
        name, walk(h=lambda x, step: np.multiply(x, 2, out=x) if step > 1 else 2 * x), 20, rng=0
    )
    pf.run([2.0])
    pf.predict()
    before = pf.mean
    with refusal("read-only"):
        pf.update([2.0])
    assert_array_equal(pf.mean, before)


def test_the_callers_arrays_are_not_written_to():
    given = {"z": np.ones((2, 1)), "control": np.ones((2, 1)), "scan": np.ones((1, 1))}

    def f(x, control, step):
        return x + (put(control) if step > 1 else 0)

    def log_likelihood(z, x, step):
        return 0 * x[:, 0] + (put(z) if step > 1 else 0)

    def density(z):
        return put(z)[:, 0] if (z == 1).all() else np.full(len(z), 0.1)

    runs = [
        (walk(f=f), {"observations": given["z"], "controls": given["control"]}),
        (Walk(log_likelihood=log_likelihood), {"observations": given["z"]}),
        (hf.models.WithClutter(walk(), 0.9, density), {"observations": [given["scan"]]}),
    ]
    for model, series in runs:
        with refusal("read-only"):
            bootstrap(model).run(**series)
    assert all((array == 1).all() for array in given.values())


@cases(
    "name",
    "bootstrap",
    "auto",
    "herded-kh",
    "ranked",
    "augmented-kh",
    "guided",
    "ukf",
    "enkf",
    "edh",
)
def test_a_function_may_return_what_it_is_given(name):
    parts = (
        walk(f=lambda x: x, h=lambda x: x[:, :1]),
        walk(f=lambda x: x.copy(), h=lambda x: x[:, :1].copy()),
    )
    means = [hf.make_filter(name, model, 20, rng=0).run([0.5, 1.5, 1.0]).means for model in parts]
    assert_array_equal(*means)


def test_functions_are_tried_once_for_a_model_and_for_the_code_of_a_sensor():
    calls = []

    def f(x):
        calls.append("f")
        return x

    model = walk(f=f, h=None, R=None)
    for _ in range(3):
        pf = bootstrap(model)
    assert calls == ["f", "f"]
    pf.predict()
    for k in range(4):
        pf.update([1.0], sensor=hf.Sensor(lambda x, k=k: calls.append("mean") or x + k, [[1.0]]))
    assert calls.count("mean") == 2 + 4


def test_a_transition_that_draws_from_the_generator_it_is_given_is_taken():
    class Simulated(Walk):
        transition_mean = property()

        def sample_transition(self, x, rng, dt, control, step):
            return x + rng.laplace(size=x.shape)

    results = [bootstrap(Simulated()).run([[0.3], [0.1]]).means for _ in range(2)]
    assert_array_equal(*results)
