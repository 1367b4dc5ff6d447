"""Streams on Spark: sinks and sources."""
