"""Tags, branches, consumers and rollback."""
