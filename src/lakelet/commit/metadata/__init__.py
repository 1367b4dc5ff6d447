"""Metadata access: reads snapshots, schemas, manifests and tags from the store, or from a source that caches them."""
