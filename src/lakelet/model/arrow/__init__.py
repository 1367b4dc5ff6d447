"""Conversion of values and types between Arrow, Python and the model."""
