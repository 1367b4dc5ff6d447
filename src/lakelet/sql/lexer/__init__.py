"""The lexer: SQL text as tokens (words) with their positions."""
