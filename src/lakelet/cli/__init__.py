"""The command line: thin wrappers around the public Python API."""

from lakelet.cli.main import commands, main

__all__ = ["commands", "main"]
