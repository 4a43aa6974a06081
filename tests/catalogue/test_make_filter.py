"""Filters by name."""

import numpy as np
import pytest

import herdfilter as hf


def test_a_seed_is_all_that_a_random_filter_depends_on():
    seeds = 1, np.random.default_rng(1), 2
    runs = [hf.make_filter("bootstrap", hf.models.UNGM(), 20, rng=seed).run([[1.0], [3.0]]) for seed in seeds]
    np.testing.assert_array_equal(runs[0].means, runs[1].means)
    assert (runs[0].means != runs[2].means).all()


def test_an_unknown_name_is_told_the_nearest():
    with pytest.raises(ValueError, match=r"^name: unknown 'auto_kh'; did you mean 'auto'\?$"):
        hf.make_filter("auto_kh", hf.models.UNGM())


def test_a_name_in_place_of_a_part_is_refused_with_the_way_to_do_it():
    with pytest.raises(TypeError, match=r"got 'auto'; .*herdfilter\.make_filter\('auto', model, n_particles, rng\)$"):
        hf.ParticleFilter(hf.models.UNGM(), proposal="auto")


@pytest.mark.parametrize("scheme", [hf.ResidualResampling(), "ResidualResampling()"])
def test_an_option_is_an_object_or_an_expression(scheme):
    pf = hf.make_filter("bootstrap", hf.models.UNGM(), 20, resampling=scheme, resample_below=0.8, on_degeneracy="predict")
    assert (pf.resampling, pf.resample_below, pf.on_degeneracy) == (hf.ResidualResampling(), 0.8, "predict")
    assert hf.make_filter("bootstrap", hf.models.UNGM(), 20).resampling == hf.SystematicResampling()


def test_an_unknown_option_is_told_the_nearest():
    with pytest.raises(ValueError, match=r"^filter bootstrap: key: unknown 'resamplng'; did you mean 'resampling'\?"):
        hf.make_filter("bootstrap", hf.models.UNGM(), resamplng=hf.ResidualResampling())
    with pytest.raises(ValueError, match=r"^resampling: 'ResidualResamplin\(\)': .*did you mean 'ResidualResampling'"):
        hf.make_filter("bootstrap", hf.models.UNGM(), resampling="ResidualResamplin()")
