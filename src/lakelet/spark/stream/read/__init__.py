"""Streams out of tables: the reader of `readStream.format("lakelet")` and `read_stream`."""
