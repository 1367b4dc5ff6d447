"""The rows of INSERT, converted to the types of the table."""
