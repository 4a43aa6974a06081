"""Every door by which a user's numbers come in: masks are seen, and compiled loops are given nothing that does not fit."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

import herdfilter as hf
from herdfilter import angles
from herdfilter.association import associate, k_best_assignments, marginals, ratios
from herdfilter.bandwidths import kernel_covariance
from herdfilter.discrete import HerdedGibbs, herding
from herdfilter.evaluation import metrics
from herdfilter.filters.flow import ExactFlow, pseudo_times
from herdfilter.filters.kalman import kalman_mixture
from herdfilter.kernels import density_product, expected_kernel, expected_kernel_pair, log_normaliser
from herdfilter.models import contract
from herdfilter.plotting import plot_ellipse, plot_points, plot_track
from herdfilter.tracking import gospa, label_switches, ospa, simulate_scans

X = np.array([[0.0, 1.0], [2.0, 0.5], [3.0, 4.0], [1.0, 2.5]])
W = np.array([0.1, 0.2, 0.3, 0.4])
EYE = np.eye(2)
MIXTURE = hf.GaussianMixture([0.5, 0.5], [[0.0, 0.0], [3.0, 1.0]], EYE)
CHAIN = hf.models.linear_chain(2)
JUMP = hf.models.JumpMarkov([CHAIN, CHAIN], [[0.9, 0.1], [0.2, 0.8]])
SENSOR = hf.Sensor(lambda x: x, EYE)
CLUTTER = hf.models.WithClutter(CHAIN, 0.9, 0.01, region=[[-9, 9], [-9, 9]])
RATIOS = np.array([[0.1, 2.0, 1.0], [0.2, 1.0, 3.0], [0.1, 0.5, 1.0]])
MOVE = hf.Move(CHAIN)
UNEVEN = np.array([0.7, 0.1, 0.1, 0.1])
FLOW = ExactFlow(hf.Observation.read(CHAIN, [1.0, 2.0], 1), pseudo_times(3))
TABLE = HerdedGibbs.from_joint([[0.4, 0.1], [0.2, 0.3]])
Z = np.array([[0.1, 0.2], [0.3, 0.1], [1.0, 0.4], [0.5, 0.5]])


def from_functions(**changed):
    given = {"Q": EYE, "R": EYE, "x0": np.zeros(2), "P0": EYE} | changed
    return hf.models.from_functions(lambda x: x, lambda x: x, **given)


def resampled(scheme, particles, log_weights):
    return scheme.resample(hf.Cloud(particles, log_weights), np.random.default_rng(0)).particles


def proposed(proposal, particles, log_weights):
    return proposal.propose(MOVE, hf.Cloud(particles, log_weights), np.random.default_rng(0)).particles


def guided(proposal, particles, log_weights):
    cloud, seen = hf.Cloud(particles, log_weights), hf.Observation.read(CHAIN, [0.1, 0.2], 1)
    return proposal.guide(MOVE, cloud, seen, np.random.default_rng(0)).particles


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
    "auto": partial(hf.ParticleFilter, n_particles=20, proposal=hf.AutomaticProposal(), rng=0),
}
FITS = {"em": hf.EMFit(2), "bic": hf.EMFit("bic"), "division": hf.DivisiveFit(), "gauss": hf.GaussianFit(),
        "kde": hf.KernelDensityFit()}  # fmt: skip
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

COMPILED = {
    "simplex_weights": (hf.simplex_weights, {"gram": np.exp(-np.abs(np.subtract.outer(W, W))), "z": W}),
    "optimal_weights": (partial(hf.optimal_weights, mixture=MIXTURE), {"points_x": X, "kernel_covariance": EYE}),
    "kernel_matrix": (hf.kernel_matrix, {"x": X, "covariance": EYE}),
    "herding": (partial(herding, n=5), {"moments": W}),
    "herding with features": (partial(herding, n=5), {"moments": np.array([0.5, 0.5]), "features": EYE}),
    "associate by herded Gibbs": (partial(associate, method="herded-gibbs"), {"ratios": RATIOS}),
    "associate by random Gibbs": (partial(associate, method="random-gibbs", rng=0), {"ratios": RATIOS}),
    "Lorenz63.transition_mean": (
        partial(hf.models.Lorenz63().transition_mean, dt=0.1, control=None, step=1), {"x": np.ones((4, 3))},
    ),
    "Cloud": (hf.Cloud, {"particles": X, "log_weights": np.log(W)}),
    "Cloud.equal": (hf.Cloud.equal, {"particles": X}),
    "Cloud.weighted": (hf.Cloud.weighted, {"particles": X, "weights": W}),
    "ConditionalHerdedGibbs": (
        partial(hf.ConditionalHerdedGibbs(0.5).herd, [lambda v, x: np.exp(-(v**2) / 2) / 2.5066] * 2, 3),
        {"start": np.zeros(2), "bounds": np.array([[-8.0, 8.0], [-8.0, 8.0]])},
    ),
    "ContinuousHerdedGibbs.sample": (partial(hf.ContinuousHerdedGibbs().sample, MIXTURE, 3), {"start": np.zeros(2)}),
    **{f"fit {n}": (fit.fit, {"particles": X, "weights": W}) for n, fit in FITS.items()},
    **{f"ancestors {n}": (partial(s.ancestors, rng=np.random.default_rng(0)), {"weights": UNEVEN})
       for n, s in SCHEMES.items() if hasattr(s, "ancestors")},
    **{f"resample {n}": (partial(resampled, s), {"particles": X, "log_weights": np.log(W)}) for n, s in SCHEMES.items()},
    **{f"propose {n}": (partial(proposed, p), {"particles": X, "log_weights": np.log(W)}) for n, p in PROPOSALS.items()},
    **{f"guide {n}": (partial(guided, p), {"particles": X, "log_weights": np.log(W)}) for n, p in GUIDED.items()},
}  # fmt: skip
"""Name -> what enters a compiled loop, and its arguments that are arrays."""

OTHERS = {
    "Points": (hf.Points, {"x": X, "weights": W}),
    "GaussianMixture": (hf.GaussianMixture, {"weights": W, "means": X, "covariances": EYE}),
    "log_density": (MIXTURE.log_density, {"x": X}),
    "component_log_densities": (MIXTURE.component_log_densities, {"x": X}),
    "conditional": (partial(MIXTURE.conditional, [0]), {"values": np.array([1.0])}),
    "convolve": (MIXTURE.convolve, {"covariance": EYE}),
    "herding_error": (partial(hf.herding_error, hf.Points(X), MIXTURE), {"sigma_k": EYE}),
    "normalised_l2": (partial(hf.normalised_l2, hf.Points(X), MIXTURE), {"sigma_k": EYE}),
    "sliced_wasserstein": (partial(hf.sliced_wasserstein, hf.Points(X), MIXTURE), {"directions": EYE}),
    "KernelHerding": (hf.KernelHerding, {"bandwidth": EYE}),
    "kernel_covariance": (partial(kernel_covariance, mixture=MIXTURE, n=5), {"bandwidth": EYE}),
    "thin": (partial(hf.thin, m=2), {"x": X, "weights": W}),
    "expected_kernel": (partial(expected_kernel, MIXTURE), {"x": X, "covariance": EYE}),
    "expected_kernel, Laplace": (
        partial(expected_kernel, MIXTURE, kernel=hf.kernels.Laplace()), {"x": X, "covariance": EYE}),
    "expected_kernel_pair": (partial(expected_kernel_pair, MIXTURE), {"covariance": EYE}),
    "density_product": (partial(density_product, MIXTURE), {"covariance": EYE}),
    "log_normaliser": (log_normaliser, {"covariance": EYE}),
    "wrap_angles": (partial(angles.wrap_angles, circular=[0]), {"x": X}),
    "unwrap_angles": (partial(angles.unwrap_angles, circular=[0]), {"x": X, "weights": W}),
    "moments": (angles.moments, {"x": X, "weights": W}),
    "merged": (angles.merged, {"means": X, "covariances": np.tile(EYE, (4, 1, 1)), "weights": W}),
    "associate": (associate, {"ratios": RATIOS}),
    "marginals": (marginals, {"ratios": RATIOS}),
    "k_best_assignments": (partial(k_best_assignments, k=2), {"ratios": RATIOS}),
    "ratios": (ratios, {"likelihoods": RATIOS, "detection_probability": W[:3], "clutter_density": W[:3], "existence": W[:3]}),
    "from_joint": (HerdedGibbs.from_joint, {"table": RATIOS}),
    "HerdedGibbs": (partial(HerdedGibbs, lambda i, x: [0.5, 0.5]), {"cardinalities": np.array([2, 2])}),
    "HerdedGibbs.sample": (partial(TABLE.sample, 3), {"start": np.array([0, 1])}),
    "ConditionalHerdedGibbs bandwidth": (hf.ConditionalHerdedGibbs, {"bandwidth": np.array([1.0, 2.0])}),
    "gospa": (partial(gospa, cutoff=3.0), {"truth": X, "estimates": X}),
    "ospa": (partial(ospa, cutoff=3.0), {"truth": X, "estimates": X}),
    "label_switches": (partial(label_switches, labels=[[1, 2, 3, 4]], cutoff=3.0), {"truth": X[None], "estimates": X[None]}),
    "simulate_scans": (partial(simulate_scans, CLUTTER, rng=0), {"truth": X[None]}),
    "simulate": (partial(hf.simulate, CHAIN, 3, 0), {"initial": np.zeros(2)}),
    "simulate modes": (partial(hf.simulate, JUMP, 3, 0), {"modes": np.array([0, 1, 0, 1])}),
    "JumpMarkov": (partial(hf.models.JumpMarkov, [CHAIN, CHAIN]),
                   {"transition_matrix": np.array([[0.9, 0.1], [0.2, 0.8]]), "initial_modes": np.array([0.5, 0.5])}),
    "from_functions": (from_functions, {"Q": EYE, "R": EYE, "x0": np.zeros(2), "P0": EYE}),
    "UniformBox": (hf.models.UniformBox, {"lower": np.zeros(2), "upper": np.ones(2)}),
    "WithClutter": (partial(hf.models.WithClutter, CHAIN, 0.9, 0.01), {"region": np.array([[-9.0, 9.0], [-9.0, 9.0]])}),
    "Sensor": (partial(hf.Sensor, lambda x: x), {"covariance": EYE}),
    "Sensor region": (partial(hf.Sensor, lambda x: x, EYE, detection_probability=0.9, clutter_density=0.1),
                      {"region": np.array([[-9.0, 9.0], [-9.0, 9.0]])}),
    "Sensor.sample": (partial(SENSOR.sample, rng=0), {"x": X}),
    "GridFilter": (partial(hf.GridFilter, CHAIN, points=12), {"lower": np.array([-5.0, -5.0]), "upper": np.array([5.0, 5.0])}),
    "migrate": (lambda covariance: FLOW.migrate(covariance, (np.zeros(2), X)), {"covariance": EYE}),
    "run, dt": (ran, {"dt": np.ones(4)}),
    "run, times": (ran, {"times": np.array([1.0, 2.0, 3.0, 4.0])}),
    "run, controls": (ran, {"controls": X}),
    "maximise_likelihood": (
        lambda **given: hf.maximise_likelihood(lambda theta: hf.UnscentedKalmanFilter(CHAIN), Z, max_evaluations=3, **given),
        {"theta0": np.zeros(1), "bounds": np.array([[-1.0, 1.0]])},
    ),
    "propagate": (partial(contract.propagate, CHAIN, dt=1.0, control=None, step=1), {"x": X, "noise": X}),
    "sample_transition": (partial(contract.sample_transition, CHAIN, rng=np.random.default_rng(0), dt=1.0, control=None, step=1), {"x": X}),
    "predictive_mixture": (partial(contract.predictive_mixture, CHAIN, dt=1.0, control=None, step=1), {"x": X, "weights": W}),
    "squared_error": (partial(metrics.squared_error, dims=[0]), {"estimate": X, "target": X}),
    "root_mean": (metrics.root_mean, {"squared": W}),
    "normalised_squares": (metrics.normalised_squares, {"errors": X, "covariances": np.tile(EYE, (4, 1, 1))}),
    "inside_ellipsoid": (metrics.inside_ellipsoid, {"squares": W, "degrees": np.ones(4)}),
    "energy_distance_on_line": (metrics.energy_distance_on_line,
        {"x": W, "weights": W, "edges": np.array([0.0, 1.0, 2.0]), "masses": np.array([0.5, 0.5])}),
    "plot_ellipse": (plot_ellipse, {"mean": np.zeros(2), "covariance": EYE}),
    "plot_points": (plot_points, {"points": X, "weights": W}),
    "plot_track": (plot_track, {"means": X, "covariances": np.tile(EYE, (4, 1, 1))}),
    **{f"{n} control": (partial(predicted, make), {"control": np.zeros(2)}) for n, make in FILTERS.items()},
}  # fmt: skip

SERIES = hf.simulate(CHAIN, 6, rng=1)[1]
HIDDEN = np.zeros((6, 2), bool)
HIDDEN[1] = HIDDEN[3, 1] = True


def masked(values):
    mask = np.zeros(np.shape(values), bool)
    mask.flat[-1] = True
    return np.ma.masked_array(values, mask=mask)


def with_na(values):
    entries = np.array(values, dtype=object)
    entries.flat[-1] = pd.NA
    return entries


HIDING = {"masked": masked, "a list": lambda values: list(masked(values)), "NA": with_na}
"""Ways to say that a number is missing, beside NaN."""


def each(registry):
    return [pytest.param(*entry, name, id=f"{key}, {name}") for key, entry in registry.items() for name in entry[1]]


@pytest.mark.parametrize("hide", HIDING.values(), ids=list(HIDING))
@pytest.mark.parametrize(("function", "given", "name"), each(COMPILED | OTHERS))
def test_a_mask_is_refused_by_name_where_all_numbers_are_needed(function, given, name, hide):
    with pytest.raises(ValueError, match=rf"^{name}: .*got entries that are masked or NA; fill them in .*$") as caught:
        function(**given | {name: hide(given[name])})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("function", "given", "name"), each(COMPILED | OTHERS))
def test_a_masked_array_without_a_masked_entry_is_data(function, given, name):
    function(**given | {name: np.ma.masked_array(given[name], mask=np.zeros(np.shape(given[name]), bool))})
