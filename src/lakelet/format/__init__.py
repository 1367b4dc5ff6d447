"""Encoders and decoders of every file type of a table."""
