"""Lakelet against other implementations of its formats: they read what it wrote, it reads what they wrote."""
