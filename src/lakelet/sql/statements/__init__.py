"""Lakelet's own statements: parsers and handlers, one module per statement."""
