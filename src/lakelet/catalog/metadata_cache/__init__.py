"""The tiered cache of a lake's native tables: the metadata source over it, its loader, and what this process changes itself."""
