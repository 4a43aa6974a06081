"""Every door by which a user's numbers come in: masks are seen, and compiled loops are given nothing that does not fit."""

import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from helpers import cases
from numpy.testing import assert_array_equal

import herdfilter as hf
from herdfilter import angles
from herdfilter._checks import as_array
from herdfilter.association import associate, k_best_assignments, marginals, ratios
from herdfilter.bandwidths import kernel_covariance
from herdfilter.discrete import HerdedGibbs, herding
from herdfilter.filters.flow import exact_flow, pseudo_times
from herdfilter.kernels import expected_kernel
from herdfilter.plotting import plot_track
from herdfilter.study import metrics
from herdfilter.study.recording import Recording
from herdfilter.tracking import gospa, label_switches, simulate_scans

X = np.array([[0.0, 1.0], [2.0, 0.5], [3.0, 4.0], [1.0, 2.5]])
W = np.array([0.1, 0.2, 0.3, 0.4])
EYE = np.eye(2)
MIXTURE = hf.GaussianMixture([0.5, 0.5], [[0.0, 0.0], [3.0, 1.0]], EYE)
CHAIN = hf.models.linear_chain(2)
SENSOR = hf.Sensor(lambda x: x, EYE)
CLUTTER = hf.models.WithClutter(CHAIN, 0.9, 0.01, region=[[-9, 9], [-9, 9]])
RATIOS = np.array([[0.1, 2.0, 1.0], [0.2, 1.0, 3.0], [0.1, 0.5, 1.0]])
MOVE = hf.Transition(CHAIN)
STEP = {"dt": 1.0, "control": None, "step": 1}
UNEVEN = np.array([0.7, 0.1, 0.1, 0.1])
READING = hf.Observation.read(CHAIN, [1.0, 2.0], 1)
TABLE = HerdedGibbs.from_joint([[0.4, 0.1], [0.2, 0.3]])
Z = np.array([[0.1, 0.2], [0.3, 0.1], [1.0, 0.4], [0.5, 0.5]])


def from_functions(**changed):
    given = {"Q": EYE, "R": EYE, "initial_mean": np.zeros(2), "initial_covariance": EYE} | changed
    return hf.models.from_functions(lambda x: x, lambda x: x, **given)


def resampled(scheme, particles, log_weights):
    weighted, _ = hf.Particles(particles, log_weights).normalised()
    return scheme.resample(weighted, np.random.default_rng(0)).x


def proposed(proposal, particles, log_weights, observation=None):
    weighted, _ = hf.Particles(particles, log_weights).normalised()
    return proposal.propose(MOVE, weighted, np.random.default_rng(0), observation).x


def filtered(make, z):
    one = make(CHAIN)
    one.predict()
    return one.update(z).mean


def ran(**changed):
    return hf.UnscentedKalmanFilter(CHAIN).run(Z, **changed).means


def predicted(make, control):
    make(CHAIN).predict(1.0, control)


FILTERS = {
    "ukf": hf.UnscentedKalmanFilter,
    "ekf": hf.ExtendedKalmanFilter,
    "ckf": hf.CubatureKalmanFilter,
    "s2kf": hf.SmartSamplingKalmanFilter,
    "enkf": partial(hf.EnsembleKalmanFilter, n_particles=20, rng=0),
    "daum-huang": partial(hf.DaumHuangFilter, n_particles=20, rng=0),
    "bootstrap": partial(hf.ParticleFilter, n_particles=20, rng=0),
    "grid": lambda model: hf.GridFilter(model, -10, 10, 85),
    "auto": partial(hf.ParticleFilter, n_particles=20, proposal=hf.AutomaticProposal(), rng=0),
}
FITS = {
    "em": hf.EMFit(2),
    "bic": hf.EMFit("bic"),
    "gauss": hf.GaussianFit(),
    "kde": hf.KernelDensityFit(),
}
SCHEMES = {
    "multinomial": hf.MultinomialResampling(),
    "transport": hf.OptimalTransportResampling(),
    "regularised": hf.RegularisedResampling(),
    "residual": hf.ResidualResampling(),
    "ssp": hf.SSPResampling(),
    "stratified": hf.StratifiedResampling(),
    "systematic": hf.SystematicResampling(),
    "mixture": hf.MixtureResampling(hf.EMFit(2), hf.KernelHerding()),
}
GUIDED = {
    "auto": hf.AutomaticProposal(),
    "guided": hf.GuidedProposal(),
    "kalman-mixture": hf.KalmanMixtureProposal(hf.KernelHerding()),
    "ranked": hf.RankedProposal(),
    "flow": hf.FlowProposal(),
    "guided-augmented": hf.GuidedAugmentedProposal(hf.GaussianFit(), hf.KernelHerding()),
    "auxiliary": hf.AuxiliaryProposal(),
}
PROPOSALS = GUIDED | {
    "sqmc": hf.SequentialQuasiMonteCarlo(),
    "herded": hf.HerdedProposal(hf.KernelHerding()),
    "augmented": hf.AugmentedProposal(hf.GaussianFit(), hf.KernelHerding()),
    "bootstrap": hf.BootstrapProposal(),
}

VALUES = {
    "x": X,
    "covariance": EYE,
    "ratios": RATIOS,
    "particles": X,
    "log_weights": np.log(W),
    "weights": W,
    "start": np.zeros(2),
    "means": X,
    "covariances": np.tile(EYE, (4, 1, 1)),
    "sigma_k": EYE,
    "bandwidth": EYE,
    "truth": X,
    "estimates": X,
    "region": np.array([[-9.0, 9.0], [-9.0, 9.0]]),
}
"""Name of an argument -> its value at the doors that name it."""

COMPILED = {
    "simplex_weights": (hf.simplex_weights, {"gram": np.exp(-np.abs(np.subtract.outer(W, W))), "z": W}),
    "optimal_weights": (partial(hf.optimal_weights, mixture=MIXTURE), {"x": X, "kernel_covariance": EYE}),
    "kernel_matrix": (hf.kernel_matrix, "x covariance"),
    "herding": (partial(herding, n=5), {"moments": W}),
    "herding with features": (partial(herding, n=5), {"moments": np.array([0.5, 0.5]), "features": EYE}),
    "associate by herded Gibbs": (partial(associate, method="herded-gibbs"), "ratios"),
    "associate by random Gibbs": (partial(associate, method="random-gibbs", rng=0), "ratios"),
    "Lorenz63.transition_mean": (
        partial(hf.models.Lorenz63().transition_mean, dt=0.1, control=None, step=1), {"x": np.ones((4, 3))},
    ),
    "Particles": (hf.Particles, "particles log_weights"),
    "Particles.equal": (hf.Particles.equal, "particles"),
    "Particles.weighted": (hf.Particles.weighted, "particles weights"),
    "ConditionalHerdedGibbs": (
        partial(hf.ConditionalHerdedGibbs(0.5).herd, [lambda v, x: np.exp(-(v**2) / 2) / 2.5066] * 2, 3),
        {"start": np.zeros(2), "bounds": np.array([[-8.0, 8.0], [-8.0, 8.0]])},
    ),
    "ContinuousHerdedGibbs.sample": (partial(hf.ContinuousHerdedGibbs().sample, MIXTURE, 3), "start"),
    **{f"fit {n}": (fit.fit, "particles weights") for n, fit in FITS.items()},
    **{f"ancestors {n}": (partial(s.ancestors, rng=np.random.default_rng(0)), {"weights": UNEVEN})
       for n, s in SCHEMES.items() if n in ("ssp", "residual")},
    **{f"resample {n}": (partial(resampled, s), "particles log_weights") for n, s in SCHEMES.items()},
    **{f"propose {n}": (partial(proposed, p), "particles log_weights") for n, p in PROPOSALS.items()},
    **{f"guide {n}": (partial(proposed, p, observation=READING), "particles log_weights") for n, p in GUIDED.items()},
}  # fmt: skip
"""Name -> what enters a compiled loop, and its arguments that are arrays: their names, or names and values."""

OTHERS = {
    "Points": (hf.Points, "x weights"),
    "GaussianMixture": (hf.GaussianMixture, {"weights": W, "means": X, "covariances": EYE}),
    "log_density": (MIXTURE.log_density, "x"),
    "conditional": (partial(MIXTURE.conditional, [0]), {"values": np.array([1.0])}),
    "convolve": (MIXTURE.convolve, "covariance"),
    "herding_error": (partial(hf.herding_error, hf.Points(X), MIXTURE), "sigma_k"),
    "normalised_l2": (partial(hf.normalised_l2, hf.Points(X), MIXTURE), "sigma_k"),
    "KernelHerding": (hf.KernelHerding, "bandwidth"),
    "kernel_covariance": (partial(kernel_covariance, mixture=MIXTURE, n=5), "bandwidth"),
    "thin": (partial(hf.thin, m=2), "x weights"),
    "expected_kernel": (partial(expected_kernel, MIXTURE), "x covariance"),
    "wrap_angles": (partial(angles.wrap_angles, circular=[0]), "x"),
    "moments": (angles.moments, "x weights"),
    "associate": (associate, "ratios"),
    "marginals": (marginals, "ratios"),
    "k_best_assignments": (partial(k_best_assignments, k=2), "ratios"),
    "ratios": (
        ratios,
        {"likelihoods": RATIOS, "detection_probability": W[:3], "clutter_density": W[:3], "existence": W[:3]},
    ),
    "from_joint": (HerdedGibbs.from_joint, {"table": RATIOS}),
    "HerdedGibbs": (partial(HerdedGibbs, lambda i, x: [0.5, 0.5]), {"cardinalities": np.array([2, 2])}),
    "HerdedGibbs.sample": (partial(TABLE.sample, 3), {"start": np.array([0, 1])}),
    "gospa": (partial(gospa, cutoff=3.0), "truth estimates"),
    "label_switches": (partial(label_switches, labels=[[1, 2, 3, 4]], cutoff=3.0), {"truth": X[None], "estimates": X[None]}),
    "simulate_scans": (partial(simulate_scans, CLUTTER, rng=0), {"truth": X[None]}),
    "simulate": (partial(hf.simulate, CHAIN, 3, 0), {"initial": np.zeros(2)}),
    "JumpMarkov": (partial(hf.models.JumpMarkov, [CHAIN, CHAIN]),
                   {"transition_matrix": np.array([[0.9, 0.1], [0.2, 0.8]]), "initial_modes": np.array([0.5, 0.5])}),
    "from_functions": (from_functions, {"Q": EYE, "R": EYE, "initial_mean": np.zeros(2), "initial_covariance": EYE}),
    "UniformBox": (hf.models.UniformBox, {"lower": np.zeros(2), "upper": np.ones(2)}),
    "WithClutter": (partial(hf.models.WithClutter, CHAIN, 0.9, 0.01), "region"),
    "Sensor": (partial(hf.Sensor, lambda x: x), "covariance"),
    "Sensor.sample": (partial(SENSOR.sample, rng=0), "x"),
    "GridFilter": (partial(hf.GridFilter, CHAIN, points=12), {"lower": -5 * np.ones(2), "upper": 5 * np.ones(2)}),
    "exact_flow": (
        lambda covariance: exact_flow(READING, pseudo_times(3), covariance, (np.zeros(2), X)),
        "covariance",
    ),
    "run, dt": (ran, {"dt": np.ones(4)}),
    "run, controls": (ran, {"controls": X}),
    "maximise_likelihood": (
        lambda **given: hf.maximise_likelihood(lambda theta: hf.UnscentedKalmanFilter(CHAIN), Z, max_evaluations=3, **given),
        {"theta0": np.zeros(1), "bounds": np.array([[-1.0, 1.0]])},
    ),
    "normalised_squares": (metrics.normalised_squares, {"errors": X, "covariances": np.tile(EYE, (4, 1, 1))}),
    "plot_track": (plot_track, "means covariances"),
    **{f"{n} control": (partial(predicted, make), {"control": np.zeros(2)}) for n, make in FILTERS.items() if n != "grid"},
}  # fmt: skip


def opened(door):
    """Return the function behind a door, and its arguments that are arrays."""
    function, given = (COMPILED | OTHERS)[door]
    return function, {name: VALUES[name] for name in given.split()} if isinstance(
        given, str
    ) else given


def masked(values):
    mask = np.zeros(np.shape(values), bool)
    mask.flat[-1] = True
    return np.ma.masked_array(values, mask=mask)


def awkward(values):
    """The same numbers backwards and with gaps in memory, in the other byte order, behind a mask that hides none."""
    swapped = np.repeat(values.astype(values.dtype.newbyteorder())[::-1], 2, axis=0)[::-2]
    return np.ma.masked_array(swapped, mask=np.zeros(values.shape, bool))


def numbers(found):
    if isinstance(found, hf.Particles):
        return np.column_stack([found.x, found.log_weights])
    return np.asarray(
        getattr(found, "x", getattr(found, "means", getattr(found, "marginals", found))),
        dtype=float,
    )


def refusal(function, **given):
    """Return the words of the error that a call ends in; none if it has an answer of finite numbers."""
    try:
        found = function(**given)
    except (TypeError, ValueError) as error:
        return str(error)
    assert np.isfinite(numbers(found)[..., 0]).all()
    return ""


@cases("door", *COMPILED | OTHERS)
def test_a_door_takes_numbers_as_they_lie(door):
    function, given = opened(door)
    for name, values in given.items():
        found = function(**given | {name: awkward(values)})
        if door in COMPILED and not any(
            word in door for word in ("ancestors", "augmented", "mixture")
        ):  # random draws
            np.testing.assert_allclose(
                numbers(found), numbers(function(**given)), rtol=1e-9, atol=1e-9
            )


@cases("door", *COMPILED)
def test_what_does_not_fit_is_named_before_it_enters_a_compiled_loop(door):
    """Of lengths that differ either is named, and weights where their logarithms came."""
    function, given = opened(door)
    for name, values in given.items():
        for wrong in (values[None], values[..., :0], values[:-1]):
            words = refusal(function, **given | {name: wrong})
            may_be_shorter = len(wrong) == len(values) - 1 and (
                name in ("x", "features") or len(given) == 1
            )
            assert re.match(f"({'|'.join([*given, 'weights'])}): .*$", words) or may_be_shorter, (
                words
            )


HOSTILE = {
    "one axis more": X[None],
    "one column more": np.ones((2, 3)),
    "a number": 1.0,
    "NaN": [[1.0, np.nan]],
    "infinity": [[-np.inf, 1.0]],
    "a text": "abc",
    "None": None,
    "complex": X + 1j,
    "dates": X.astype("M8[s]"),
    "a dict": {},
    "ragged": [[1.0], [1.0, 2.0]],
    "NA": [[1.0, pd.NA]],
}


@cases("wrong", *HOSTILE.values(), ids=HOSTILE)
def test_the_checker_of_all_arrays_names_what_are_no_finite_numbers_of_the_shape(wrong):
    with pytest.raises(ValueError, match=r"^name: expected [^\n]*$"):
        as_array("name", wrong, (None, 2))


HIDDEN = np.zeros((6, 2), bool)
HIDDEN[1] = HIDDEN[3, 1] = True
SERIES = np.where(HIDDEN, np.nan, hf.simulate(CHAIN, 6, rng=1)[1])
OBJECTS = np.where(HIDDEN, pd.NA, SERIES.astype(object))
FORMS = {
    "masked": np.ma.masked_array(np.where(HIDDEN, -999.0, SERIES), mask=HIDDEN),
    "masked rows": list(np.ma.masked_array(np.where(HIDDEN, -999.0, SERIES), mask=HIDDEN)),
    "objects": OBJECTS,
    "nullable": pd.DataFrame(OBJECTS).astype("Float64"),
    "mixed": pd.DataFrame(OBJECTS).astype({0: "Float64", 1: object}),
}
"""The same observations with missing ones, each in another form."""


@cases("name", *FILTERS)
def test_a_masked_reading_is_a_missing_one(name):
    make = FILTERS[name]
    expected = make(CHAIN).run(SERIES)
    for form in FORMS.values() if name == "ukf" else [FORMS["masked"]]:
        found = make(CHAIN).run(form)
        assert_array_equal(found.means, expected.means)
        np.testing.assert_equal(found.log_likelihood, expected.log_likelihood)


def test_so_it_is_in_a_flat_series_of_numbers():
    expected = hf.ParticleFilter(hf.models.UNGM(), 50, rng=0).run([1, 2, None, 3]).means
    for form in (
        np.ma.masked_equal([[1], [2], [-999], [3]], -999),
        pd.Series([1, 2, pd.NA, 3]),
        [1, 2, np.ma.masked, 3],
    ):
        assert_array_equal(hf.ParticleFilter(hf.models.UNGM(), 50, rng=0).run(form).means, expected)


def test_so_it_is_in_single_updates_of_filters_smoothers_and_sensors():
    z, plain = masked([0.3, -999.0]), [0.3, np.nan]
    for make in (
        *FILTERS.values(),
        lambda model: hf.FixedLagSmoother(hf.UnscentedKalmanFilter(model), 2),
    ):
        if hasattr(make(CHAIN), "predict"):
            assert_array_equal(filtered(make, z), filtered(make, plain))

    def seen(one):
        replay = hf.Replay(hf.UnscentedKalmanFilter(CHAIN), lag=5)
        return [replay.update(at, one, sensor).mean for at, sensor in ((1.0, SENSOR), (2.0, None))]

    assert_array_equal(seen(z), seen(plain))


def test_a_masked_detection_is_refused_like_one_of_nan():
    scan = np.array([[0.1, 0.2], [0.4, -999.0]])
    tracker = hf.tracking.LMBTracker(
        CLUTTER, [hf.tracking.Birth(0.1, CHAIN.initial)], n_particles=20, rng=0
    )
    for one in (tracker, hf.ParticleFilter(CLUTTER, 20, rng=0), hf.UnscentedKalmanFilter(CLUTTER)):
        one.predict()
        with pytest.raises(
            ValueError, match=r"^(z|scan): .* got \[0.4, nan\] at step 1; leave that detection out"
        ):
            one.update(masked(scan))


def test_a_recording_keeps_no_masks():
    truth = np.zeros((6, 2))
    assert_array_equal(Recording(truth, FORMS["masked"]).observations, SERIES)


COUNTS = {
    "herding": ("n", lambda n: herding(W, n)),
    "herded Gibbs of associations": ("sweeps", lambda n: hf.association.HerdedGibbs(sweeps=n)),
    "k best": ("k", lambda n: k_best_assignments(RATIOS, n)),
    "EMFit": ("n_components", lambda n: hf.EMFit(n)),
    "DaumHuangFilter": ("flow_steps", lambda n: hf.DaumHuangFilter(CHAIN, 20, flow_steps=n)),
    "ParticleFilter": ("n_particles", lambda n: hf.ParticleFilter(CHAIN, n)),
}


@cases("name", *COUNTS)
def test_a_number_of_something_is_a_whole_one_from_one_on(name):
    argument, function = COUNTS[name]
    every = [0, -1, -(10**30), 2.5, np.nan, "many", True, masked([1, 2])[-1], pd.NA]
    for wrong in every if name == "herding" else [2.5]:
        with pytest.raises(ValueError, match=rf"^{argument}: (expected an integer|unknown)"):
            function(wrong)
