"""Compaction: which files of a bucket are rewritten, and the rewriting."""
