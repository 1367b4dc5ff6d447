"""Streams on Spark: micro-batches into tables, and changes of tables as streams."""
