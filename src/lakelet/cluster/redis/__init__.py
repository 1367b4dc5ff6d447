"""The cluster in Redis. Nothing else of Lakelet imports `redis`."""
