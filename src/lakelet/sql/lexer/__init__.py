"""SQL text as words with their places."""
