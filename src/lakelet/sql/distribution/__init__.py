"""Queries whose work is spread over several engines: what each of them runs, and how their rows are combined."""
