"""Sorted string tables: rows in key order, found by key."""
