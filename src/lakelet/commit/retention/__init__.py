"""Expiry, orphan files and everything else that deletes files."""
