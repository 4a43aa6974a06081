"""Arrays of what every filter, sampler, fit and model makes, to compare two versions to the last bit.

    python tests/arrays.py write FILE [--only PART ...]
    python tests/arrays.py compare BEFORE AFTER [--renamed OLD=NEW ...] [--removed PATTERN ...]

`write` runs small seeded cases and keeps their arrays, key -> array; of a case that raises an error the name
of its type, under ``key/error``. `compare` counts the arrays that are equal in each part that both files
have, and names those that differ or that one file lacks; it exits with 1 if there are any.

Write each file with the script of its own version. ``--renamed`` says what has another name in AFTER, as
``--renamed Lmb=LMBTracker``; ``--removed`` names keys that need not be in both, as ``--removed '*LCDSampling(*'``.
"""

import argparse
import inspect
import os
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping
from fnmatch import fnmatch
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path

os.environ["HERDFILTER_CACHE"] = "off"
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = os.environ[
    "MKL_NUM_THREADS"
] = "1"

import numpy as np

import herdfilter as hf

TEXTS = """
fields: means covariances mean covariance ess resampled log_likelihoods log_likelihood mode_probabilities x
steps particles weights masses marginals log_evidence theta standard_errors evaluations roughness smooth
labels window existence cardinality

models: models.UNGM() models.BallisticReentry() models.BearingsOnly() models.BearingsTracking()
models.Lorenz63() models.CirclingRange() models.CoordinatedTurn() models.DoubleWell(observed_every=2)
models.RangeTracking() models.LandmarkLocalisation(reverse_every=3) models.Lorenz96() models.linear_chain(3)
models.RadarTracking() models.RangeOnly([[0,0],[20,0],[0,20]]) models.StochasticVolatility()
models.random_model(18) walks[1] models.JumpMarkov(walks,[[0.9,0.1],[0.1,0.9]]
|lines,[[0.9,0.1],[0.3,0.7]],[0.8,0.2]) models.WithClutter(models.CoordinatedTurn(),0.8,2e-4,[[0,3000],[-3,3]]
|jumping,0.9,0.02,[[-50,50]])

of-model: simulate(m,5,1,dt) models.sample_modes(m,5,1) m.initial.mean m.initial.covariance
m.initial.sample(5,2) m.initial.log_density(x) m.transition_mean(x,dt,u,2) m.transition_covariance(dt,2)
m.transition(x,e,dt,u,2) m.sample_transition(x,rng(3),dt,u,2) m.transition_log_density(x,x,dt,u,2)
m.transition_jacobian(x,dt,u,2) m.observation_mean(x,2) m.observation_covariance(2|2,x)
m.observation_jacobian(x,2) m.log_likelihood(z,x,2) m.sample_observation(x,rng(4),2) m.control(2) m.steps
m.spread m.grid study.posterior_cramer_rao_bound(m,4,dt,50,5)

inner: KernelHerding() ContinuousHerdedGibbs() RandomSampling() QuantileSampling() LCDSampling()
SobolSampling(|scramble=True) Polished(KernelHerding()) Reweighted(KernelHerding())
MappedSampling(KernelHerding()|RandomSampling()|SobolSampling()
|ContinuousHerdedGibbs(),match_moments=False)

samplers: KernelHerding(bandwidth=0.5|bandwidth=bandwidths.Scott()|weights='line-search'
|kernel=kernels.Energy()|bandwidth=bandwidths.Silverman(),kernel=kernels.Laplace()|weights='fully-corrective'
|kernel=kernels.Matern(2.5)|bandwidth=bandwidths.Whitened(1.0,4.0,'diagonal')
|bandwidth=bandwidths.Whitened(metric='components')
|kernel=kernels.LocalizedCumulative()) ContinuousHerdedGibbs(target='paper'
|target='paper',effective_count=True,component_herding=True|sweeps=2
|effective_count=False,component_herding=False|bandwidth=0.5) SigmaPoints(|'cubature')
Polished(RandomSampling(),kernel=kernels.Energy(),iterations=10|ContinuousHerdedGibbs(),bandwidth=0.5)
Reweighted(SobolSampling(),bandwidth=0.5,kernel=kernels.Matern()|RandomSampling(),constraint='sum')
LCDSampling(largest=5.0,iterations=20)

of-mixture: p p.mean p.covariance p.log_density(x) p.component_log_densities(x) p.marginal([0]) p.sample(10,1)
p.conditional(0,[0.5]) p.convolve(np.eye(d))

conditional: ConditionalHerdedGibbs(0.4|[0.3,0.5],sweeps=2,effective_count=False|0.4,normalised=False)

fits: GaussianFit() EMFit(1|3|'bic'|'bic',max_components=2|2,shared=True|2,least=0.2
|3,floor=0.01,max_iterations=5) KernelDensityFit(|modes=1|scale=0.5,shrink=False)

of-sample: energy_distance(q,p|q,o) expected_energy_distance(p,40) normalised_l2(q,p,0.5)
optimal_weights(x,p,k,'sum'|x,p,k,'none')
simplex_weights(kernel_matrix(x,k),kernels.expected_kernel(p,x,k)) thin(x,20|x,7,w|x,7,w,[0])
kernels.density_product(p) kernels.log_normaliser(k) bandwidths.scale_rule(40,3)
bandwidths.kernel_covariance('auto',p,40|bandwidths.Silverman(),p,40) discrete.herding(w,50|w@y,50,y)
discrete.HerdedGibbs.from_joint(t).sample(50,[1,2,1],burn_in=5) q o
discrete.HerdedGibbs.from_joint(t,neighbours=[[1],[0,2],[1]],remember=False).sample(50)

kernels: kernels.Gaussian() kernels.Laplace() kernels.Matern(2.5) kernels.Energy()
kernels.LocalizedCumulative()

of-kernel: g.value(x) g.slope(x) g.scales() herding_error(q,p,0.5,g) kernel_matrix(x,k,g)
optimal_weights(x,p,k,kernel=g) kernels.expected_kernel(p,x,k,g) kernels.expected_kernel_pair(p,k,g)

schemes: SystematicResampling() MultinomialResampling() StratifiedResampling() SSPResampling()
ResidualResampling(|rest='systematic') RegularisedResampling(|scale=0.5) OptimalTransportResampling(
|distance='euclidean'|largest=20)

proposals: HerdedProposal({}|{},defensive_share=0.1) RankedProposal({}|{},guided=False) AutomaticProposal({})
AugmentedProposal(EMFit(2),{}|GaussianFit(),{}) KalmanMixtureProposal({}
|{},rule='cubature',unguided_share=0.2) GuidedAugmentedProposal(EMFit(2),{}
|GaussianFit(),{},rule='extended',defensive_share=0.1)

others: UnscentedKalmanFilter(model,0.5,2.0,0.5) SmartSamplingKalmanFilter(model,7)
GridFilter(model,-40,40,[301]) DaumHuangFilter(model,n,seed,flow_steps=5
|model,n,seed,True,kalman=ExtendedKalmanFilter) InteractingMultipleModel(model,'extended')
MixtureKalmanFilter(model,n,'cubature') ParticleFilter(model,n,rng=seed,resample_below=0.9
|model,n,rng=seed,on_degeneracy='predict'|model,n,GuidedProposal('extended'),rng=seed
|model,n,RankedProposal(defensive_share=0.3)|model,n,FlowProposal(flow_steps=5),rng=seed
|model,n,ModeProposal(BootstrapProposal(),modes='random'),rng=seed)

association: exact auto belief-propagation k-best random-gibbs herded-gibbs KBest(5) Exact(1000
|10,association.KBest()) BeliefPropagation(1e-3,20) RandomGibbs(200,'counts'|200,'joint')
HerdedGibbs(200,neglect=1.0|200,'assignment',first_visit='argmax',estimate='joint'
|200,neglect=0,estimate='counts')

smoothed: ekf ukf ckf enkf imm mkf edh bootstrap sqmc guided ranked auto herded-kh mixture-kh
augmented-kh

of-run: rts_smoother(f,r,**o) marginal_smoother(f,r,**o) fixed_lag_smoother(f,r,2,**o|f,r,0,**o)
backward_simulation(f,r,20,1,**o)

trackers: tracking.LMBTracker(model,fixed,filter=ukf,association='k-best'|model,fixed,filter=ekf,prune=0.01
|model,found,filter=edh,rng=rng(1)|model,fixed,filter=enkf,rng=rng(1)|model,fixed,0.9,filter=ukf,max_tracks=3
|model,fixed,filter=ukf,gate_probability=0.9|model,found,filter=random,n_particles=20,rng=rng(1)
|model,found,filter=ukf,association=association.HerdedGibbs(200,key='assignment'),report=0.1
|model,found,filter=ukf,association=association.RandomGibbs(200),rng=rng(1),initial=fixed
|model,found,filter=kh,n_particles=20,gate_probability=1.0|model,fixed,filter=imm|model,fixed,filter=mkf)
"""
"""Names, and expressions of public names, by what they are of; ``A(1|2)`` is ``A(1)`` and ``A(2)``."""


def listed(text):
    """Return the words of a text, each with one of its alternatives."""
    words = (word.partition("(") for word in text.replace("\n|", "|").split())
    return [
        f"{head}({one})" if end else head
        for head, end, rest in words
        for one in rest[:-1].split("|")
    ]


LISTS = {name: listed(text) for name, text in re.findall(r"(?m)^([a-z-]+): ((?:.+\n)+)", TEXTS)}
UNGM, TURN, ROBOT, CHAIN, JUMPS, BEACONS = (
    next(text for text in LISTS["models"] if word in text)
    for word in ("UNGM", "Turn", "Landmark", "chain", "Jump", "RangeOnly")
)
rng = np.random.default_rng
PUBLIC = {name: getattr(hf, name) for name in {*dir(hf), *vars(hf)} if name[0] != "_"}


def made(text, **given):
    """Return the value of an expression of public names, and of what is given."""
    return eval(text, PUBLIC | {"np": np, "rng": rng} | given)


def factory(name):
    """Return a function (model, n, seed) that makes a filter: of the catalogue, or of an expression."""
    if "(" in name:
        return lambda model, n, seed: made(name, model=model, n=n, seed=seed)
    return partial(hf.make_filter, name)


def names(trackers=False):
    """Return the filters of the catalogue that track one target, or the trackers."""
    tables = hf.catalogue.catalogue()
    return [name for name, table in tables.items() if ("tracker" in table) == trackers]


class Arrays(dict):
    """The arrays of cases, by key."""

    def put(self, key, function, *given, **options):
        """Keep what a function returns; or the type of its error, and the steps completed before."""
        try:
            value = function(*given, **options)
        except Exception as error:
            self[f"{key}/error"] = np.array(type(error).__name__)
            value = getattr(error, "result", None)
        self.keep(key, value)

    def each(self, key, texts, **given):
        """Keep the values of expressions."""
        for text in texts:
            self.put(f"{key}/{text}", made, text, **given)

    def keep(self, key, value):
        """Keep numbers, or those in a mapping, a list or a result."""
        try:
            array = np.array(None if isinstance(value, Mapping) else value)
        except ValueError:  # a ragged list
            array = np.array(None)
        if array.dtype.kind in "biuf":
            if key in self:
                raise KeyError(f"{key}: two arrays of one key")
            self[key] = array
        elif value is not None:
            for name, part in parts(value).items():
                self.keep(f"{key}/{name}", part)


def parts(value):
    """Return what a mapping, a list or a result consists of, by name."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, list | tuple):
        return dict(enumerate(value))
    found = {name: getattr(value, name) for name in LISTS["fields"] if hasattr(value, name)}
    if not found:
        raise AssertionError(f"{type(value).__name__}: nothing is known to be kept of it")
    return found


def columns(values):
    """Return mappings or results, one for each step, as one mapping of lists."""
    rows = [parts(value) for value in values]
    return {name: [row.get(name) for row in rows] for name in rows[0]}


def line(factor, noise=0.5):
    """Return a model that is moved and seen by a factor."""
    return hf.models.LinearGaussian([[factor]], [[factor]], [[1]], [[noise]], [0], [[1]])


def swing(x, dt, control):
    """Move a pendulum with a motor."""
    push = 0.0 if control is None else control[0]
    return x + dt * np.column_stack([x[:, 1], push - 9.81 * np.sin(x[:, 0])])


@cache
def cases():
    """Return models of every kind, with 8 observations, and with what else ``run`` is told, by name."""
    found = {}
    eye = np.eye(2)
    force = np.sin(np.arange(8.0))[:, None]
    walks = [hf.models.ConstantVelocity(q, 0.5, [0, 1], 0.1 * eye) for q in (0.001, 10.0)]
    given = {"walks": walks, "lines": [line(0.9), line(1.1)]}
    for text in LISTS["models"]:
        model = made(text, **given, jumping=hf.models.JumpMarkov(walks, [[0.9, 0.1], [0.1, 0.9]]))
        found[text] = model, hf.simulate(model, 8, 1, 0.5)[1], {"dt": 0.5}
    (turn, z, _) = found[TURN]
    (robot, _, told) = found[ROBOT]
    told["controls"] = [robot.control(step) for step in range(1, 9)]
    for name in (TURN, ROBOT):
        model = found[name][0]
        partly = found[name][1].copy()
        told = found[name][2]
        partly[2, 1] = partly[4, :-1] = partly[5] = np.nan
        found[f"partial {name}"] = model, [*partly[:6], None, partly[7]], told
    found["uneven"] = turn, z, {"dt": [0.5, 1.0, 0.25, 2.0, 1.0, 0.75, 1.5, 1.0]}
    found["times"] = *found[CHAIN][:2], {"times": np.cumsum(found["uneven"][2]["dt"])}
    of_state = {"Q": lambda dt: 0.1 * dt * eye, "R": lambda x: 0.01 * (1 + x[:, :1, None] ** 2)}
    sine = hf.Sensor(
        lambda x: np.sin(x[:, 0]), of_state["R"], jacobian=lambda x: np.cos(x[:, None]) * [1, 0]
    )
    heavy = hf.Sensor(sine.mean, [[0.01]], log_likelihood=lambda z, x: -abs(z[0] - np.sin(x[:, 0])))
    pendulum = partial(
        hf.models.from_functions,
        swing,
        initial_mean=[2.5, 0.0],
        initial_covariance=0.1 * eye,
        circular=[0],
    )
    z_pendulum = np.sin(np.arange(2.5, 6.5, 0.5))[:, None]
    found["pendulum"] = (
        pendulum(h=sine.mean, **of_state),
        z_pendulum,
        {"dt": 0.1, "controls": force},
    )
    readings = [(0.1 * k, (sine, heavy)[k % 2], [0.6]) for k in range(1, 9)]
    found["unseen"] = pendulum(h=None, Q=0.1 * eye, R=None), readings, {"controls": force}
    radar = partial(hf.Sensor, lambda x: turn.observation_mean(x, 1), np.diag([100.0, 1e-4]), [1])
    sure = radar()
    scanner = radar(detection_probability=0.9, clutter_density=1e-4)
    fix = hf.Sensor(lambda x: x[:, [0, 2]], 400 * eye)
    scan = [z[2], [500.0, -1.0]]
    readings = [
        (1.0, None, z[0]),
        (1.0, fix, [1150.0, 1000.0]),
        (2.0, sure, z[1]),
        (3.0, scanner, scan),
    ]
    readings += [(4.0, scanner, []), (5.0, scanner, [z[4]]), (6.5, fix, None), (7.0, sure, z[6])]
    found["sensors"] = turn, readings, {}
    found["late"] = turn, [readings[k] for k in (0, 2, 1, 4, 3, 6, 5, 7)], {"late": "replay"}
    return found


def filtered(name, model, z, told, n=30):
    """Run a filter; return its result with the last particles and weights, where it has some."""
    online = factory(name)(model, n, rng(1))
    result = parts(online.run(z, **told))
    return {**result, **{key: getattr(online, key, None) for key in ("particles", "weights")}}


def stepped(name, model, z, told, lag=None):
    """Return what a filter, or a fixed-lag smoother, says between prediction and update and after it."""
    online = factory(name)(model, 30, rng(1))
    before = []
    records = []
    after = []
    online = online if lag is None else hf.FixedLagSmoother(online, lag)
    for one, control in zip(z, told.get("controls", [None] * len(z)), strict=True):
        online.predict(told["dt"], control)
        seen = online.predicted_observation() if lag is None else None
        before.append({**parts(online), "seen": seen and seen[0], "spread": seen and seen[1]})
        records.append(online.update(one))
        after.append(parts(online))
    return {"before": columns(before), "records": columns(records), "after": columns(after)}


def replayed(name, model, readings, _):
    """Return what a filter says after each of readings that arrive late."""
    replay = hf.Replay(factory(name)(model, 30, rng(1)), lag=5.0)
    return columns(replay.update(at, z, sensor) for at, sensor, z in readings)


def filters(arrays):
    """Run all filters of one target on random models."""
    for seed in range(20):
        model = hf.models.random_model(seed)
        z = hf.simulate(model, 8, seed)[1]
        for name in names():
            arrays.put(f"{name}/{seed}", filtered, name, model, z, {}, 50)


def special(arrays):
    """Run them on models of every kind, with sensors, and with late readings."""
    for name in names():
        for place, case in cases().items():
            arrays.put(f"{name}/{place}", filtered, name, *case)
        arrays.put(f"{name}/replay", replayed, name, *cases()["late"])


def options(arrays):
    """Run particle filters with all proposals, samplers, schemes and fits; and other filters with options."""
    inner = LISTS["inner"]
    first = ("BootstrapProposal()", "GuidedProposal()")
    mixed = [(fit, one) for fit in LISTS["fits"] for one in inner[:3]] + [
        ("EMFit(4)", one) for one in inner
    ]
    schemes = LISTS["schemes"] + [f"MixtureResampling({fit},{one})" for fit, one in mixed]
    plans = [text.replace("{}", one) for text in LISTS["proposals"] for one in inner]
    plans += [f"AuxiliaryProposal({scheme})" for scheme in LISTS["schemes"]]
    plans += [f"{one},{scheme},0.8" for one in first for scheme in schemes]
    plans = [f"ParticleFilter(model,n,{plan},rng=seed)" for plan in plans] + LISTS["others"]
    for place in (UNGM, TURN, "pendulum"):
        for text in plans:
            arrays.put(f"{text}/{place}", filtered, text, *cases()[place])
    for place in (UNGM, ROBOT, JUMPS):
        for text in names() + LISTS["others"]:
            arrays.put(f"{text}/{place}/steps", stepped, text, *cases()[place])


def mixture(seed, d):
    """Draw a mixture of 1 to 8 components, whose covariance may be shared or nearly singular."""
    source = rng(seed)
    m = 1 + 3 * seed % 8
    factors = source.standard_normal((m, d, d + 1))
    factors[:, -1] *= 1e-6 if seed % 5 == 4 else 1.0
    covariances = (factors[:, :, None] * factors[:, None]).sum(axis=-1)
    shared = covariances[0] if seed % 3 == 0 else covariances
    return hf.GaussianMixture(
        source.dirichlet(np.ones(m)), 3 * source.standard_normal((m, d)), shared
    )


def samplers(arrays):
    """Sample mixtures; and a density of which only the conditionals are known."""
    for seed in range(20):
        p = mixture(seed, 1 + seed % 6)
        for text in LISTS["inner"] + LISTS["samplers"]:
            n = made(text).size(p) if "Sigma" in text else 40
            arrays.put(f"{seed}/{text}", made(text).sample, p, n, rng(1))
        arrays.each(seed, LISTS["of-mixture"], p=p, x=p.means + 0.1, d=p.dim)
    normal = [lambda v, x, k=k: np.exp(-((v - 0.6 * x[k]) ** 2) / 1.28) / 2.0053 for k in (1, 0)]
    for text in LISTS["conditional"]:
        arrays.put(text, made(text).herd, normal, 30, [0, 0], [[-6, 6], [-6, 6]])


def fits(arrays):
    """Fit weighted samples, thin them, measure how far they are from a mixture; herd finite sets."""
    both = [f"{fit}.fit(x,w{more})" for fit in LISTS["fits"] for more in ("", ",[0]")]
    for seed in range(20):
        source = rng(seed)
        d = 1 + seed % 5
        x = source.standard_normal((60, d)) @ source.standard_normal((d, d))
        x += source.integers(0, 1 + seed % 4, (60, 1))
        w = source.dirichlet(np.full(60, 0.3)) * (source.random(60) < 0.9)
        given = {
            "x": x,
            "w": w / w.sum(),
            "y": np.sin(x),
            "k": 0.5 * np.eye(d),
            "p": mixture(seed, d),
        }
        given |= {"q": hf.Points(x, w), "o": hf.Points(x[:20] + 0.3), "t": source.random((2, 3, 2))}
        arrays.each(seed, both + LISTS["of-sample"], **given)
        for text in LISTS["kernels"]:
            arrays.each(f"{seed}/{text}", LISTS["of-kernel"], g=made(text), **given)


def association(arrays):
    """Associate 2 to 8 detections with 2 to 6 tracks, some of which have to be detected, in some clusters."""
    for seed in range(20):
        source = rng(seed)
        shape = (2 + seed % 5, 2 + seed % 7)
        likelihoods = source.gamma(0.5, 2.0, shape) * (
            source.random(shape) < (0.4, 0.8, 1.0)[seed % 3]
        )
        detected = np.where(source.random(shape[0]) < 0.1, 1.0, 0.8)
        ratios = hf.association.ratios(likelihoods, detected, 0.1, 0.95 if seed % 2 else 1.0)
        arrays.keep(f"{seed}/ratios", ratios)
        arrays.put(f"{seed}/best", hf.association.k_best_assignments, ratios, 10)
        for text in LISTS["association"]:
            method = made(f"association.{text}") if "(" in text else text
            arrays.put(f"{seed}/{text}", hf.association.associate, ratios, method, rng(1))


def smoothed(arrays, key, name, model, z, told):
    """Smooth what a filter keeps of a run."""
    online = factory(name)(model, 30, rng(1))
    kept = (
        {"keep_particles": True}
        if "keep_particles" in inspect.signature(online.run).parameters
        else {}
    )
    arrays.each(key, LISTS["of-run"], f=online, r=online.run(z, **told, **kept), o=told)


def smoothing(arrays):
    """Smooth runs, and while a filter runs; find the likeliest parameter; run several filters in one call."""
    for place in (CHAIN, UNGM, TURN, ROBOT, JUMPS, "pendulum"):
        for name in LISTS["smoothed"]:
            arrays.put(
                f"{name}/{place}", smoothed, arrays, f"{name}/{place}", name, *cases()[place]
            )
            arrays.put(f"{name}/{place}/steps", stepped, name, *cases()[place], 3)
    z = hf.simulate(line(0.8), 20, 1)[1]
    for name in ("ekf", "auto", "bootstrap"):
        likely = partial(lambda make, theta: make(line(*theta), 30, rng(1)), factory(name))
        start = [0.6, 1.0]
        bounds = [(0.1, 1.5), (0.1, 3.0)]
        arrays.put(f"{name}/likelihood", hf.maximise_likelihood, likely, z, start, bounds)
        many = partial(lambda make, k: make(line(0.8), 30, rng(k)), factory(name))
        arrays.put(f"{name}/many", hf.run_many, many, [z, z[:10], [*z[:3], None]], progress=False)


def tracked(make, scans, truth, **told):
    """Run a tracker; return its result with the distances of its estimates from the truth."""
    result = make().run(scans, **told)
    pairs = zip(truth, result.means, strict=False)
    return {**parts(result), "gospa": [hf.tracking.gospa(x, y[:, :2], 20.0) for x, y in pairs]}


def tracking(arrays):
    """Track four targets, one of which comes later and one of which goes."""
    start = np.array([[-40.0, 0, 4, 0], [40, 5, -4, 0], [0, -40, 0, 4], [10, 40, 0, -3]])
    truth = np.array([start[:, :2] + k * start[:, 2:] for k in range(10)])
    truth[:4, 2] = truth[7:, 3] = np.nan
    walk = hf.models.ConstantVelocity(0.05, 1.0, np.zeros(4), np.diag([400.0, 400.0, 4.0, 4.0]))
    model = hf.models.WithClutter(walk, 0.9, 1e-3, [[-60, 60], [-60, 60]])
    scans = hf.tracking.simulate_scans(model, np.concatenate([truth, 0 * truth], axis=-1), 1)
    arrays.keep("scans", scans)
    eye = hf.Sensor(lambda x: x[:, :2], np.eye(2), detection_probability=0.7, clutter_density=1e-3)
    late = [
        (float(k + 1 - 2 * (k == 5)), eye if k % 2 else None, scan) for k, scan in enumerate(scans)
    ]
    places = [hf.GaussianMixture([1.0], [one], np.diag([25.0, 25.0, 4.0, 4.0])) for one in start]
    fixed = [hf.tracking.Birth(0.1, place) for place in places]
    found = hf.tracking.BirthFromMeasurements(walk.initial, expected=0.3, most=0.3)
    for name in names(trackers=True):
        for place, birth in (("fixed", fixed), ("found", found)):
            make = partial(factory(name), model, 20, rng(1), birth=birth, survival_probability=0.95)
            arrays.put(f"{name}/{place}", tracked, make, scans, truth)
    given = {name: factory(name) for name in ("ukf", "ekf", "enkf", "edh", "imm", "mkf")}
    given |= {"kh": factory("auto"), "random": factory("bootstrap"), "fixed": fixed, "found": found}
    for text in LISTS["trackers"]:
        make = partial(made, text, model=model, **given)
        arrays.put(text, tracked, make, scans, truth)
        arrays.put(f"{text}/uneven", tracked, make, scans, truth, dt=[0.5, 1.5] * 5)
        arrays.put(f"{text}/late", tracked, make, late, truth, late="replay")


def models(arrays):
    """Call all functions of models at a few states."""
    given = [(name, *cases()[name][:2], 0.5) for name in [*LISTS["models"], "pendulum"]]
    for seed in range(60):
        model = hf.models.random_model(seed)
        given.append((seed, model, hf.simulate(model, 2, seed)[1], 1.0))
    inputs = {ROBOT: [1.0, 0.3], BEACONS: [0.5, 0.1, 0.2], "pendulum": [0.3]}
    for name, model, z, dt in given:
        x = np.concatenate([model.initial.sample(4, rng(1)), hf.simulate(model, 3, 2)[0]])
        noise = rng(2).standard_normal((len(x), getattr(model, "noise_dim", model.dim)))
        arrays.each(
            name, LISTS["of-model"], m=model, x=x, z=z[1], dt=dt, e=noise, u=inputs.get(name)
        )
    box = hf.models.UniformBox([0, 0], [1, 2])
    arrays.each("box", ["m.sample(5,1)", "m.log_density(x)"], m=box, x=np.eye(2))


def studied(path, chosen):
    """Compare filters on a scenario; return the numbers in the tables of runs and summary, but no times."""
    runs = hf.compare(path, chosen, [20], 1, 7)
    tables = {"runs": runs, "summary": hf.study.summarise(runs)}
    if "model" in runs:
        tables["models"] = hf.study.over_models(runs)
    return {
        f"{name}/{key}": column.to_numpy()
        for name, table in tables.items()
        for key, column in table.select_dtypes(["number", "bool"]).items()
        if not re.search("time|seconds|ms_per", key)
    }


def studies(arrays):
    """Compare filters on the scenarios that need no data, with fewer steps, and less of a reference."""
    package = Path(hf.__file__).parent
    files = [*package.glob("_scenarios/*.toml")] or [*package.parent.glob("scenarios/*.toml")]
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(files):
            text = path.read_text(encoding="utf-8")
            short = Path(folder) / path.name
            many = "[targets]" in text
            for key, value in {"n": 500, "models": 3, "steps": 100 if many else 20}.items():
                text = re.sub(rf"(?m)^{key} = \d+", f"{key} = {value}", text, count=1)
            short.write_text(text, encoding="utf-8")
            if "\n[data]" not in text:
                chosen = ["lmb-ukf", "lmb-auto"] if many else ["bootstrap", "auto"]
                arrays.put(path.stem, studied, short, chosen)


ALL = filters, special, options, samplers, fits, association, smoothing, tracking, models, studies
PARTS = {part.__name__: part for part in ALL}


def write(file, only):
    """Write the arrays of parts, with the versions that bits depend on."""
    warnings.simplefilter("ignore")
    versions = [f"{name} {version(name)}" for name in ("numpy", "scipy", "numba")]
    everything = {"versions": np.array(versions)}
    for name in only:
        begin = time.perf_counter()
        arrays = Arrays()
        PARTS[name](arrays)
        if not arrays:
            raise RuntimeError(f"{name}: no arrays")
        everything |= {f"{name}/{key}": array for key, array in arrays.items()}
        print(f"{name}: {len(arrays)} arrays in {time.perf_counter() - begin:.1f} s", flush=True)
    np.savez_compressed(file, **everything)


def difference(old, new):
    """Say how two arrays differ; nothing if they are equal to the last bit, or NaN in the same places."""
    if old.dtype.kind == new.dtype.kind == "U":
        return "" if old.tolist() == new.tolist() else f"{old} against {new}"
    if old.dtype != new.dtype or old.shape != new.shape:
        return f"{old.dtype} {old.shape} against {new.dtype} {new.shape}"
    if np.array_equal(old, new, equal_nan=True):
        return ""
    old = old.astype(float)
    new = new.astype(float)
    with np.errstate(all="ignore"):
        ratios = np.abs(new - old) / np.maximum(np.abs(old), np.abs(new))
    ratios[old == new] = 0.0
    lost = "" if (np.isnan(old) == np.isnan(new)).all() else ", NaN in other places"
    return f"largest relative difference {np.nanmax(ratios, initial=0.0):.2g}{lost}"


def compare(before, after, renamed, removed):
    """Compare two files part by part; return whether arrays differ, or are missing in one of them."""
    failed = False
    old = dict(np.load(before))
    new = dict(np.load(after))
    for pair in renamed:
        old = {key.replace(*pair.split("=")): array for key, array in old.items()}
    for part in PARTS:
        first, second = ({k for k in one if k.startswith(f"{part}/")} for one in (old, new))
        if not first or not second:
            print(f"{part}: not in {after if first else before}")
            continue
        told = {key: difference(old[key], new[key]) for key in sorted(first & second)}
        told = {key: text for key, text in told.items() if text}
        lost = [key for key in sorted(first ^ second) if not any(fnmatch(key, p) for p in removed)]
        equal = len(first & second) - len(told)
        print(f"{part}: {equal} equal, {len(told)} differ, {len(lost)} missing")
        for key in [*told, *lost]:
            print(f"    {key}: {told.get(key) or f'not in {after if key in old else before}'}")
        failed = failed or bool(told or lost)
    print(difference(old["versions"], new["versions"]) or "the same libraries")
    return failed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    writer = commands.add_parser("write")
    comparer = commands.add_parser("compare")
    writer.add_argument("file")
    writer.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART")
    comparer.add_argument("before")
    comparer.add_argument("after")
    comparer.add_argument("--renamed", nargs="+", default=[], metavar="OLD=NEW")
    comparer.add_argument("--removed", nargs="+", default=[], metavar="PATTERN")
    arguments = vars(parser.parse_args())
    command = {"write": write, "compare": compare}[arguments.pop("command")]
    sys.exit(command(**arguments))
