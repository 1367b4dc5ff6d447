"""Implementations of the commands that show tables, files and history."""
