"""Commands that show tables, files and history."""
