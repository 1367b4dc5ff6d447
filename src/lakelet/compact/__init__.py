"""Compaction: plans, rewrites and commits of fewer, larger files."""
