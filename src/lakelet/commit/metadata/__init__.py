"""The one door to the metadata of tables: what reads snapshots, schemas, manifests and tags, or answers in its place."""
