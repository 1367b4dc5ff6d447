"""Maintenance of Iceberg tables: expiry of snapshots, removal of orphan files, rewriting of small files and manifests."""
