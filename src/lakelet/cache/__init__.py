"""Bounded caches in the memory of a process."""
