"""The sink: batches of a stream into tables, each exactly once."""
