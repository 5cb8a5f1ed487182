"""Stateless compiled numerics: arrays in, arrays out, nothing but NumPy and Numba."""
