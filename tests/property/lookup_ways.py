"""The ways in which compaction finds old rows by key, for tests that give the same rows in each of them."""

from __future__ import annotations

import os
import tempfile

import pytest

from lakelet.read.serve import lookup_choice

# Below it each process has a folder of its own, which a later process removes.
_FOLDER = os.path.join(tempfile.gettempdir(), "lakelet-tests-of-lookups")
WAYS = ("as it chooses", "in order", "data files", "lookup files")


def compact_by(patch: pytest.MonkeyPatch, way: str) -> None:
    """From now on compaction finds old rows in this way only, whatever the number of keys."""
    patch.undo()
    patch.setenv("XDG_CACHE_HOME", _FOLDER)
    if way == "as it chooses":
        return
    patch.setattr(lookup_choice, "LOOKUP_ROWS", 1 << 40 if way == "in order" else 0)
    patch.setattr(lookup_choice, "KEY_CELLS", 0)
    patch.setattr(lookup_choice, "MAKING", 0 if way == "lookup files" else 1 << 40)
