"""Aggregate functions of columns: how the values of a key become one."""
