"""Follow the changes of a table as they are committed."""
