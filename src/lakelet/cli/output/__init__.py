"""Results and progress, for people and for programs."""
