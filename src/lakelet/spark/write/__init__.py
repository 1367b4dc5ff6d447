"""Rows of Spark DataFrames into tables: columns matched, tasks run, one commit."""
