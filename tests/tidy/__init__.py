"""How the code reads, as tests: sizes, names, bans, documentation."""
