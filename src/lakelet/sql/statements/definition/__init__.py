"""Parsers of column, type and table definitions."""
