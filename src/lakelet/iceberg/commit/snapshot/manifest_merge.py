"""Choose small manifests to merge, so that many small commits do not leave as many manifests to every reader.

Manifests of one spec fall into classes by their number of files, each class `min_count` times the one below. A class that has
`min_count` manifests is merged into one or more of the class above, up to the target size. So a file's entry is
rewritten as often as there are classes, not at every commit, and no class ever holds more than `min_count`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ManifestSize:
    """The properties of a manifest that the merge policy uses."""

    spec_id: int
    length: int
    files: int


def merge_groups(sizes: Sequence[ManifestSize], min_count: int, target_bytes: int) -> list[list[int]]:
    """Groups of indexes into `sizes`, each to be merged into one manifest. Manifests in no group are kept."""
    base = max(min_count, 2)
    classes: dict[tuple[int, int], list[int]] = {}
    for place, size in enumerate(sizes):
        if size.length < target_bytes:
            rank = int(math.log(max(size.files, 1), base) + 1e-9)
            classes.setdefault((size.spec_id, rank), []).append(place)
    groups: list[list[int]] = []
    for places in classes.values():
        if len(places) < base:
            continue
        group: list[int] = []
        length = 0
        for place in places:
            if group and length + sizes[place].length > target_bytes:
                groups.append(group)
                group, length = [], 0
            group.append(place)
            length += sizes[place].length
        groups.append(group)
    return [group for group in groups if len(group) > 1]
