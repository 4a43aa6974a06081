"""Herding and herded Gibbs sampling on finite sets."""
