"""The commit, and the metadata it writes: snapshots, manifests, schemas, tags and branches; and their expiry."""
