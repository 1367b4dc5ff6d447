"""Parts of statements: clauses, names, spans, and the queries assembled from them."""
