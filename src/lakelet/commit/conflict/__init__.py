"""Conflict detection: checks of what concurrent commits have changed since a writer read the table."""
