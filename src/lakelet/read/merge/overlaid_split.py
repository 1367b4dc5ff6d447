"""A split of one bucket's files with in-memory runs overlaid, to be merged together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from lakelet.lsm.source.row_source import Run
from lakelet.model.bucket_mode import Place
from lakelet.model.split import Split


@dataclass(frozen=True, slots=True)
class OverlaidSplit:
    """All files of a bucket that a plan reads, None if there are none, and runs beside them, oldest first."""

    split: Split | None
    runs: tuple[Run, ...]

    @property
    def needs_merge(self) -> bool:
        """Always: a key may be in the files and in the runs."""
        return True


AnySplit: TypeAlias = Split | OverlaidSplit


def overlaid(splits: Sequence[Split], runs: Mapping[Place, Sequence[Run]]) -> list[AnySplit]:
    """The splits of a plan with the runs of each partition and bucket.

    Splits of a bucket that has runs become one, for a run may hold keys of all of them. A plan pruned by values lacks files whose
    rows a run may supersede, so that only conditions on the key may have pruned it.
    """
    found: list[AnySplit] = []
    joined: dict[Place, Split] = {}
    for split in splits:
        place = (split.partition, split.bucket)
        if split.branch is not None or place not in runs:
            found.append(split)
        elif place in joined:
            joined[place] = _joined(joined[place], split)
        else:
            joined[place] = split
    found += [OverlaidSplit(joined.get(place), tuple(several)) for place, several in runs.items() if several]
    return found


def _joined(one: Split, other: Split) -> Split:
    return replace(
        one,
        files=(*one.files, *other.files),
        paths=(*one.paths, *other.paths),
        deletion_vectors=(*one.deletion_vectors, *other.deletion_vectors),
        needs_merge=True,
    )
