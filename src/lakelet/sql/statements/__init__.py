"""Statements that are Lakelet's own, a module each."""
