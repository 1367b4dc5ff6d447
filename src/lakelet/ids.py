"""Unique names and jitter: the only source of randomness, so that tests can inject a deterministic one."""

from __future__ import annotations

import os
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


def _random_uuid() -> str:
    """The text of a version 4 UUID; `str(uuid.uuid4())` takes five times as long, and a commit needs a dozen."""
    bits = bytearray(os.urandom(16))
    bits[6] = bits[6] & 0x0F | 0x40
    bits[8] = bits[8] & 0x3F | 0x80
    text = bits.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


class RandomIds:
    """Names from the operating system's randomness."""

    def uuid(self) -> str:
        """A random UUID."""
        return _random_uuid()

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
