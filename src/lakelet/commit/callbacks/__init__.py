"""Calls of commit and tag callbacks."""
