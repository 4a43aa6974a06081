"""Nonlinear filtering with herded particles."""
__version__ = "0.1.0"
