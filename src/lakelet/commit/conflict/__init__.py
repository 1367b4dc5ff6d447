"""Conflict detection: what concurrent commits may have changed below a writer."""
