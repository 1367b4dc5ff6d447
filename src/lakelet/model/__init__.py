"""Frozen values that the stages hand one another. No I/O happens here."""
