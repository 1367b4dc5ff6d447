"""Measurements of Lakelet beside its peers, started by `make bench`."""
