"""Models drawn at random: their drifts, noises and observations, and the distribution from which they are drawn."""

from herdfilter.models.random.model import RandomModel, random_model

__all__ = ["RandomModel", "random_model"]
