"""Columns, partition specs and their changes."""
