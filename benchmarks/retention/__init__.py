"""Expiry of snapshots and removal of orphan files."""
