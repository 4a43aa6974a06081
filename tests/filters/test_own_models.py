"""Models of a user, without a base class, in every proposal that can serve them."""

from helpers import Simulated, Squared, refusal, refuses
from numpy.testing import assert_allclose

from herdfilter.filters import AugmentedProposal, BootstrapProposal, HerdedProposal, ParticleFilter
from herdfilter.fitting import GaussianFit
from herdfilter.models import UniformBox
from herdfilter.samplers import RandomSampling


def herded_random():
    return HerdedProposal(RandomSampling())


def augmented_random():
    return AugmentedProposal(GaussianFit(), RandomSampling())


def test_a_prior_that_is_not_a_mixture_is_drawn_from(walk_class, typical):
    class Box(walk_class):
        initial = UniformBox([5.0], [6.0])

    pf = ParticleFilter(Box(), 50, typical.make(), rng=20)
    assert ((pf.particles >= 5) & (pf.particles <= 6)).all()
    assert_allclose(pf.weights, 1 / 50, rtol=1e-12)


def test_noise_need_not_be_additive(of_any_noise):
    """Each step adds the mean 3 and the variance 6 of a chi-square with three degrees of freedom."""
    n = 1000 if of_any_noise.deterministic else 3000
    result = ParticleFilter(Squared(), n, of_any_noise.make(), rng=21).run([None] * 2)
    assert_allclose(result.means[:, 0], [3, 6], rtol=0.1)
    assert_allclose(result.covariances[:, 0, 0], [7, 13], rtol=of_any_noise.spread)


ADDITIVE = "transition_mean and transition_covariance"


class Bare:
    dim = Squared.dim
    initial = Squared.initial
    log_likelihood = Squared.log_likelihood


def without(name, base):
    methods = {k: getattr(base, k) for k in dir(base) if k != name and not k.startswith("__")}
    return type("Partial", (), methods)()


def test_additive_noise_is_asked_for_by_name(of_additive_noise):
    expected = f"{type(of_additive_noise).__name__} needs {ADDITIVE}; Squared has no transition_mean and no"
    with refusal(expected, TypeError):
        ParticleFilter(Squared(), 5, of_additive_noise)


def test_the_moments_of_the_observation_are_asked_for_by_name(walk_class, of_moments):
    expected = f"{type(of_moments).__name__} needs observation_mean and observation_covariance; Partial has no"
    with refusal(expected, TypeError):
        ParticleFilter(without("observation_mean", walk_class), 5, of_moments)


test_what_a_proposal_needs_is_named = refuses(
    lambda make, base: ParticleFilter(base(), 5, make()),
    (
        BootstrapProposal,
        Bare,
        f"BootstrapProposal needs {ADDITIVE}, or .* sample_transition; Bare has no",
    ),
    (
        herded_random,
        Simulated,
        f"HerdedProposal needs {ADDITIVE}; Simulated has no transition_mean and no",
    ),
    (
        augmented_random,
        Simulated,
        f"AugmentedProposal needs {ADDITIVE}, or .* noise_dim; Simulated has no",
    ),
    error=TypeError,
    words="model: {}",
)
