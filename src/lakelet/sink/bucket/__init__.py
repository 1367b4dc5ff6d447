"""Bucket assignment: extractors, assigners, channels."""
