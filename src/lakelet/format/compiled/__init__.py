"""Functions compiled by numba, with their cache on disk."""
