"""Compaction of append tables: small files into large ones."""
