"""Choose the data files to rewrite together. A pure function of their sizes.

A file is worth rewriting where it is much smaller or much larger than the target, has rows that are deleted, or is of an older
partition spec. Files of one partition are put into groups of about the target size; a group of a few files that are only small
is left for later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_SMALL = 0.75
_LARGE = 1.8


@dataclass(frozen=True, slots=True)
class Candidate:
    """The properties of a data file that the rewrite policy uses. `partition` is the key of its spec and partition."""

    path: str
    partition: object
    bytes: int
    has_deletes: bool
    old_spec: bool


def file_groups(files: Sequence[Candidate], *, target_bytes: int, min_input_files: int) -> list[list[Candidate]]:
    """The groups of files to rewrite, each on its own."""
    by_partition: dict[object, list[Candidate]] = {}
    for file in files:
        if file.has_deletes or file.old_spec or not _SMALL * target_bytes <= file.bytes <= _LARGE * target_bytes:
            by_partition.setdefault(file.partition, []).append(file)
    groups = []
    for members in by_partition.values():
        for group in _packed(members, target_bytes):
            must = any(file.has_deletes or file.old_spec for file in group)
            large = any(file.bytes > _LARGE * target_bytes for file in group)
            full = len(group) > 1 and sum(file.bytes for file in group) >= target_bytes
            if must or large or full or len(group) >= max(min_input_files, 2):
                groups.append(group)
    return groups


def _packed(files: list[Candidate], target_bytes: int) -> list[list[Candidate]]:
    packed: list[list[Candidate]] = []
    group: list[Candidate] = []
    size = 0
    for file in sorted(files, key=lambda one: (one.bytes, one.path)):
        if group and size + file.bytes > target_bytes:
            packed.append(group)
            group, size = [], 0
        group.append(file)
        size += file.bytes
    return [*packed, group] if group else packed
