"""The tiered metadata cache: table, snapshot, schema and partition metadata in the memory of a process, and a bounded LRU cache.

It knows no file format, no engine and no transport: loaders and the invalidation bus are protocols, which others implement.
"""
