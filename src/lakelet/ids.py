"""Unique names and jitter: the only source of randomness, so that tests can inject a deterministic one."""

from __future__ import annotations

import random
import uuid
from typing import Protocol

import numpy as np


class Ids(Protocol):
    """A source of unique names, and of jitter for back-off."""

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
    """Names with a common prefix, by which the files of one job are found again."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    def uuid(self) -> str:
        """The prefix and 64 random bits."""
        return f"{self.prefix}-{uuid.uuid4().hex[:16]}"

    def jitter(self) -> float:
        """A number between 0 and 1."""
        return random.random()


def seeded_numbers(seed: int) -> np.random.Generator:
    """A random generator with a fixed seed, for reproducible generated data."""
    return np.random.default_rng(seed)
