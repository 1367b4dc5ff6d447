"""Rows put one at a time: write-ahead logs, memtables, and their flush into committed files."""
