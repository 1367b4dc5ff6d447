"""Manifests, manifest lists and index manifests."""
