"""Predicates of `where=`: parsed from SQL, bound to columns, used for pruning and exact row filters."""
