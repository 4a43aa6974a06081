"""Models drawn at random: drifts, noises and observations in small parts, and the distribution that they are drawn from."""

from herdfilter.models.random.model import RandomModel, random_model

__all__ = ["RandomModel", "random_model"]
