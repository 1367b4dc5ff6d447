"""Who may do what: callers, their rights, and API keys."""
