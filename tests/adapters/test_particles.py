"""Models of the library `particles` as ours, beside its own exact filter and its large particle filters."""

import numpy as np
import pytest
from helpers import cases, refusal, refuses
from numpy.testing import assert_allclose, assert_array_equal

import herdfilter as hf

pytest.importorskip("particles", reason="the optional library particles is not installed")

import particles
from particles import distributions as dists
from particles import kalman
from particles import state_space_models as ssms

from herdfilter.adapters.particles import HerdedFilter, from_particles


def data_of(ssm, steps, seed=1):
    np.random.seed(seed)  # noqa: NPY002  the library draws from NumPy's global stream
    return ssm.simulate(steps)[1]


def vectors(data):
    return np.reshape(data, (len(data), -1))


def exact(ssm, data):
    kf = kalman.Kalman(ssm=ssm, data=data)
    kf.filter()
    return np.array([np.ravel(f.mean) for f in kf.filt]), float(np.sum(kf.logpyt))


LINEAR = {
    "d = 1": kalman.LinearGauss(sigma0=3.0, sigmaX=0.5),
    "d = 2": kalman.MVLinearGauss_Guarniero_etal(alpha=0.4, dx=2),
    "d = 1, as vectors": kalman.MVLinearGauss(
        covX=[[0.3]], covY=[[0.5]], cov0=[[4.0]], mu0=np.array([2.0])
    ),
}


@cases("name", *LINEAR)
def test_linear_gaussian_models_have_the_librarys_exact_posterior(name):
    """From the first observation on: the first state has PX0's law, not that of one transition from it."""
    ssm = LINEAR[name]
    data = data_of(ssm, 15)
    means, evidence = exact(ssm, data)
    model = from_particles(ssm)
    for found in (
        hf.UnscentedKalmanFilter(model).run(vectors(data)),
        hf.ExtendedKalmanFilter(model).run(vectors(data)),
        hf.ParticleFilter(model, 64, hf.AutomaticProposal()).run(vectors(data)),
    ):
        assert_allclose(found.means, means, rtol=0, atol=1e-8)
        assert found.log_likelihood == pytest.approx(evidence, abs=1e-8)


def smc_means(fk, n):
    """Means of the library's algorithm, as vectors, and its evidence."""
    smc = particles.SMC(fk=fk, N=n, collect=[particles.collectors.Moments()])
    smc.run()
    return vectors([m["mean"] for m in smc.summaries.moments]), smc.logLt


def written(first, step, observe):
    """A model of the library: the first law, that of a step given time and state before, and that of an observation."""

    class Written(ssms.StateSpaceModel):
        def PX0(self):  # noqa: N802
            return first

        def PX(self, t, xp):  # noqa: N802
            return step(t, xp)

        def PY(self, t, xp, x):  # noqa: N802
            return observe(x)

    return Written()


# Nothing is Gaussian: a start with a heavy tail, steps of Laplace, counts.
HEAVY = written(
    dists.Student(df=4.0, loc=1.0, scale=0.5),
    lambda t, xp: dists.Laplace(loc=0.9 * xp + 0.1 * np.cos(t), scale=0.2),
    lambda x: dists.Poisson(rate=np.exp(0.5 * x)),
)
# A state in two dimensions, whose noise grows with it; the start is a mixture.
SCALED = written(
    dists.IndepProd(dists.Normal(loc=1.0), dists.Gamma(a=3.0, b=2.0)),
    lambda t, xp: dists.MvNormal(
        loc=0.8 * xp + 0.1, scale=0.2 + 0.1 * np.abs(xp), cov=np.array([[1.0, 0.5], [0.5, 1.0]])
    ),
    lambda x: dists.IndepProd(
        dists.Normal(loc=x[:, 0] * x[:, 1], scale=0.5), dists.Laplace(loc=x[:, 1])
    ),
)
TWO_MODES = dists.Mixture(
    [0.5, 0.5], dists.Normal(loc=-1.0, scale=0.5), dists.Normal(loc=1.0, scale=0.5)
)


def heavy_tailed(x):
    return dists.Student(df=1.5, loc=x, scale=0.3)


# Steps of two kinds, of which the library knows no quantiles.
SIMULATED = written(
    TWO_MODES,
    lambda t, xp: dists.Mixture(
        [0.9, 0.1], dists.Normal(loc=xp, scale=0.1), dists.Normal(loc=-xp, scale=0.1)
    ),
    heavy_tailed,
)

KINDS = {
    "stochastic volatility": (ssms.StochVol(), "transition_mean", False),
    "quantiles": (HEAVY, "transition", False),
    "scaled noise": (SCALED, "transition", True),
    "simulated": (SIMULATED, "sample_transition", False),
}


@cases("name", *KINDS)
def test_filters_come_near_the_librarys_large_particle_filter(name):
    ssm, form, observed = KINDS[name]
    model = from_particles(ssm)
    forms = {"transition_mean", "transition", "sample_transition"}
    assert {f for f in forms if hasattr(model, f)} == {form}
    assert hasattr(model, "observation_mean") == observed
    data = data_of(ssm, 8, seed=4)
    np.random.seed(0)  # noqa: NPY002
    means, evidence = smc_means(ssms.Bootstrap(ssm=ssm, data=data), 30_000)
    for proposal, n in ((hf.BootstrapProposal(), 10_000), (hf.AutomaticProposal(), 1000)):
        found = hf.ParticleFilter(model, n, proposal, rng=0).run(vectors(data))
        sd = np.sqrt(np.diagonal(found.covariances, axis1=1, axis2=2))
        assert np.sqrt(np.mean(((found.means - means) / sd) ** 2)) < 0.1
        assert found.log_likelihood == pytest.approx(evidence, abs=0.2)


def test_draws_follow_the_given_generator_and_leave_numpys_global_stream_alone():
    model = from_particles(SIMULATED)
    x = np.zeros((4, 1))
    np.random.seed(7)  # noqa: NPY002
    expected = np.random.rand()  # noqa: NPY002
    np.random.seed(7)  # noqa: NPY002
    drawn = [model.sample_transition(x, np.random.default_rng(k), 1.0, None, 2) for k in (0, 0, 1)]
    from_particles(SIMULATED)
    assert np.random.rand() == expected  # noqa: NPY002
    assert np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])


def test_start_that_is_not_gaussian_is_the_initial_distribution():
    model = from_particles(written(TWO_MODES, lambda t, xp: dists.Normal(loc=xp), heavy_tailed))
    assert_allclose(model.initial.means[:, 0], [-1.0, 1.0])
    x = np.array([[0.3], [2.0]])
    assert_array_equal(model.transition_mean(x, 1.0, None, 1), x)
    assert model.transition_covariance(1.0, 1) == 0


def test_bearings_of_rank_deficient_noise_and_whole_turns():
    """Position and velocity with noise on the velocity only; a bearing and the same a turn later are one observation."""
    ssm = ssms.BearingsOnly(sigmaX=0.1, sigmaY=0.2)
    model = from_particles(ssm, observation_circular=[0])
    x = np.array([[0.0, 0.0, -1.0, 0.1], [0.0, 0.0, -1.0, -0.1]])
    z = np.array([3.0])
    turned = model.log_likelihood(z - 2 * np.pi, x, 2)
    assert_allclose(turned, model.log_likelihood(z, x, 2))
    assert_allclose(
        np.linalg.eigvalsh(model.transition_covariance(1.0, 2)), [0, 0, 0.01, 0.01], atol=1e-15
    )


DEPENDS = written(
    dists.Normal(),
    lambda t, xp: dists.Normal(loc=xp, scale=1.0 if t < 2 else np.exp(xp)),
    lambda x: dists.Normal(loc=x),
)

test_what_cannot_be_converted_is_named = refuses(
    lambda ssm: hf.ParticleFilter(from_particles(ssm), 10, rng=0).run(np.zeros((4, 1))),
    (ssms.StochVolLeverage(phi=-0.5), r"PY: .* depends on the state before"),
    (TypeError, ssms.StochVol, r"the class StochVol"),
    (DEPENDS, "got another law at t = 2"),
)


@cases("proposal", hf.RankedProposal(), hf.HerdedProposal(hf.QuantileSampling()))
def test_herded_filter_within_smc_has_the_numbers_of_ours(proposal):
    ssm = ssms.Gordon_etal()
    data = data_of(ssm, 12)
    data[5] = np.array([np.nan])
    means, evidence = smc_means(HerdedFilter(ssm, data, proposal), 40)
    ours = hf.ParticleFilter(from_particles(ssm), 40, proposal).run(vectors(data))
    assert_allclose(means, ours.means, rtol=0, atol=1e-9)
    assert evidence == pytest.approx(ours.log_likelihood, abs=1e-9)


test_other_uses_of_the_herded_filter_are_refused = refuses(
    lambda proposal, options: particles.SMC(
        fk=HerdedFilter(LINEAR["d = 1"], [0.5, 1.5], proposal), N=8, **options
    ).run(),
    (hf.BootstrapProposal(), {}, r"proposal: .* the library's Bootstrap"),
    (None, {"qmc": True}, "logG: expected the particles that M returned"),
)


def test_a_herded_filter_by_itself_says_that_it_is_for_the_library():
    with refusal(r"M: expected to be called by particles\.SMC", RuntimeError):
        HerdedFilter(LINEAR["d = 1"], [0.5, 1.5]).M(1, np.zeros(8))


def test_genealogies_of_the_library_are_those_of_the_particles():
    """Without noise on the way a particle is its ancestor moved on."""

    still = written(
        dists.Normal(scale=3.0),
        lambda t, xp: dists.Normal(loc=xp + 1.0, scale=1e-9),
        lambda x: dists.Normal(loc=x, scale=1.0),
    )
    fk = HerdedFilter(still, [0.5, 1.5, 2.5], hf.RankedProposal())
    smc = particles.SMC(fk=fk, N=40, store_history=True)
    smc.run()
    for t in (1, 2):
        assert_allclose(smc.hist.X[t], smc.hist.X[t - 1][smc.hist.A[t]] + 1.0, atol=1e-6)
