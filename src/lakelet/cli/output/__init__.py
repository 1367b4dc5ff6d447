"""Output of results and progress, for people and for programs."""
