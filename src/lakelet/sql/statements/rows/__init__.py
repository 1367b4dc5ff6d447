"""Rows of a statement in the types of their table."""
