"""Lakelet on a real Spark: one session for most tests, clusters of their own for what needs one."""
