"""Upkeep of the metadata cache: query history, warm-up, prefetch, persistence, size under memory pressure, alerts, comparison."""
