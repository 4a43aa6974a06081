"""Maximum likelihood with any filter."""

from herdfilter.likelihood.maximum import MaximumLikelihood, RoughLikelihoodWarning, maximise_likelihood

__all__ = ["MaximumLikelihood", "RoughLikelihoodWarning", "maximise_likelihood"]
