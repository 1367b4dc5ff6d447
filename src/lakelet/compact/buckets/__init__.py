"""Compaction that assigns buckets: postponed rows, and rescaling to another number of buckets."""
