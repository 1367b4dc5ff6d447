"""Compaction of primary-key tables: sorted runs into fewer, onto higher levels."""
