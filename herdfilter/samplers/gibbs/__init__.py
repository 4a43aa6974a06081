"""Compiled machinery of continuous herded Gibbs sampling and of random Gibbs sampling."""
