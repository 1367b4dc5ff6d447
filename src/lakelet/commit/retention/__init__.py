"""Retention: expiry, orphan removal and everything else that deletes files."""
