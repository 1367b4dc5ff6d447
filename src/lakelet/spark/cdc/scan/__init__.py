"""Compiled scanners of change events: the JSON of plain events and rows as Arrow columns, everything else left to expressions."""
