"""Mixtures on a line, compiled: distribution function and density at a price that grows with M + n, not with M n."""
