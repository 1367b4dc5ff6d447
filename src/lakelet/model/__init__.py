"""Frozen values that are passed between the stages. No I/O happens here."""
