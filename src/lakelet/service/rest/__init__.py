"""The HTTP edge: requests to operations, answers and errors to JSON. No logic of its own."""
