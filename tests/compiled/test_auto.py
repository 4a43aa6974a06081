"""The default filter in the compiled loop: every sentence of its rule, step by step beside the NumPy model."""

import numpy as np
import pytest
from helpers import EYE, cases

import herdfilter as hf
from herdfilter.compiled import loop
from herdfilter.filters.proposals.lookahead import Ancestors


def rotate(x, out):
    out[0] = 0.8 * x[0] - 0.6 * x[1]
    out[1] = 0.6 * x[0] + 0.8 * x[1]


def grow(x, step, out):
    for a in range(2):
        out[a] = x[a] / 2 + 25 * x[a] / (1 + x[a] ** 2) + 8 * np.cos(1.2 * step + a)


def fold(x, out):
    out[0] = x[0] + 0.5 * np.sin(3 * x[1])
    out[1] = x[1]


def drift(x, out):
    out[0] = x[0]
    out[1] = x[1]


def both(x, out):
    out[0] = x[0]
    out[1] = x[1]


def first_of_two(x, out):
    out[0] = x[0] + 0.01 * x[1] ** 2


def squares(x, out):
    out[0] = x[0] ** 2 / 20
    out[1] = x[1] ** 2 / 20


def length_and_angle(x, out):
    out[0] = np.hypot(x[0], x[1])
    out[1] = np.arctan2(x[1], x[0])


def vectorised(function, size, *names):
    """The function of one state as one of states (n, d), in plain Python."""

    def of_states(x, **given):
        out = np.empty((len(x), size))
        for row, values in zip(x, out, strict=True):
            function(row, *given.values(), values)
        return out

    if names:
        return lambda x, step: of_states(x, step=step)
    return lambda x: of_states(x)


def swing_back(x):
    return 0.9 * x[0]


def same_number(x):
    return x[0]


def half_square(x):
    return 0.5 * x[0] ** 2


def turn(x):
    return x[0] + 0.7 * np.sin(2 * x[0])


def on_line(f, h, q, r, spread=1.0, angles=()):
    """A compiled model on a line, of functions without ``out``, and its equivalent in NumPy."""
    given = {
        "Q": [[q]],
        "R": [[r]],
        "initial_mean": [1.0],
        "initial_covariance": [[spread]],
        "circular": angles,
        "observation_circular": angles,
    }
    models = (
        hf.models.CompiledModel(f, h, **given),
        hf.models.from_functions(lambda x: f(x.T)[:, None], lambda x: h(x.T)[:, None], **given),
    )
    return models


def pair(f, h, size, q, r, spread=1.0, initial_mean=(1.0, 1.0), angles=(), steps=()):
    """A compiled model and its equivalent in NumPy."""
    given = {
        "Q": q * EYE,
        "R": r * np.eye(size),
        "initial_mean": list(initial_mean),
        "initial_covariance": spread * EYE,
        "observation_circular": angles,
    }
    numpy = hf.models.from_functions(vectorised(f, 2, *steps), vectorised(h, size), **given)
    return hf.models.CompiledModel(f, h, **given), numpy


def jumps(z):
    z[12:] += 12.0
    return z


def gaps(z):
    z[3::5] = np.nan
    z[4::7, -1] = np.nan
    return z


CASES = {
    # name: models, change of the data, what must have been done at some steps
    "linear, with gaps": (pair(rotate, both, 2, 0.1, 0.5), gaps, {"gaussian", "prediction"}),
    "sharp, of one entry": (pair(rotate, first_of_two, 1, 0.3, 0.001), None, {"guided"}),
    "growth with gaps": (
        pair(grow, squares, 2, 10.0, 1.0, 5.0, steps=["step"]),
        gaps,
        {"guided", "blind"},
    ),
    "wide, two modes": (pair(rotate, squares, 2, 0.05, 0.5, 25.0), None, {"guided", "kernels"}),
    "narrow noise": (pair(drift, squares, 2, 1e-7, 0.3, 25.0), None, {"kernels"}),
    "a range and an angle": (
        pair(rotate, length_and_angle, 2, 0.3, 0.05, 4.0, (5.0, 0.0), [1]),
        gaps,
        {"blind", "guided"},
    ),
    "growth on a line": ((hf.models.UNGM().compiled(), hf.models.UNGM()), gaps, {"quantiles"}),
    "linear on a line": (
        on_line(swing_back, same_number, 0.5, 0.5),
        gaps,
        {"gaussian", "prediction"},
    ),
    "a sharp square": (
        on_line(swing_back, half_square, 0.5, 1e-3, 9.0),
        None,
        {"guided quantiles"},
    ),
    "an angle": (on_line(turn, same_number, 0.5, 2.0, 9.0, [0]), gaps, {"quantiles"}),
    "a jump": (pair(fold, squares, 2, 0.01, 0.05, 1.0, (6.0, 6.0)), jumps, {"both ways"}),
    "a jump and wide noise": (
        pair(fold, length_and_angle, 2, 3.0, 0.5, 1.0, (6.0, 6.0)),
        jumps,
        {"the other way"},
    ),
}


MANY = (
    "linear, with gaps",
    "growth with gaps",
    "narrow noise",
    "wide, two modes",
    "a range and an angle",
    "growth on a line",
)
"""Cases of so many particles that they share gains, and that some are looked at before all."""


@pytest.fixture
def done(monkeypatch):
    """Names of what the filter in NumPy has done since the start of its last step."""
    names = set()
    made = []
    tell = monkeypatch.setattr

    def watch(owner, method, name):
        ordinary = getattr(owner, method)

        def called(self, *args, **options):
            names.add(name(*args))
            made.append(ordinary(self, *args, **options))
            return made[-1]

        tell(owner, method, called)

    follow = hf.RankedProposal.follow

    def followed(self, *args, **options):
        names.add("ranked")
        made.clear()
        moved = follow(self, *args, **options)
        names.update({"the other way"} if len(made) == 2 and moved is made[1] else ())
        return moved

    tell(hf.RankedProposal, "follow", followed)
    watch(hf.RankedProposal, "_take", lambda *args: "guided" if args[-1] else "blind")
    watch(hf.HerdedProposal, "propose", lambda *_: "quantiles")
    watch(hf.KalmanMixtureProposal, "propose", lambda *_: "guided quantiles")
    kernels = Ancestors.kernels.__func__
    tell(Ancestors, "kernels", classmethod(lambda *args: names.add("kernels") or kernels(*args)))
    return names


@cases("name", *CASES)
def test_each_step_is_that_of_the_numpy_model(name, done, monkeypatch):
    n = 1200 if name in MANY else 100
    monkeypatch.setattr(loop, "FEWEST_PARTICLES", 0)
    (quick, model), change, expected = CASES[name]
    _, z = hf.simulate(model, 25, rng=3)
    z = z if change is None else change(z)
    alone = 0
    apart = []
    both_ways = []
    happened = set()
    ordinary = loop.run_in_steps

    def counted(*args, **options):
        nonlocal alone
        alone += 1
        return ordinary(*args, **options)

    monkeypatch.setattr(loop, "run_in_steps", counted)
    pf, other = (
        hf.ParticleFilter(each, n, proposal=hf.AutomaticProposal(), rng=0)
        for each in (model, quick)
    )
    for t in range(len(z)):
        if t:
            other._particles = hf.Particles.unchecked(
                pf._particles.x.copy(), pf._particles.log_weights.copy()
            )
        ours = other.run(z[t : t + 1])
        done.clear()
        theirs = pf.run(z[t : t + 1])
        happened |= done
        both_ways.append({"blind", "guided"} <= done)
        happened |= {"both ways"} if both_ways[-1] else set()
        missing = np.isnan(z[t]).all()
        happened |= (
            {"prediction" if missing else "gaussian"}
            if not {"ranked", "quantiles"} & done
            else set()
        )
        scale = np.sqrt(np.trace(theirs.covariances[0]))
        differences = (
            (ours.means - theirs.means) / scale,
            (ours.covariances - theirs.covariances) / scale**2,
        )
        logs = ours.log_likelihoods - theirs.log_likelihoods, np.log(ours.ess / theirs.ess)
        apart.append(max(np.abs(d).max() for d in (*differences, *logs)))
    assert expected <= happened
    assert np.mean(np.array(apart) < 1e-6) > 0.9  # rounding may turn a decision at a bound
    assert not any(both_ways) or np.median(np.array(apart)[both_ways]) < 1e-6
    assert alone <= 2
