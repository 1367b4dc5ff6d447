"""Compaction, retention, statistics and checks of a table."""
