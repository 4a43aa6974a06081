"""A valid call of every public callable, each a statement of `valid`; `calls.py` replaces their arguments one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import gaussian_kde

import herdfilter as hf
from herdfilter import (
    angles,
    association,
    bandwidths,
    catalogue,
    discrete,
    kernels,
    models,
    study,
    testing,
    tracking,
)


def build(theta: Any) -> hf.UnscentedKalmanFilter:
    """Return the filter of a model with a parameter."""
    return hf.UnscentedKalmanFilter(
        models.LinearGaussian([[theta[0]]], [[1]], [[1]], [[1]], [0], [[1]])
    )


I2, W = np.eye(2), np.array([0.1, 0.3, 0.1, 0.2, 0.2, 0.1])
X = np.arange(12.0).reshape(6, 2) ** 1.5 / 6
MIX = hf.GaussianMixture([0.6, 0.4], [[0, 0], [3, 1]], [[[1, 0.5], [0.5, 1]], [[0.5, 0], [0, 2]]])
LINE = hf.GaussianMixture([0.6, 0.4], [[0], [3]], [[[1]], [[0.5]]])
PTS = hf.Points(X, W)
WALK = models.ConstantVelocity(0.1, 0.5, [0, 1], I2)
CLUTTER = models.WithClutter(WALK, 0.9, 0.01, region=[[-5, 10]])
HALF_LINEAR = models.ConditionallyLinear(models.linear_chain(2), [1])
JUMP = models.JumpMarkov(
    [WALK, models.ConstantVelocity(2.0, 0.5, [0, 1], I2)], [[0.9, 0.1], [0.2, 0.8]]
)
Z = np.array([[0.9], [2.1], [2.8], [4.2]])
PAIRS = np.repeat(Z, 2, axis=1)
SERIES = hf.simulate(build([0.5]).model, 20, 0)[1]
WALKED = hf.simulate(WALK, 20, 0)[1]
SCANS = [[[0.9]], [[2.1], [3.0]]]
RUN = hf.ParticleFilter(WALK, 10, rng=0).run(Z, keep_particles=True)
KALMAN_RUN = hf.UnscentedKalmanFilter(WALK).run(Z)
RATIOS = np.array([[0.1, 2.0, 0.0], [0.3, 1.0, 3.0]])
BIRTH = tracking.Birth(0.1, WALK.initial)
TRUTH = np.array([[[0.0, 0.0], [5.0, 5.0]], [[1.0, 0.0], [5.0, 6.0]]])
TABLE = hf.compare("linear_gaussian", ["bootstrap", "ukf"], particles=[10], runs=6)


def first(x: Any) -> Any:
    """Return the first entry of each state."""
    return x[:, :1]


def fading(x: Any) -> Any:
    """Return the only entry of one state, made smaller."""
    return 0.9 * x[0]


def normal(values: Any, x: Any) -> Any:
    """Return a conditional density."""
    return np.exp(-0.5 * values**2) / np.sqrt(2 * np.pi)


def steps(model: Any, dt: Any = 1.0) -> Any:
    """Return states that are simulated of a model, and a filter that has made a step."""
    pf = hf.ParticleFilter(model, 8, rng=0)
    pf.predict(dt)
    return hf.simulate(model, 2, rng=0, dt=dt)[0], pf


def uses(proposal: Any) -> hf.FilterResult:
    """Return a run of a particle filter with a proposal."""
    return hf.ParticleFilter(WALK, 10, proposal, rng=0).run(Z)


def resamples(resampling: Any) -> hf.FilterResult:
    """Return a run of a particle filter with a resampling scheme."""
    return hf.ParticleFilter(WALK, 10, resampling=resampling, resample_below=1.0, rng=0).run(Z)


def valid() -> None:
    """Hold one valid call in every statement."""
    hf.GaussianMixture(
        weights=[0.5, 0.5], means=[[0.0, 0.0], [3.0, 1.0]], covariances=[[1.0, 0.2], [0.2, 1.0]]
    ).log_density(X)
    MIX.log_density(x=X)
    MIX.component_log_densities(x=X)
    MIX.conditional(dims=[0], values=[1.0])
    MIX.marginal(dims=[1])
    MIX.convolve(covariance=I2)
    MIX.sample(n=5, rng=0)
    hf.GaussianMixture.from_kde(kde=gaussian_kde(X.T))
    hf.Points(x=[[0.0, 1.0], [2.0, 3.0]], weights=[0.5, 0.5], signed=False)
    hf.ContinuousHerdedGibbs(target="smoothed", bandwidth=0.5).sample(
        mixture=MIX, n=5, rng=0, start=[0.0, 0.0]
    )
    hf.JointHerding(smoothing=50.0, block=2, iterations=3).sample(mixture=MIX, n=5, rng=0)
    hf.JointHerdedGibbs(smoothing=50.0, block=2, sweeps=2).sample(mixture=MIX, n=5, rng=0)
    hf.models.count_evaluations().__enter__()
    hf.models.Evaluations(transition=1, observation=2)
    hf.KernelHerding(bandwidth=0.5, weights="equal").sample(mixture=MIX, n=5, rng=0)
    hf.KernelHerding(bandwidth=[0.5, 0.6], weights="line-search").sample(MIX, 5)
    hf.KernelHerding(bandwidth=[[0.5, 0.1], [0.1, 0.6]], weights="fully-corrective").sample(MIX, 5)
    hf.LCDSampling(largest=10.0, iterations=5).sample(mixture=LINE, n=3, rng=0)
    hf.MappedSampling(sampler=hf.RandomSampling()).sample(mixture=MIX, n=5, rng=0)
    hf.Polished(sampler=hf.SobolSampling(), bandwidth=0.5, iterations=3).sample(
        mixture=MIX, n=5, rng=0
    )
    hf.QuantileSampling().sample(mixture=LINE, n=5, rng=0)
    hf.RandomSampling().sample(mixture=MIX, n=5, rng=0)
    hf.Reweighted(sampler=hf.SobolSampling(), constraint="simplex", bandwidth=0.5).sample(
        mixture=MIX, n=5, rng=0
    )
    hf.SigmaPoints(kind="unscented", kappa=1.0).sample(mixture=MIX, n=5, rng=0)
    hf.SigmaPoints().size(mixture=MIX)
    hf.SobolSampling(scramble=True).sample(mixture=MIX, n=5, rng=0)
    hf.ConditionalHerdedGibbs(bandwidth=0.5).herd(
        conditionals=[normal, normal], n=3, start=[0.0, 0.0], bounds=[[-5.0, 5.0], [-5.0, 5.0]]
    )
    hf.energy_distance(points=PTS, mixture=MIX)
    hf.expected_energy_distance(mixture=MIX, n=5)
    hf.herding_error(points=PTS, mixture=MIX, sigma_k=0.5)
    hf.kernel_matrix(x=X, covariance=I2)
    hf.normalised_l2(points=PTS, mixture=MIX, sigma_k=[0.5, 0.6])
    hf.optimal_weights(x=X, mixture=MIX, kernel_covariance=I2, constraint="sum")
    hf.simplex_weights(gram=np.eye(6), z=W)
    hf.thin(x=X, m=3, weights=W, circular=())
    discrete.herding(moments=[0.2, 0.3, 0.5], n=5)
    discrete.herding([0.2, 0.3], 5, features=[[0.0, 1.0], [1.0, 0.0], [0.5, 0.0]])
    discrete.HerdedGibbs.from_joint(table=[[0.1, 0.2], [0.3, 0.4]]).sample(
        n=4, start=[0, 0], burn_in=1
    )
    discrete.HerdedGibbs(
        conditional=lambda i, state: [0.4, 0.6], cardinalities=[2, 2], neighbours=[[1], [0]]
    ).sample(4)
    bandwidths.Whitened(constant=1.0, offset=1.0, metric="mixture").covariance(mixture=MIX, n=5)
    bandwidths.Whitened().width(n=5, dim=2)
    bandwidths.Scott().covariance(mixture=MIX, n=5)
    bandwidths.Silverman().covariance(mixture=MIX, n=5)
    bandwidths.kernel_covariance(bandwidth=0.5, mixture=MIX, n=5)
    bandwidths.scale_rule(n=5, dim=2)
    hf.herding_error(PTS, MIX, 0.5, kernels.Matern(nu=1.5))
    hf.herding_error(PTS, MIX, 0.5, kernels.LocalizedCumulative(largest=10.0))
    kernels.density_product(mixture=MIX, covariance=I2)
    kernels.expected_kernel(mixture=MIX, x=X, covariance=I2)
    kernels.expected_kernel_pair(mixture=MIX, covariance=I2)
    kernels.log_normaliser(covariance=I2)
    kernels.as_kernel("kernel", kernel=kernels.Gaussian())
    angles.moments(x=X, weights=W, circular=(0,))
    angles.unwrap_angles(x=X, weights=W, circular=(0,))
    angles.wrap_angles(X, circular=(0,))
    hf.GaussianFit().fit(particles=X, weights=W, circular=())
    hf.EMFit(
        n_components=2,
        max_components=2,
        shared=False,
        floor=1e-6,
        tolerance=0.001,
        max_iterations=10,
    ).fit(particles=X, weights=W, circular=())
    hf.KernelDensityFit(scale=1.0, shrink=True, modes=2).fit(particles=X, weights=W, circular=())
    hf.ParticleFilter(model=WALK, n_particles=20, resample_below=0.5, rng=0).run(Z)
    uses(hf.AugmentedProposal(fit=hf.GaussianFit(), sampler=hf.RandomSampling()))
    uses(hf.AutomaticProposal(sampler=hf.KernelHerding(0.5)))
    uses(hf.HistoryProposal(proposal=hf.AutomaticProposal()))
    uses(hf.AuxiliaryProposal(resampling=hf.SystematicResampling()))
    uses(hf.BootstrapProposal())
    uses(hf.FlowProposal(local=True, flow_steps=5))
    uses(
        hf.GuidedAugmentedProposal(
            fit=hf.GaussianFit(), sampler=hf.RandomSampling(), rule="unscented", defensive_share=0.2
        )
    )
    uses(hf.GuidedProposal(rule="unscented"))
    uses(hf.HerdedProposal(sampler=hf.RandomSampling(), defensive_share=0.3))
    uses(
        hf.KalmanMixtureProposal(
            sampler=hf.RandomSampling(), rule="unscented", defensive_share=0.2, unguided_share=0.1
        )
    )
    hf.ParticleFilter(JUMP, 10, hf.ModeProposal(proposal=hf.BootstrapProposal()), rng=0).run(Z)
    models.ConditionallyLinear(model=models.linear_chain(2), linear=[1])
    hf.ParticleFilter(
        HALF_LINEAR, 10, hf.RaoBlackwellisedProposal(proposal=hf.BootstrapProposal()), rng=0
    ).run(PAIRS)
    uses(hf.RankedProposal(sampler=hf.SobolSampling(), guided=True, defensive_share=0.1))
    uses(hf.SequentialQuasiMonteCarlo())
    resamples(hf.MixtureResampling(fit=hf.GaussianFit(), sampler=hf.RandomSampling()))
    resamples(hf.OptimalTransportResampling(distance="whitened", largest=50))
    resamples(hf.RegularisedResampling(scale=1.0))
    resamples(hf.ResidualResampling(rest="systematic"))
    _ = (pf := hf.ParticleFilter(WALK, 20, rng=0)), pf.predict(dt=1.0), pf.update(z=[0.9])
    _ = (
        (pf := hf.ParticleFilter(WALK, 20, rng=0)),
        pf.predict(1.0),
        pf.predicted_observation(sensor=None),
    )
    hf.ParticleFilter(WALK, 20, rng=0).run(observations=Z, dt=1.0)
    hf.ParticleFilter(WALK, 20, rng=0).run(Z, dt=[1.0, 1.0, 2.0, 0.5])
    hf.ParticleFilter(WALK, 20, rng=0).run(Z, times=[1.0, 2.0, 3.0, 4.0])
    hf.CubatureKalmanFilter(model=WALK).run(observations=Z, dt=1.0)
    hf.ExtendedKalmanFilter(model=WALK).run(observations=Z, dt=1.0)
    hf.UnscentedKalmanFilter(model=WALK, alpha=1.0, beta=0.0, kappa=1.0).run(observations=Z, dt=1.0)
    _ = (
        (kf := hf.UnscentedKalmanFilter(WALK)),
        kf.predict(dt=1.0),
        kf.update(z=[0.9]),
        hf.BatchedKalmanFilter(
            model=WALK, means=[[0.0, 1.0]] * 2, covariances=I2, rule="unscented"
        ).run(np.ones((3, 2))),
    )
    hf.EnsembleKalmanFilter(model=WALK, n_particles=20, rng=0).run(Z)
    hf.DaumHuangFilter(model=WALK, n_particles=20, rng=0, local=False, flow_steps=5).run(Z)
    hf.SmartSamplingKalmanFilter(model=WALK, n_particles=5).run(Z)
    hf.InteractingMultipleModel(model=JUMP, rule="unscented").run(Z)
    hf.MixtureKalmanFilter(model=JUMP, n_particles=20, rule="unscented").run(Z)
    hf.GridFilter(model=build([0.5]).model, lower=[-15.0], upper=[15.0], points=[200]).run(
        observations=Z, dt=1.0
    )
    _ = (
        (pf := hf.Replay(filter=hf.UnscentedKalmanFilter(WALK), lag=5.0, start=0.0)),
        pf.update(time=1.0, z=[0.9]),
    )
    hf.make_filter(name="bootstrap", model=WALK, n_particles=20, rng=0).run(Z)
    hf.Particles(particles=X, log_weights=np.log(W))
    hf.Particles.equal(particles=X)
    hf.Particles.weighted(particles=X, weights=W)
    hf.Observation.read(WALK, [0.9], 1)
    RUN.to_dataframe(labels=["x", "v"])
    hf.Sensor(mean=first, covariance=[[0.5]], circular=()).sample(x=X, rng=0)
    _ = (
        (kf := hf.UnscentedKalmanFilter(WALK)),
        kf.predict(),
        kf.update([0.9], sensor=hf.Sensor(first, [[0.5]])),
    )
    hf.Sensor(
        first, [[0.5]], detection_probability=0.9, clutter_density=0.1, region=[[0.0, 10.0]]
    ).sample(X[:1], 0)
    hf.simulate(model=WALK, steps=3, rng=0, dt=1.0, initial=[0.0, 1.0])
    hf.simulate(JUMP, 3, 0, modes=[0, 0, 1, 1])
    hf.backward_simulation(model=WALK, result=RUN, n_trajectories=3, rng=0, dt=1.0)
    hf.marginal_smoother(model=WALK, result=RUN, dt=1.0)
    hf.rts_smoother(filter=hf.UnscentedKalmanFilter(WALK), result=KALMAN_RUN, dt=1.0)
    hf.fixed_lag_smoother(filter=hf.UnscentedKalmanFilter(WALK), result=KALMAN_RUN, lag=2, dt=1.0)
    _ = (
        (s := hf.FixedLagSmoother(filter=hf.UnscentedKalmanFilter(WALK), lag=2)),
        s.predict(dt=1.0),
        s.update(z=[0.9]),
    )
    hf.maximise_likelihood(
        build=build,
        observations=SERIES,
        theta0=[0.5],
        bounds=[[-0.95, 0.95]],
        names=["a"],
        max_evaluations=30,
    )
    hf.fit_noise(
        model=WALK,
        observations=WALKED,
        what="scale",
        n_particles=20,
    )
    hf.run_many(
        build=lambda k: hf.UnscentedKalmanFilter(WALK),
        list_of_observations=[Z, Z],
        workers=1,
        progress=False,
    )
    association.marginals(ratios=RATIOS, method="exact", rng=0)
    association.associate(ratios=RATIOS, method=association.Exact(max_ways=1000))
    association.BeliefPropagation(tolerance=1e-10, max_iterations=100).marginals(
        ratios=RATIOS, rng=0
    )
    association.HerdedGibbs(
        sweeps=20, key="set", neglect="auto", first_visit="irrational"
    ).marginals(ratios=RATIOS, rng=0)
    association.KBest(k=5).marginals(ratios=RATIOS, rng=0)
    association.RandomGibbs(sweeps=20).marginals(ratios=RATIOS, rng=0)
    association.k_best_assignments(ratios=RATIOS, k=3)
    association.ratios(
        likelihoods=[[0.2, 0.1], [0.3, 0.4]],
        detection_probability=0.9,
        clutter_density=0.1,
        existence=0.8,
    )
    tracking.Birth(probability=0.1, initial=WALK.initial).within(dt=1.0)
    tracking.LMBTracker(
        CLUTTER,
        tracking.BirthFromMeasurements(initial=WALK.initial, expected=0.1, most=0.1),
        filter="ukf",
    ).run(SCANS)
    tracking.LMBTracker(
        model=CLUTTER,
        birth=[BIRTH],
        survival_probability=0.99,
        association="auto",
        filter="ukf",
        n_particles=10,
        rng=0,
        initial=[BIRTH],
    ).run(SCANS)
    tracking.LMBTracker(CLUTTER, [BIRTH], filter="ukf", rng=0).run(scans=SCANS, dt=1.0)
    _ = (
        (t := tracking.LMBTracker(CLUTTER, [BIRTH], filter="ukf", rng=0)),
        t.predict(dt=1.0),
        t.update(scan=[[0.9], [5.0]]),
    )
    tracking.gospa(truth=TRUTH[0], estimates=X[:2], cutoff=5.0, p=2.0, alpha=2.0)
    tracking.ospa(truth=TRUTH[0], estimates=X[:2], cutoff=5.0, p=1.0)
    tracking.label_switches(
        truth=TRUTH, estimates=[X[:2], X[:2]], labels=[[1, 2], [1, 2]], cutoff=50.0
    )
    tracking.simulate_scans(model=CLUTTER, truth=[[[0.0, 1.0]], [[1.0, 1.0]]], rng=0)
    tracking.LMBTracker(CLUTTER, [BIRTH], filter="ukf", rng=0, confirm=(2, 3)).run(
        SCANS
    ).to_dataframe()
    tracking.LMBTracker(CLUTTER, [BIRTH], filter="ukf", rng=0).run(SCANS).summary()
    tracking.scans_from_table(
        table=pd.DataFrame({"t": [1.0], "x": [0.5]}), columns=["x"], time="t", times=[1.0, 2.0]
    )
    _ = (
        (late := hf.Replay(tracking.LMBTracker(CLUTTER, [BIRTH], filter="ukf", rng=0), lag=5.0)),
        late.update(time=1.0, z=[[0.9]]),
    )
    models.JumpMarkov([WALK, WALK], [[0.9, 0.1], [0.2, 0.8]])
    models.UniformBox(lower=[0.0, 0.0], upper=[1.0, 2.0]).sample(n=3, rng=0)
    models.UniformBox([0.0, 0.0], [1.0, 2.0]).log_density(x=X / 10)
    models.linear_chain(dim=3, coupling=0.42)
    models.sample_modes(model=JUMP, steps=4, rng=0)
    catalogue.resolve_filters(filters=["bootstrap"])
    testing.random_mixture(seed=0, dim=2, n_components=3)
    study.posterior_cramer_rao_bound(model=WALK, steps=2, dt=1.0, runs=5, rng=0)
    study.summarise(table=TABLE, baseline="bootstrap")
    study.claims(table=TABLE, baseline="bootstrap", level=0.95, simultaneous=True)
    hf.compare(scenario="linear_gaussian", filters=["bootstrap"], particles=[5], runs=1, seed=0)
    steps(
        models.from_functions(
            f=np.sin, h=first, Q=I2, R=[[0.5]], initial_mean=[0, 0], initial_covariance=I2
        ),
        dt=1.0,
    )
    steps(
        models.CompiledModel(
            f=fading, h=fading, Q=[[0.1]], R=[[0.5]], initial_mean=[0], initial_covariance=[[1.0]]
        ),
        dt=1.0,
    )
    models.CompiledFunction(function=fading, size=1, parameters=[1.0])
    steps(models.UNGM(), dt=1.0)
    steps(models.BallisticReentry(), dt=1.0)
    steps(models.BearingsOnly(), dt=1.0)
    steps(models.BearingsTracking(), dt=1.0)
    steps(models.CirclingRange(), dt=1.0)
    steps(
        models.ConstantVelocity(
            spectral_density=0.1, position_sd=0.5, initial_mean=[0, 1], initial_covariance=I2
        ),
        dt=1.0,
    )
    steps(models.CoordinatedTurn(), dt=1.0)
    steps(models.DoubleWell(), dt=1.0)
    steps(models.LandmarkLocalisation(), dt=1.0)
    steps(
        models.LinearGaussian(
            F=I2, H=[[1, 0]], Q=I2, R=[[1]], initial_mean=[0, 1], initial_covariance=I2
        ),
        dt=1.0,
    )
    steps(models.Lorenz63(), dt=1.0)
    steps(models.Lorenz96(), dt=1.0)
    steps(models.RadarTracking(), dt=1.0)
    steps(models.RangeOnly(beacons=[[0, 0], [20, 0], [0, 20]]), dt=1.0)
    steps(models.RangeTracking(), dt=1.0)
    steps(models.StochasticVolatility(), dt=1.0)
    steps(models.random_model(seed=3), dt=1.0)
    steps(
        models.WithClutter(
            model=WALK, detection_probability=0.9, clutter_density=0.01, region=[[0, 100]]
        ),
        dt=1.0,
    )
    steps(
        models.JumpMarkov(
            models=[WALK, WALK],
            transition_matrix=[[0.9, 0.1], [0.2, 0.8]],
            initial_modes=[0.5, 0.5],
        ),
        dt=1.0,
    )
