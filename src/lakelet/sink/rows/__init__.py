"""Rows as they come in: cast, checked, completed with defaults."""
