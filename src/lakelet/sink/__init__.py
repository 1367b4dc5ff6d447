"""Writes: casting rows, assigning buckets, writing files."""
