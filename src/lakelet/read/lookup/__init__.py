"""Rows of files found by their keys."""
