"""The bootstrap filter's compiled loop: what the same filter of a NumPy model does, in every case of a series."""

from functools import partial

import numpy as np
import pytest

import herdfilter as hf
from herdfilter.filters import compiled_loop
from herdfilter.filters.results import Outcome


def swing(x, dt, control, out):
    out[0] = x[0] + dt * x[1]
    out[1] = x[1] - dt * (9.81 * np.sin(x[0]) - control[0])


def swung(x, dt, control):
    return np.column_stack([x[:, 0] + dt * x[:, 1], x[:, 1] - dt * (9.81 * np.sin(x[:, 0]) - control)])


def direction(x, step, out):
    out[0] = x[0] + 0.01 * step
    out[1] = x[1]


def directions(x, step):
    return x + np.array([0.01 * step, 0.0])


def pendulum(**changes):
    """A pendulum that turns over, its angle and speed observed, in compiled functions and in NumPy."""
    given = {
        "Q": lambda dt: dt * np.array([[0.1, 0.05], [0.05, 0.5]]),
        "R": np.array([[0.2, 0.1], [0.1, 0.3]]),
        "initial_mean": [3.0, 1.0],
    }
    given |= {"initial_covariance": np.eye(2), "circular": [0], "observation_circular": [0]} | changes
    return hf.models.compiled(swing, direction, **given), hf.models.from_functions(swung, directions, **given)


def turned(steps, dt=0.3):
    """True states of the pendulum, and what is observed of them, without any control."""
    rng, x, states = np.random.default_rng(2), np.array([[3.0, 6.0]]), []
    for _ in range(steps):
        x = swung(x, dt, 0.0) + 0.1 * rng.normal(size=2)
        states.append(x[0])
    return np.array(states), np.array(states) + 0.3 * rng.normal(size=(steps, 2))


def same(one, other, tolerance=1e-6):
    for name in ("means", "covariances", "ess", "log_likelihoods", "resampled", "steps", "particles", "weights"):
        first, second = getattr(one, name), getattr(other, name)
        assert (first is None) == (second is None)
        if first is not None:
            assert np.allclose(first.astype(float), second.astype(float), tolerance, tolerance), name
    assert one.outcomes == other.outcomes
    assert one.circular == other.circular
    assert np.array_equal(one.times, other.times)


PROPOSALS = {
    "bootstrap": hf.BootstrapProposal(),
    "ranked": hf.RankedProposal(),
    "ranked-unguided": hf.RankedProposal(guided=False),
    "auto": hf.AutomaticProposal(),
}


@pytest.fixture(params=["bootstrap", "ranked", "auto"])
def proposal(request):
    return PROPOSALS[request.param]


def both(models, observations, n=60, given=None, **options):
    """Run a filter on two models, and compare what they say and where they stand."""
    filters = [hf.ParticleFilter(model, n, rng=0, **options) for model in models]
    results = [pf.run(observations, **(given or {})) for pf in filters]
    same(*results)
    one, other = filters
    assert one.step == other.step
    assert np.isclose(one.log_likelihood, other.log_likelihood)
    assert np.allclose(one.mean, other.mean)
    assert np.allclose(one.record.covariance, other.record.covariance)
    assert one.record.outcome is other.record.outcome
    assert one.rng.random() == other.rng.random()
    return results[0]


@pytest.fixture(autouse=True)
def short_series_go_through_the_loop(monkeypatch):
    monkeypatch.setattr(compiled_loop, "FEWEST_PARTICLES", 0)


@pytest.fixture
def stops(monkeypatch):
    """How many steps the filter took by itself."""
    taken = []
    ordinary = compiled_loop.run_in_steps

    def counted(online, steps, *args, **options):
        taken.extend(steps)
        return ordinary(online, steps, *args, **options)

    monkeypatch.setattr(compiled_loop, "run_in_steps", counted)
    return taken


@pytest.mark.parametrize(("model", "n"), [(hf.models.UNGM(), 1), (hf.models.UNGM(), 7), (hf.models.BearingsTracking(), 300)])
def test_models_of_the_project(model, n, proposal, stops):
    _, z = hf.simulate(model, 30, rng=1)
    both((model.compiled(), model), z, n, resample_below=0.7, proposal=proposal)
    assert not stops


@pytest.mark.parametrize(
    ("name", "resample_below"),
    [("bootstrap", 0.0), ("bootstrap", 1.0), ("ranked", 0.5), ("ranked-unguided", 0.5), ("auto", 0.5)],
)
def test_angles_controls_and_correlated_noise(name, resample_below, stops):
    # The prior is where the truth is. If the first observation excluded five of 60 equal particles, their shares of 0.1 / 60
    # would end exactly at 0.5 / 60, the place of the first ancestor, and the last bit would decide which that is.
    models, controls = pendulum(initial_mean=[3.0, 6.0]), np.sin(np.arange(40.0))
    truth, z = turned(40)
    assert np.ptp(truth[:, 0]) > np.pi  # it turns over
    given = {"dt": 0.3, "controls": controls, "keep_particles": True}
    result = both(models, z, given=given, resample_below=resample_below, proposal=PROPOSALS[name])
    assert not stops
    assert np.abs(result.particles[:, :, 0]).max() <= np.pi


def test_missing_and_partial_observations_and_steps_of_any_length(proposal, stops):
    models, rng = pendulum(R=lambda step: (1 + 0.1 * step) * np.eye(2)), np.random.default_rng(3)
    z = list(rng.normal(size=(30, 2)))
    z[3], z[4], z[9], z[10], z[15] = (
        None,
        [np.nan, np.nan],
        [np.nan, 1.0],
        [0.5, np.nan],
        np.ma.array([1.0, 2.0], mask=[0, 1]),
    )
    dt = rng.uniform(0.1, 0.5, 30)
    result = both(models, z, given={"dt": dt, "controls": np.zeros(30)}, proposal=proposal)
    assert [k for k, outcome in enumerate(result.outcomes) if outcome is Outcome.MISSING] == [3, 4]
    assert not stops


def test_a_second_run_goes_on_where_single_steps_and_a_prediction_ended(proposal):
    model = hf.models.UNGM()
    _, z = hf.simulate(model, 20, rng=1)
    pf = hf.ParticleFilter(model.compiled(), 50, proposal=proposal, rng=0)
    parts = [pf.run(z[:6])]
    pf.predict()
    single = pf.update(z[6]).mean
    pf.predict()
    parts.append(pf.run(z[8:]))
    whole = hf.ParticleFilter(model, 50, proposal=proposal, rng=0).run([*z[:7], None, *z[8:]])
    assert np.allclose(np.concatenate([parts[0].means, [single], parts[1].means]), np.delete(whole.means, 7, axis=0))
    assert parts[1].steps.tolist() == list(range(9, 21))


def test_a_short_series_is_not_worth_a_call(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(compiled_loop, "Segment", None)
    model = hf.models.UNGM().compiled()
    assert len(hf.ParticleFilter(model, 50, rng=0).run([0.1, 0.2])) == 2


def test_a_long_series_goes_through_in_parts(monkeypatch, proposal):
    model = hf.models.UNGM()
    _, z = hf.simulate(model, 30, rng=1)
    monkeypatch.setattr(compiled_loop, "MOST_PARTICLES", 400)
    both((model.compiled(), model), z, 100, proposal=proposal)


def near(z, x):
    return 0.0 if abs(z[0] - x[0]) < 1.0 else -np.inf


def near_all(z, x, step):
    return np.where(np.abs(z[0] - x[:, 0]) < 1.0, 0.0, -np.inf)


def fading(x):
    return 0.9 * x[0]


def rings():
    """A detector that rings within 1 of its place: the likelihood alone is known."""
    one = hf.models.compiled(fading, None, [[0.1]], None, [0.0], [[1.0]], log_likelihood=near)
    other = hf.models.from_functions(lambda x: 0.9 * x, None, [[0.1]], None, [0.0], [[1.0]])
    other.log_likelihood = near_all
    return one, other


@pytest.mark.parametrize("name", ["bootstrap", "ranked-unguided", "auto"])
def test_a_likelihood_that_vanishes_is_left_out_on_request(name, stops):
    z = [[0.0], [0.1], [30.0], [0.1], [0.0], [40.0], [41.0]]
    result = both(rings(), z, on_degeneracy="predict", proposal=PROPOSALS[name])
    assert [outcome.name for outcome in result.outcomes] == ["UPDATED"] * 2 + ["DEGENERATE"] + ["UPDATED"] * 2 + [
        "DEGENERATE"
    ] * 2
    assert len(stops) == (len(z) if name == "auto" else 3)  # by a likelihood alone, which the loop does not look ahead to


def test_a_likelihood_that_vanishes_raises_with_the_steps_before(proposal):
    errors = []
    for model in rings():
        pf = hf.ParticleFilter(model, 60, proposal=proposal, rng=0)
        with pytest.raises(hf.DegenerateWeightsError) as error:
            pf.run([[0.0], [0.1], [30.0], [0.1]])
        assert pf.step == 3
        errors.append(error.value)
        assert np.isclose(pf.mean[0], pf.particles.mean(), atol=0.2)
    assert errors[0].step == errors[1].step == 3
    same(errors[0].result, errors[1].result)
    assert len(errors[0].result) == 2


def grows(x, out):
    out[0] = 1e60 * x[0]


@pytest.mark.parametrize(
    ("name", "z"),
    [("bootstrap", [1.0, 1.0]), ("ranked", [[1.0], [np.inf]]), ("auto", [[1.0], [1.0, 2.0]]), ("bootstrap", [[1.0], "a"])],
)
def test_faults_of_model_and_data_are_those_of_the_numpy_model(name, z):
    models = hf.models.compiled(grows, fading, [[1.0]], [[1e300]], [1e40], [[1.0]]), None
    models = models[0], hf.models.from_functions(lambda x: 1e60 * x, lambda x: 0.9 * x, [[1.0]], [[1e300]], [1e40], [[1.0]])
    errors = []
    for model in models:
        with pytest.raises(ValueError, match=r"z: |transition_mean: ") as error:
            hf.ParticleFilter(model, 20, proposal=PROPOSALS[name], rng=0).run(z)
        errors.append(error.value)
    assert str(errors[0]) == str(errors[1])
    assert len(errors[0].result) == len(errors[1].result) == 1


def distance(x, parameters, out):
    out[0] = np.hypot(x[0] - parameters[0], x[1] - parameters[1])
    out[1] = np.arctan2(x[1] - parameters[1], x[0] - parameters[0])


def distances(place, x):
    away = x - np.array(place)
    return np.column_stack([np.hypot(*away.T), np.arctan2(away[:, 1], away[:, 0])])


def still(x, out):
    out[0], out[1] = x[0], x[1]


def test_readings_of_several_sensors(proposal, stops):
    noise = np.diag([0.3, 0.1])
    compiled_model = hf.models.compiled(
        still, None, Q=np.eye(2), R=None, initial_mean=[3.0, 4.0], initial_covariance=4 * np.eye(2)
    )
    model = hf.models.from_functions(
        lambda x: x, None, Q=np.eye(2), R=None, initial_mean=[3.0, 4.0], initial_covariance=4 * np.eye(2)
    )
    sensors = []
    for place in ([0.0, 0.0], [6.0, 1.0]):
        functions = hf.models.CompiledFunction(distance, 2, place), partial(distances, place)
        sensors.append([hf.Sensor(function, noise, circular=[1]) for function in functions])
    other = hf.Sensor(lambda x: x, np.eye(2))
    entries = [(1.0, 0, [5.0, 0.9]), (1.0, 1, [4.0, 2.2]), (1.5, 1, None), (2.5, 0, [5.1, np.nan]), (2.5, 2, [3.0, 4.2])]
    entries += [(4.0, 0, [5.2, 0.95]), (5.0, 0, [5.2, 0.95])]
    readings = [[(t, other if k == 2 else sensors[k][form], z) for t, k, z in entries] for form in (0, 1)]
    pairs = zip((compiled_model, model), readings, strict=True)
    results = [hf.ParticleFilter(m, 200, proposal=proposal, rng=0).run(r) for m, r in pairs]
    same(*results)
    assert len(stops) == 1  # the reading of the sensor in NumPy
    with pytest.raises(TypeError, match="sensor: expected a"):
        hf.ParticleFilter(compiled_model, 20).run([[1.0, 2.0]])


@pytest.mark.parametrize("name", ["ekf", "enkf", "ledh", "sqmc", "guided", "herded-kh", "augmented-gauss-kh"])
def test_other_filters_take_a_compiled_model(name):
    models, controls = pendulum(), np.zeros(4)
    _, z = turned(4)
    one, other = (hf.make_filter(name, model, 30, rng=0).run(z, dt=0.3, controls=controls) for model in models)
    assert np.allclose(one.means, other.means, 1e-6, 1e-6)
    assert np.allclose(one.covariances, other.covariances, 1e-6, 1e-6)


def test_only_plain_filters_go_through_the_loop():
    model = hf.models.UNGM().compiled()

    class Own(hf.BootstrapProposal):
        pass

    assert compiled_loop.takes(hf.ParticleFilter(model))
    assert compiled_loop.takes(hf.ParticleFilter(model, proposal=hf.RankedProposal(), resampling=hf.MultinomialResampling()))
    random = hf.RankedProposal(hf.RandomSampling()), hf.RankedProposal(randomised=True)
    for options in ({"proposal": Own()}, *({"proposal": p} for p in random), {"resampling": hf.MultinomialResampling()}):
        assert not compiled_loop.takes(hf.ParticleFilter(model, **options))
    jumping = hf.models.JumpMarkov([model, model], [[0.9, 0.1], [0.1, 0.9]])
    result = hf.ParticleFilter(jumping, 50, rng=0).run([[0.1], [0.2]])
    assert np.isfinite(result.means).all()


@pytest.mark.parametrize(("heading", "name"), [(0.0, "bootstrap"), (1.5, "ranked"), (3.1, "bootstrap"), (-1.5, "auto")])
def test_moments_of_angles_are_taken_about_their_mean_wherever_that_is(heading, name, stops):
    models, given = pendulum(initial_mean=[heading, 0.0], initial_covariance=0.1 * np.eye(2)), {"dt": 0.1, "controls": [0.0]}
    both(models, np.array([[heading, 0.0]]), given=given, proposal=PROPOSALS[name])
    assert not stops


def test_a_series_that_goes_on_from_uneven_weights_is_resampled_when_it_should_be():
    models, z, options = pendulum(R=np.diag([9.0, 9.0])), np.zeros((4, 2)), {"dt": 0.1, "control": 0.0}
    filters = [hf.ParticleFilter(model, 60, rng=0, resample_below=0.3) for model in models]
    for pf in filters:
        pf.predict(**options)
        pf.update([3.0, 0.0])
        assert 0.3 * 60 < pf.ess < 59
    results = [pf.run(z, dt=0.1, controls=np.zeros(4)) for pf in filters]
    assert not results[1].resampled[0]
    same(*results)
