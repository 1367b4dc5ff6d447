"""Rows that change their bucket: postponed rows, and tables that get another number of buckets."""
