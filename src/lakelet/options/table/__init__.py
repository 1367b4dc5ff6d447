"""The options of tables, a module for each theme; `table_options` collects them."""
