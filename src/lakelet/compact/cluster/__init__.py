"""Clustering: the rows of an append table rewritten in an order in which conditions on some columns prune files."""
