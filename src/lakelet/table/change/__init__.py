"""Deletes and updates of stored rows, and schema changes."""
