"""Reads: splits to Arrow batches."""
