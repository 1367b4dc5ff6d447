"""Keeping an Iceberg table small and quick: expiring snapshots, removing files that nothing has, rewriting small files and
manifests."""
