"""Writes: rows to commit messages, messages to snapshots."""
