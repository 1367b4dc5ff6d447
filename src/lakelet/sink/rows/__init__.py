"""Incoming rows: cast, checked, completed with defaults."""
