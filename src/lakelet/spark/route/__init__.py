"""Routing of rows to the tasks that write them: hash, bucket and channel as Spark expressions."""
