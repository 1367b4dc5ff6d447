"""Schema changes as pure functions."""
