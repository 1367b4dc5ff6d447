"""Commit and tag callbacks: loading their classes and calling them."""
