"""Writes of Spark DataFrames into tables: match columns, run tasks, commit once."""
