"""Compiled machinery of continuous herded Gibbs sampling."""
