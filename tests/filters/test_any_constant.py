"""A constant added to all log-likelihoods: weights and points stay, the evidence moves by it."""

import numpy as np
import pytest
from helpers import assert_same

from herdfilter.catalogue.specifications import catalogue, resolve_filters
from herdfilter.filters import GridFilter, ParticleFilter, Particles, Uses

FILTERS = {
    name: spec
    for name, spec in resolve_filters(catalogue()).items()
    if spec.filter == "ParticleFilter" and not name.startswith("rb-")  # others use no log_likelihood
}
Z = [[0.4], [1.1], None, [0.9]]


@pytest.fixture
def raised(walk_class):
    """A model whose log-likelihoods, and sums of them and the constant, are exact: multiples of a power of 2."""

    class Raised(walk_class):
        def __init__(self, constant, unit=2.0**-4, window=np.inf):
            self.constant, self.unit, self.window = constant, unit, window

        def log_likelihood(self, z, x, step):
            exact = self.unit * np.rint(super().log_likelihood(z, x, step) / self.unit)
            return np.where(np.abs(x[:, 0] - z[0]) < self.window, exact, -np.inf) + self.constant

    return Raised


def after(make, model):
    pf = make(model, 12, np.random.default_rng(5))
    pf.run(Z)
    return pf


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize(("unit", "window", "constant"), [(2.0**-4, np.inf, 2.0**48), (1e3, 2.0, 1e300)])
def test_weights_do_not_depend_on_a_constant(raised, name, unit, window, constant):
    """Beside the larger one nothing else shows: the likelihood is flat where it does not vanish."""
    plain = after(FILTERS[name], raised(0.0, unit, window))
    for added in (-constant, constant):
        other = after(FILTERS[name], raised(added, unit, window))
        assert_same(other, plain, "particles", "weights")
        assert other.log_likelihood == pytest.approx(plain.log_likelihood + 3 * added, rel=1e-15, abs=1e-12)


def test_neither_do_those_of_a_grid(raised):
    plain, other = (GridFilter(raised(c), -12, 12, 201).run(Z, keep_masses=True) for c in (0.0, -(2.0**48)))
    np.testing.assert_array_equal(other.masses, plain.masses)
    assert other.log_likelihood == pytest.approx(plain.log_likelihood - 3 * 2.0**48, rel=1e-15)


def test_a_proposal_of_ones_own_may_do_without_the_constant_or_with_it(raised):
    """The evidence gets what `observation.log_likelihood` leaves out; the model itself leaves nothing out."""

    class Own:
        uses = Uses(observation=True)

        def __init__(self, direct):
            self.direct = direct

        def check(self, model):
            pass

        def initial(self, model, n, rng):
            return Particles.equal(model.initial.sample(n, rng))

        def propose(self, transition, particles, rng, observation=None):
            x, seen = particles.x, observation
            if seen is None:
                return particles
            values = transition.model.log_likelihood(seen.z, x, seen.step) if self.direct else seen.log_likelihood(x)
            return particles.reweighted(values)

    found = [ParticleFilter(raised(8.0), 12, Own(d), rng=1).run(Z).log_likelihood for d in (False, True)]
    assert found[0] == pytest.approx(found[1], rel=1e-14)
