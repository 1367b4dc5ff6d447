"""Measures `lakelet serve`."""
