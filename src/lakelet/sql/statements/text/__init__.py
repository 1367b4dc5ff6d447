"""Parts of statements: clauses, names, spans, and queries put together of them."""
