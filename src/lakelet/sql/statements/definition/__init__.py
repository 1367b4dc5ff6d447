"""Columns, types and tables as statements define them."""
