"""Numba loops: arrays in, arrays filled; no checks, no state, no printing.

Kernels are compiled without ``parallel=True``: threads come from outside, each with its own rows, so
the answer is the same for every number of threads and nothing breaks after a fork.
"""
