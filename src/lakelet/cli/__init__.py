"""The command line: thin edges over the same calls that Python users make."""

from lakelet.cli.main import commands, main

__all__ = ["commands", "main"]
