"""The bootstrap filter's compiled loop: what the same filter of a NumPy model does, in every case of a series."""

import logging
from functools import partial

import numpy as np
import pytest
from helpers import EYE, cases, polar, refusal

import herdfilter as hf
from herdfilter.compiled import loop

UNGM = hf.models.UNGM()


def swing(x, dt, control, out):
    out[0] = x[0] + dt * x[1]
    out[1] = x[1] - dt * (9.81 * np.sin(x[0]) - control[0])


def swung(x, dt, control):
    return np.column_stack(
        [x[:, 0] + dt * x[:, 1], x[:, 1] - dt * (9.81 * np.sin(x[:, 0]) - control)]
    )


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
    given |= {"initial_covariance": EYE, "circular": [0], "observation_circular": [0]} | changes
    return hf.models.CompiledModel(swing, direction, **given), hf.models.from_functions(
        swung, directions, **given
    )


def turned(steps, dt=0.3):
    """True states of the pendulum, and what is observed of them, without any control."""
    rng = np.random.default_rng(2)
    x = np.array([[3.0, 6.0]])
    states = []
    for _ in range(steps):
        x = swung(x, dt, 0.0) + 0.1 * rng.normal(size=2)
        states.append(x[0])
    return np.array(states), np.array(states) + 0.3 * rng.normal(size=(steps, 2))


def same(one, other, tolerance=1e-6):
    for name in (
        "means",
        "covariances",
        "ess",
        "log_likelihoods",
        "resampled",
        "steps",
        "particles",
        "weights",
    ):
        first = getattr(one, name)
        second = getattr(other, name)
        assert (first is None) == (second is None)
        if first is not None:
            assert np.allclose(first.astype(float), second.astype(float), tolerance, tolerance), (
                name
            )
    assert one.outcomes == other.outcomes
    assert one.circular == other.circular
    assert np.array_equal(one.times, other.times)
    assert np.array_equal(one.distinct_ancestors, other.distinct_ancestors, equal_nan=True)
    assert (one.ancestors is None) == (other.ancestors is None)
    if one.ancestors is not None:
        assert np.array_equal(one.ancestors, other.ancestors)


PROPOSALS = {
    "bootstrap": hf.BootstrapProposal(),
    "ranked": hf.RankedProposal(),
    "ranked-unguided": hf.RankedProposal(guided=False),
    "auto": hf.AutomaticProposal(),
    "sqmc": hf.SequentialQuasiMonteCarlo(),
    "sqmc-guided": hf.SequentialQuasiMonteCarlo(guided=True),
}


@pytest.fixture(params=["bootstrap", "ranked", "auto", "sqmc", "sqmc-guided"])
def proposal(request):
    return PROPOSALS[request.param]


def both(models, observations, n=60, given=None, **options):
    """Run a filter on two models, and compare what they say and where they stand."""
    one, other = filters = [hf.ParticleFilter(model, n, rng=0, **options) for model in models]
    results = [pf.run(observations, **(given or {})) for pf in filters]
    same(*results)
    assert one.step == other.step
    assert np.isclose(one.log_likelihood, other.log_likelihood)
    assert np.allclose(one.mean, other.mean)
    assert np.allclose(one.record.covariance, other.record.covariance)
    assert one.rng.random() == other.rng.random()
    return results[0]


@pytest.fixture(autouse=True)
def short_series_go_through_the_loop(monkeypatch):
    monkeypatch.setattr(loop, "FEWEST_PARTICLES", 0)


@pytest.fixture
def stops(monkeypatch):
    """How many steps the filter took by itself."""
    taken = []
    ordinary = loop.run_in_steps

    def counted(online, steps, *args, **options):
        taken.extend(steps)
        return ordinary(online, steps, *args, **options)

    monkeypatch.setattr(loop, "run_in_steps", counted)
    return taken


@pytest.mark.slow
@cases("model n", (UNGM, 1), (UNGM, 7), (hf.models.BearingsTracking(), 300))
def test_models_of_the_project(model, n, proposal, stops):
    _, z = hf.simulate(model, 30, rng=1)
    both((model.compiled(), model), z, n, resample_below=0.7, proposal=proposal)
    assert not stops


@cases(
    "name resample_below",
    ("bootstrap", 0.0),
    ("bootstrap", 1.0),
    ("ranked", 0.5),
    ("ranked-unguided", 0.5),
    ("auto", 0.5),
    ("sqmc", 0.5),
    ("sqmc-guided", 0.5),
)
def test_angles_controls_and_correlated_noise(name, resample_below, stops):
    # The prior is where the truth is. If the first observation excluded five of 60 equal particles, their shares of 0.1 / 60
    # would end exactly at 0.5 / 60, the place of the first ancestor, and the last bit would decide which that is.
    models = pendulum(initial_mean=[3.0, 6.0])
    controls = np.sin(np.arange(40.0))
    truth, z = turned(40)
    assert np.ptp(truth[:, 0]) > np.pi  # it turns over
    given = {"dt": 0.3, "controls": controls, "keep_particles": True}
    result = both(models, z, given=given, resample_below=resample_below, proposal=PROPOSALS[name])
    assert not stops
    assert np.abs(result.particles[:, :, 0]).max() <= np.pi


def test_missing_and_partial_observations_and_steps_of_any_length(proposal, stops):
    models = pendulum(R=lambda step: (1 + 0.1 * step) * EYE)
    rng = np.random.default_rng(3)
    z = list(rng.normal(size=(30, 2)))
    z[3] = None
    z[4] = [np.nan, np.nan]
    z[9] = [np.nan, 1.0]
    z[10] = [0.5, np.nan]
    z[15] = np.ma.array([1.0, 2.0], mask=[0, 1])
    dt = rng.uniform(0.1, 0.5, 30)
    result = both(models, z, given={"dt": dt, "controls": np.zeros(30)}, proposal=proposal)
    assert [k for k, outcome in enumerate(result.outcomes) if outcome is hf.Outcome.MISSING] == [
        3,
        4,
    ]
    assert not stops


def test_a_second_run_goes_on_where_single_steps_and_a_prediction_ended(proposal):
    _, z = hf.simulate(UNGM, 20, rng=1)
    whole = hf.ParticleFilter(UNGM, 50, proposal=proposal, rng=0).run([*z[:7], None, *z[8:]])
    pf = hf.ParticleFilter(UNGM.compiled(), 50, proposal=proposal, rng=0)
    assert np.allclose(pf.run(z[:6]).means, whole.means[:6])
    pf.predict()
    assert np.allclose(pf.update(z[6]).mean, whole.means[6])
    pf.predict()
    last = pf.run(z[8:])
    assert np.allclose(last.means, whole.means[8:])
    assert last.steps.tolist() == list(range(9, 21))


def test_a_long_series_goes_through_in_parts(monkeypatch, proposal):
    _, z = hf.simulate(UNGM, 30, rng=1)
    monkeypatch.setattr(loop, "MOST_PARTICLES", 400)
    both((UNGM.compiled(), UNGM), z, 100, proposal=proposal)


def near(z, x):
    return 0.0 if abs(z[0] - x[0]) < 1.0 else -np.inf


def near_all(z, x, step):
    return np.where(np.abs(z[0] - x[:, 0]) < 1.0, 0.0, -np.inf)


def fading(x):
    return 0.9 * x[0]


def rings():
    """A detector that rings within 1 of its place: the likelihood alone is known."""
    one = hf.models.CompiledModel(fading, None, [[0.1]], None, [0.0], [[1.0]], log_likelihood=near)
    other = hf.models.from_functions(lambda x: 0.9 * x, None, [[0.1]], None, [0.0], [[1.0]])
    other.log_likelihood = near_all
    return one, other


@cases("name", "bootstrap", "ranked-unguided", "auto")
def test_a_likelihood_that_vanishes_is_left_out_on_request(name, stops):
    z = [[0.0], [0.1], [30.0], [0.1], [0.0], [40.0], [41.0]]
    result = both(rings(), z, on_degeneracy="predict", proposal=PROPOSALS[name])
    assert [outcome.name for outcome in result.outcomes] == ["UPDATED"] * 2 + ["DEGENERATE"] + [
        "UPDATED"
    ] * 2 + ["DEGENERATE"] * 2
    # by a likelihood alone, which the loop does not look ahead to
    assert len(stops) == (len(z) if name == "auto" else 3)


def test_half_a_reading_is_dropped_whole_and_said_once_unless_the_model_takes_it():
    """Of the pairs here the second number is never there, and the likelihood reads the first alone."""
    pairs = np.column_stack([0.1 * np.arange(200) % 0.7, np.full(200, np.nan)])
    for model in rings():
        with pytest.warns(hf.PartialObservationWarning) as caught:
            dropped = hf.ParticleFilter(model, 60, rng=0).run(pairs)
        assert len(caught) == 1
        assert {*dropped.outcomes} == {hf.Outcome.MISSING}
        assert np.abs(dropped.covariances[-1] - 0.1 / (1 - 0.9**2)).max() < 0.2
    models = rings()
    for model in models:
        model.partial_observations = True
    result = both(models, list(pairs))
    assert {*result.outcomes} == {hf.Outcome.UPDATED}
    same(result, both(rings(), list(pairs[:, :1])))


def test_a_likelihood_that_vanishes_raises_with_the_steps_before(proposal):
    errors = []
    for model in rings():
        pf = hf.ParticleFilter(model, 60, proposal=proposal, rng=0)
        with pytest.raises(hf.DegenerateWeightsError) as error:
            pf.run([[0.0], [0.1], [30.0], [0.1]])
        assert pf.step == error.value.step == 3
        errors.append(error.value.result)
    same(*errors)
    assert len(errors[0]) == 2


def grows(x, out):
    out[0] = 1e60 * x[0]


@cases(
    "name z",
    ("bootstrap", [1.0, 1.0]),
    ("ranked", [[1.0], [np.inf]]),
    ("auto", [[1.0], [1.0, 2.0]]),
    ("bootstrap", [[1.0], "a"]),
)
def test_faults_of_model_and_data_are_those_of_the_numpy_model(name, z):
    given = ([[1.0]], [[1e300]], [1e40], [[1.0]])
    errors = []
    numpy = hf.models.from_functions(lambda x: 1e60 * x, lambda x: 0.9 * x, *given)
    for model in (hf.models.CompiledModel(grows, fading, *given), numpy):
        with refusal(r"z: |transition_mean: ") as error:
            hf.ParticleFilter(model, 20, proposal=PROPOSALS[name], rng=0).run(z)
        errors.append((str(error.value), len(error.value.result)))
    assert errors[0] == errors[1]
    assert errors[0][1] == 1


def distance(x, parameters, out):
    out[0] = np.hypot(x[0] - parameters[0], x[1] - parameters[1])
    out[1] = np.arctan2(x[1] - parameters[1], x[0] - parameters[0])


def distances(place, x):
    return polar(x - np.array(place))


def still(x, out):
    out[0] = x[0]
    out[1] = x[1]


def test_readings_of_several_sensors(proposal, stops):
    given = {"Q": EYE, "R": None, "initial_mean": [3.0, 4.0], "initial_covariance": 4 * EYE}
    models = (
        hf.models.CompiledModel(still, None, **given),
        hf.models.from_functions(lambda x: x, None, **given),
    )
    other = hf.Sensor(lambda x: x, EYE)
    results = []
    for form, model in enumerate(models):
        sensors = [other]
        for place in ([0.0, 0.0], [6.0, 1.0]):
            function = (
                hf.models.CompiledFunction(distance, 2, place)
                if form == 0
                else partial(distances, place)
            )
            sensors.append(hf.Sensor(function, np.diag([0.3, 0.1]), circular=[1]))
        entries = [
            (1.0, 1, [5.0, 0.9]),
            (1.0, 2, [4.0, 2.2]),
            (1.5, 2, None),
            (2.5, 1, [5.1, np.nan]),
            (2.5, 0, [3.0, 4.2]),
        ]
        readings = [
            (t, sensors[k], z)
            for t, k, z in [*entries, (4.0, 1, [5.2, 0.95]), (5.0, 1, [5.2, 0.95])]
        ]
        results.append(hf.ParticleFilter(model, 200, proposal=proposal, rng=0).run(readings))
    same(*results)
    assert len(stops) == 1  # the reading of the sensor in NumPy


def test_only_plain_filters_go_through_the_loop():
    model = UNGM.compiled()

    class Own(hf.BootstrapProposal):
        pass

    assert loop.proposal_name(hf.ParticleFilter(model))
    assert loop.proposal_name(
        hf.ParticleFilter(
            model, proposal=hf.RankedProposal(), resampling=hf.MultinomialResampling()
        )
    )
    assert loop.proposal_name(hf.ParticleFilter(model, proposal=hf.AutomaticProposal()))
    assert not loop.proposal_name(hf.ParticleFilter(UNGM, proposal=hf.AutomaticProposal()))
    # four points do not span state and noise
    assert not loop.proposal_name(hf.ParticleFilter(model, 4, proposal=hf.AutomaticProposal()))
    random = hf.RankedProposal(hf.RandomSampling()), hf.AutomaticProposal(hf.RandomSampling())
    for proposal in (Own(), *random, hf.RankedProposal(randomised=True)):
        assert not loop.proposal_name(hf.ParticleFilter(model, proposal=proposal))
    assert not loop.proposal_name(hf.ParticleFilter(model, resampling=hf.MultinomialResampling()))


def test_a_series_that_goes_on_from_uneven_weights_is_resampled_when_it_should_be():
    models = pendulum(R=np.diag([9.0, 9.0]))
    z = np.zeros((4, 2))
    options = {"dt": 0.1, "control": 0.0}
    filters = [hf.ParticleFilter(model, 60, rng=0, resample_below=0.3) for model in models]
    for pf in filters:
        pf.predict(**options)
        pf.update([3.0, 0.0])
        assert 0.3 * 60 < pf.ess < 59
    results = [pf.run(z, dt=0.1, controls=np.zeros(4)) for pf in filters]
    assert not results[1].resampled[0]
    same(*results)


def test_what_keeps_a_series_out_of_the_loop_is_told_to_those_who_ask(monkeypatch, caplog):
    caplog.set_level(logging.INFO, logger="herdfilter")
    results = []
    for failing in (False, True):
        if failing:
            monkeypatch.setattr(loop, "Segment", lambda *given: {}.missing)
        results.append(hf.ParticleFilter(UNGM.compiled(), 2000, rng=0).run([[0.5]] * 10))
    same(*results)
    (record,) = caplog.records
    assert (record.levelno, record.name) == (logging.INFO, "herdfilter.compiled.loop")
    assert "AttributeError" in record.getMessage()


def test_other_filters_and_subclasses_run_a_compiled_model_by_their_own_methods():
    class Counting(hf.ParticleFilter):
        updates = 0

        def update(self, *given, **options):
            self.updates += 1
            return super().update(*given, **options)

    _, z = hf.simulate(UNGM, 20, rng=1)
    assert np.allclose(
        hf.UnscentedKalmanFilter(UNGM.compiled()).run(z).means,
        hf.UnscentedKalmanFilter(UNGM).run(z).means,
    )
    counting = Counting(UNGM.compiled(), 50, rng=0)
    counting.run(z)
    assert counting.updates == 20
