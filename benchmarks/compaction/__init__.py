"""Compaction of primary-key tables."""
