"""Values and types between Arrow, Python and the model."""
