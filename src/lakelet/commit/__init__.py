"""Snapshots, manifests, schemas and the commit."""
