"""Spark SQL over tables of a lake."""
