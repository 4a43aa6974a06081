"""Where a filter stands: put away and taken up again, reset, gated, and started by its first measurement."""

import json
import re
import warnings
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from functools import partial

import numpy as np
import pandas as pd
import pytest
from helpers import CHAIN, EYE, assert_same, cases, normal, polar, refusal
from numpy.testing import assert_allclose, assert_array_equal

import herdfilter as hf
from herdfilter.filters.saved import FilterState

TURN = hf.models.CoordinatedTurn()
MODES = hf.models.JumpMarkov(
    [hf.models.ConstantVelocity(q, 0.5, [0, 1], 0.1 * EYE) for q in (1e-3, 10.0)],
    [[0.95, 0.05], [0.1, 0.9]],
)
START = datetime(2024, 3, 31, 0, 59, 30)
NAMES = [
    "bootstrap",
    "sqmc",
    "ranked",
    "auto",
    "herded-kh",
    "mixture-kh",
    "augmented-gauss-kh",
    "ledh-weighted",
]
NAMES += ["ukf", "enkf", "imm", "mkf"]


def series_of(model, steps=6):
    return hf.simulate(model, steps, rng=3)[1]


def through_a_file(one, other, folder):
    """The second filter takes up the state of the first."""
    np.savez(folder / "state.npz", **one.state)
    other.restore(np.load(folder / "state.npz"))


def same_end(one, other, z):
    """Both filters take the rest of a series, and end with equal bits."""
    for online in (one, other):
        online.update(z[0])
        for later in z[1:]:
            online.predict(0.5)
            online.update(later)
    assert_same(other, one, "mean", "covariance", "step", "time", "log_likelihood")


@cases("name", *NAMES, "edh")
def test_a_filter_that_is_restored_goes_on_with_equal_bits_and_one_that_is_reset_is_as_new(
    name, tmp_path
):
    """Also between a prediction and its update, through a file, and after looking at what is predicted."""
    model = MODES if name in ("bootstrap", "auto", "imm", "mkf") else TURN
    z = series_of(model)
    one, other = (
        hf.make_filter(name, model, 25, rng=np.random.Generator(np.random.Philox(seed)))
        for seed in (1, 2)
    )
    start = one.state
    one.run(z[:3], dt=0.5)
    one.predict(0.5, [1.0])
    assert np.isfinite(one.mean).all()
    through_a_file(one, other, tmp_path)
    same_end(one, other, z[3:])
    other.reset()
    assert (other.step, other.time, other.log_likelihood, other.record) == (0, 0.0, 0.0, None)
    one.restore(start)
    other.restore(start)
    same_end(one, other, z)


@cases("name", "auto", "bootstrap", "enkf", "lmb")
def test_a_state_is_taken_and_given_back_as_often_as_one_likes(name):
    """Also while a prediction waits; generators of tracks are put back as well."""
    birth = hf.tracking.Birth(0.3, normal([0.0, 0.0]))
    model = hf.models.WithClutter(CHAIN, 0.9, 0.01) if name == "lmb" else CHAIN
    options = {"birth": [birth], "filter": "auto"} if name == "lmb" else {}
    make = hf.tracking.LMBTracker if name == "lmb" else partial(hf.make_filter, name)
    online = make(model, n_particles=20, rng=1, **options)
    z = [[0.1, 0.2]]
    online.predict()
    online.update(z if name == "lmb" else z[0])
    online.predict()
    taken = FilterState.of(online)
    ends = []
    for _ in range(3):
        online.update(z if name == "lmb" else z[0])
        online.predict()
        tracks = online.tracks if name == "lmb" else [online]
        ends.append((online.step, [one.mean.tolist() for one in tracks]))
        taken.give_back(online)
    assert online.step == 2
    assert ends[0][0] == 3
    assert ends[0] == ends[1] == ends[2]


STATE = hf.ParticleFilter(TURN, 30, rng=1).state


@cases(
    "state said",
    (3, "a mapping as the attribute state of a filter has it, got 3"),
    ({}, "what the attribute state of a filter has, got none of entries"),
    (
        {name: array for name, array in STATE.items() if name != "weights"},
        "what the attribute state of a filter has, got none of weights",
    ),
    ({**STATE, "version": np.array(0)}, "version 1, as this filter has, got '0'"),
    (
        {**STATE, "weights": 2 * STATE["weights"]},
        "weights (30,) of type f8, with the sum 1, got float64 (30,): [0.06",
    ),
    (
        hf.ParticleFilter(TURN, 30, rng=np.random.Generator(np.random.MT19937(1))).state,
        'a generator PCG64, as this filter has, got \'{"bit_generator": "MT19937"',
    ),
)
def test_a_state_that_does_not_fit_is_named_and_changes_nothing(state, said):
    pf = hf.ParticleFilter(TURN, 30, rng=1)
    before = pf.mean
    error = ValueError if isinstance(state, dict) else TypeError
    with refusal(re.escape(f"state: expected {said}"), error):
        pf.restore(state)
    assert_array_equal(pf.mean, before)


PLAIN = hf.models.from_functions(
    lambda x: x @ [[1, 0], [1, 1]],
    lambda x: np.arctan(x[:, :1] / 5),
    0.01 * EYE,
    [[0.01]],
    [0, 0],
    EYE,
)
LINEAR = hf.models.ConditionallyLinear(PLAIN, linear=[1])
CLUTTER = hf.models.WithClutter(CHAIN, 0.9, 0.01, region=[[-9, 9], [-9, 9]])
KINDS = [
    (name, TURN)
    for name in ("bootstrap", "sqmc", "auto", "mixture-kh", "ekf", "ukf", "enkf", "edh")
]
KINDS += [
    ("rb-bootstrap", LINEAR),
    ("auto", MODES),
    ("bootstrap", MODES),
    ("imm", MODES),
    ("mkf", MODES),
    ("auto", CLUTTER),
]
ANY_NUMBERS = ("moved", "negated", "doubled", "one of -2", "askew")
ANY_POSITIVE = ("moved", "doubled")
ANY_SHAPE = ("one more axis", "a row less", "a row more")
VALID = {
    **dict.fromkeys(
        ("means", "members", "particles", "factors", "log_likelihood", "time"), ANY_NUMBERS
    ),
    # moved by 1 in all entries, a covariance stays definite
    **dict.fromkeys(("covariances", "step", "pending_dt"), ANY_POSITIVE),
    **dict.fromkeys(
        ("by_model_at_start", "resampled", "untouched", "zoned", "gaussian"), ("negated",)
    ),
    # the input of the caller's own function
    "pending_control": (
        "text",
        "complex",
        "float32",
        *ANY_NUMBERS,
        *ANY_SHAPE,
        "NaN",
        "infinite",
        "too large",
    ),
}
"""Last part of an array's name -> how it may be altered: it is then the state of another filter of this kind."""


def altered(array):
    """Yield alterations of an array in type, shape and values."""
    yield "text", np.array("x")
    yield "object", np.array(None)
    if array.dtype.kind in "fib":
        yield "complex", array.astype(complex)
        yield "float32", array.astype(np.float32)
        yield "one more axis", array[None]
        yield "NaN", array * np.nan
        yield "infinite", np.full(array.shape, np.inf)
        yield "too large", np.full(array.shape, 1e301)
        yield "negated", ~array if array.dtype.kind == "b" else -array
    if array.dtype.kind in "fi":
        yield "moved", array + array.dtype.type(1)
        yield "doubled", array * array.dtype.type(2)
    if array.ndim and array.dtype.kind in "fi":
        yield "a row less", array[:-1]
        yield "a row more", np.concatenate([array, array[:1]])
        lower = array.copy()
        lower.flat[:1] = -2
        yield "one of -2", lower
    if array.ndim > 1:
        yield "flat", array.ravel()
        askew = array.copy()
        askew[..., 0, -1] += 1
        yield "askew", askew


def differing(state, other):
    return [
        name
        for name in {**state, **other}
        if not np.array_equal(*(str(one[name].tolist()) for one in (state, other)))
    ]


@cases("name model", *KINDS)
def test_an_altered_state_is_refused_or_valid_and_a_filter_that_refuses_stays_as_it_was(
    name, model
):
    """At the start, in the midst, and between a prediction and its update; any entry may be altered, or be lost."""
    one, other = (hf.make_filter(name, model, 24, rng=seed) for seed in (1, 2))
    states = [one.state]
    z = hf.simulate(model, 4, rng=3)[1]
    for k in range(3):
        one.predict(0.5, [0.3])
        states += [one.state] if k == 2 else []
        one.update(z[k])
    for state in [*states, one.state]:
        before = other.state
        for entry, array in state.items():
            for what, value in [*altered(array), ("lost", None)]:
                given = {**state, entry: value}
                if value is None:
                    del given[entry]
                elif value.dtype == array.dtype and np.array_equal(value, array):
                    continue
                valid = what in VALID.get(entry.rpartition(".")[2], ())
                with (
                    nullcontext()
                    if valid
                    else pytest.raises((ValueError, TypeError), match=r"^(state|control):")
                ):
                    other.restore(given)
                if valid:
                    assert differing(other.state, state) == [entry]
                    assert_array_equal(other.state[entry], value)
                    other.restore(before)
            assert differing(before, other.state) == [], entry
        other.restore(state)
        assert differing(state, other.state) == []


def test_a_state_says_of_which_filter_and_proposal_it_is():
    """Classes alone do not: wrapped proposals, rules for moments, local flows, and sizes differ as well."""
    make = hf.make_filter
    pairs = [
        (make("bootstrap", TURN, 30), make("auto", TURN, 30)),
        (make("bootstrap", MODES, 30), make("ranked", MODES, 30)),
        (make("edh", TURN, 30), make("ledh", TURN, 30)),
        (make("imm", MODES), make("imm", MODES, rule="extended")),
        (make("enkf", TURN, 16), make("enkf", TURN, 40)),
        (make("mkf", MODES, 16), make("mkf", MODES, 40)),
        (make("ekf", TURN), make("ukf", TURN)),
    ]
    for pair in pairs:
        for one, other in (pair, pair[::-1]):
            before = other.state
            with refusal(r"^state: expected .*, as this filter has, got"):
                other.restore(one.state)
            assert differing(before, other.state) == []


@cases(
    "kind spoil",
    # NumPy would read the memory there
    (np.random.MT19937, lambda given: given["state"].update(pos=10**9)),
    (np.random.Philox, lambda given: given.update(buffer_pos=-(10**6))),
    (np.random.PCG64, lambda given: given["state"].update(inc=-1)),
    (np.random.PCG64, lambda given: given.update(uinteger=None)),
    (np.random.SFC64, lambda given: given.pop("state")),
)
def test_a_generator_is_checked_before_anything_is_assigned(kind, spoil):
    one, other = (
        hf.ParticleFilter(TURN, 30, rng=np.random.Generator(kind(seed))) for seed in (1, 2)
    )
    state = one.state
    before = other.state
    other.restore(state)
    assert differing(state, other.state) == []
    other.restore(before)
    given = json.loads(str(state["generator"]))
    spoil(given)
    with refusal(rf"^state: expected a generator {kind.__name__}, as this filter has, got"):
        other.restore({**state, "generator": np.array(json.dumps(given))})
    assert differing(before, other.state) == []


@cases("control", {"turn": 0.1}, {0.1}, np.array([{}]), pd.Series({"turn": 0.1}), START)
def test_a_control_input_that_no_array_holds_is_refused_when_the_state_is_taken(control):
    """It serves the filter; the state of which would come back with another input, or not at all."""
    pf = hf.make_filter("auto", TURN, 20)
    pf.predict(0.5, control)
    with refusal(r"^control: expected an array, a number or a text, as a state keeps them, got"):
        _ = pf.state
    pf.update(series_of(TURN)[0])
    assert "pending_control" not in pf.state


def test_a_control_input_comes_back_as_it_was(tmp_path):
    """A word serves as a key, a number as a number."""
    turns = {"left": 0.3, "right": -0.3, 0.5: 1.0}
    model = hf.models.from_functions(
        lambda x, control: x + turns[control], lambda x: x, [[0.1]], [[0.1]], [0], [[1]]
    )
    for control in ("left", 0.5):
        one, other = (hf.make_filter("auto", model, 20) for _ in range(2))
        one.predict(1.0, control)
        through_a_file(one, other, tmp_path)
        assert_array_equal(other.update([0.4]).mean, one.update([0.4]).mean)


def test_the_clock_comes_back_with_its_dates_and_what_is_none_is_refused():
    z = series_of(TURN)
    times = [START + timedelta(seconds=k) for k in range(1, 7)]
    for zone in (None, UTC):
        dated = [time.replace(tzinfo=zone) for time in times]
        one, other = (hf.make_filter("ukf", TURN) for _ in range(2))
        one.run(z[:3], times=dated[:3], start=START.replace(tzinfo=zone))
        other.restore(one.state)
        assert other.time == one.time == np.datetime64(times[2])
        assert_array_equal(
            other.run(z[3:], times=dated[3:]).means, one.run(z[3:], times=dated[3:]).means
        )
        for entry, value in (
            ("origin", np.array(0.0)),
            ("origin", np.array("2024")),
            ("zoned", np.array(1)),
        ):
            before = other.state
            with refusal(f"^state: expected {entry}"):
                other.restore({**one.state, entry: value})
            assert differing(before, other.state) == []


# A track that starts from its first measurement


def wide_radar():
    """Range and bearing of a target somewhere within kilometres; nothing is known of its velocity."""
    sd = np.array([1500.0, 1500.0, 30.0, 30.0])
    return hf.models.from_functions(
        f=lambda x, dt: x + dt * np.column_stack([x[:, 2:], 0 * x[:, 2:]]),
        h=polar,
        Q=np.diag([0.1, 0.1, 0.1, 0.1]),
        R=np.diag([10.0, 0.002]) ** 2,
        initial_mean=[2000.0, 1000.0, 0.0, 0.0],
        initial_covariance=np.diag(sd**2),
        observation_circular=[1],
    )


@cases("name", "bootstrap", "ranked", "auto", "herded-kh", "ukf", "ekf")
def test_a_track_starts_from_its_first_measurement(name):
    """The posterior of the position is that of the measurement, turned into the plane; the velocity is as before."""
    model = wide_radar()
    for distance, bearing in ((1400.0, 1.2), (3000.0, 0.1), (2500.0, -0.3)):
        online = hf.make_filter(name, model, 300, rng=1)
        record = online.update([distance, bearing])
        turned = np.array([[np.cos(bearing), -np.sin(bearing)], [np.sin(bearing), np.cos(bearing)]])
        spread = turned @ np.diag([10.0, 0.002 * distance]) ** 2 @ turned.T
        away = record.mean[:2] - distance * turned[:, 0]
        assert away @ np.linalg.solve(spread, away) < 0.15**2 if name != "bootstrap" else 0.3**2
        assert_allclose(record.covariance[:2, :2], spread, atol=0.2 * np.trace(spread))
        assert_allclose(np.sqrt(np.diagonal(record.covariance)[2:]), 30.0, rtol=0.15)
        assert not record.ess < 200


# The gate


@cases("name", *NAMES)
def test_what_lies_outside_the_gate_is_left_out_and_recorded(name):
    z = hf.simulate(CHAIN, 6, rng=2)[1]
    spoilt = z.copy()
    spoilt[3] += 50.0
    gated = hf.make_filter(name, CHAIN, 60, rng=1).run(spoilt, gate=0.9999)
    missing = hf.make_filter(name, CHAIN, 60, rng=1).run([*z[:3], None, *z[4:]])
    assert [outcome.name for outcome in gated.outcomes] == ["UPDATED"] * 3 + ["GATED"] + [
        "UPDATED"
    ] * 2
    assert_array_equal(gated.means, missing.means)
    assert gated.log_likelihood == missing.log_likelihood
    assert list(gated.to_dataframe()["outcome"])[3] == "gated"


def test_missing_entries_and_angles_do_not_count_in_the_gate():
    model = wide_radar()
    for z, outcome in (
        ([np.nan, 0.46 + 2 * np.pi], hf.Outcome.UPDATED),
        ([2230.0, np.nan], hf.Outcome.UPDATED),
        ([2e5, np.nan], hf.Outcome.GATED),
        ([np.nan, np.nan], hf.Outcome.MISSING),
    ):
        kf = hf.UnscentedKalmanFilter(model)
        kf.predict()
        assert kf.update(z, gate=0.999).outcome is outcome


def test_a_gate_that_cannot_be_is_named():
    pf = hf.ParticleFilter(hf.models.linear_chain(1), 20, rng=0)
    pf.predict()
    with refusal(r"^gate: expected a probability such as 0.999, got"):
        pf.update([0.0], gate=1.0)
    alone = hf.Sensor(None, None, log_likelihood=lambda z, x: np.zeros(len(x)))
    with refusal(
        r"^gate: expected None, as LinearGaussian with this sensor has no mean and cov", TypeError
    ):
        pf.update([0.0], sensor=alone, gate=0.9)


def test_without_a_gate_an_outlier_that_leaves_one_particle_is_warned_of():
    model = hf.models.linear_chain(1)
    pf = hf.ParticleFilter(model, 100, rng=0)
    z = [[0.3], [0.1], [400.0]]
    with pytest.warns(
        hf.DegeneracyWarning, match=r"^one of 100 particles has all the weight"
    ) as caught:
        pf.run(z)
    assert caught[0].message.steps == [3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hf.ParticleFilter(model, 100, rng=0).run(z, gate=0.999)


@pytest.mark.slow
def test_an_outlier_is_warned_of_by_a_compiled_run():
    quick = hf.ParticleFilter(hf.models.UNGM().compiled(), 2000, rng=0)
    with pytest.warns(hf.DegeneracyWarning, match=r"^one of 2000 particles") as caught:
        quick.run([[0.5], [1e4], *[None] * 8])
    assert caught[0].message.steps == [2]
