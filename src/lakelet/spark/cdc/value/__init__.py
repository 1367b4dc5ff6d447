"""Columns of change events: their types, and their text as values of the table's types."""
