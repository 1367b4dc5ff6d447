"""Files outside the lake: read into tables, written from queries, beside the session that runs them. Nothing here prints."""
