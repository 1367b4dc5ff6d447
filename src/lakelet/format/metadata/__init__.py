"""Metadata files in JSON: schemas, snapshots, tags, statistics."""
