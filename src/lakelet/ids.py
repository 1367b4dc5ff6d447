"""The only place that draws random names and numbers, so that tests can hand in predictable ones."""

from __future__ import annotations

import random
import uuid
from typing import Protocol

import numpy as np


class Ids(Protocol):
    """A source of names that nobody else has, and of jitter."""

    def uuid(self) -> str:
        """A fresh UUID as text."""
        ...

    def jitter(self) -> float:
        """A number between 0 and 1."""
        ...


class RandomIds:
    """Names from the operating system's randomness."""

    def uuid(self) -> str:
        """A random UUID."""
        return str(uuid.uuid4())

    def jitter(self) -> float:
        """A number between 0 and 1."""
        return random.random()


class PrefixedIds:
    """Names that all begin alike, by which those of one job are found again."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    def uuid(self) -> str:
        """The prefix and 64 random bits."""
        return f"{self.prefix}-{uuid.uuid4().hex[:16]}"

    def jitter(self) -> float:
        """A number between 0 and 1."""
        return random.random()


def seeded_numbers(seed: int) -> np.random.Generator:
    """Numbers that are the same at every run, for made-up data."""
    return np.random.default_rng(seed)
