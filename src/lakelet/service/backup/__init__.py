"""Backups of served tables in a second store, and recovery from them."""
