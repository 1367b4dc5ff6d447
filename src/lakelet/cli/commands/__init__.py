"""The commands: names, arguments and help. Their implementations are imported when they run."""
