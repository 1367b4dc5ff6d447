"""The commands: their names, arguments and help. What they do is elsewhere and loaded when they run."""
