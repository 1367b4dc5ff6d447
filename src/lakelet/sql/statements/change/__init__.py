"""UPDATE, DELETE, MERGE and ON CONFLICT as queries over one snapshot."""
