"""Queries of the service: SQL of strangers over served tables, with the rows that are still buffered."""
