"""Points and a mixture, in this order: anything else is named."""

from helpers import cases, normal, refusal

import herdfilter as hf

MIXTURE = normal([0.0, 0.0])
POINTS = hf.Points([[0.1, 0.2], [0.3, 0.4]])
MEASURES = {
    "energy": hf.energy_distance,
    "herding error": lambda points, mixture: hf.herding_error(points, mixture, 0.3),
    "normalised L2": lambda points, mixture: hf.normalised_l2(points, mixture, 0.3),
}


@cases(
    "points mixture message",
    (MIXTURE, POINTS, "points: expected .*Points, got .* GaussianMixture; points come first, then the mixture"),
    (POINTS, POINTS.x, r"mixture: expected a GaussianMixture, got array\(\[\[.*; GaussianFit\(\)")
)  # fmt: skip
def test_what_is_no_points_or_no_mixture_is_named(points, mixture, message):
    for measure in MEASURES.values():
        with refusal(f"^{message}", TypeError):
            measure(points, mixture)


def test_a_sample_is_no_mixture_but_for_the_energy_distance():
    for name in set(MEASURES) - {"energy"}:
        with refusal(r"^mixture: expected a GaussianMixture, got Points", TypeError):
            MEASURES[name](POINTS, POINTS)
    with refusal(r"^points: expected dimension 1 as the mixture, got 2"):
        hf.energy_distance(POINTS, hf.Points([[0.0]]))
