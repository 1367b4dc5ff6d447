"""The sections of a primary-key table's files, for planning.

    live entries ─ hide what no scan reads ─ prune single files by their keys ─ lay out the sections of every bucket
      ─ prune by values: whole sections that need merging, single files elsewhere ─ pack into splits

Rows of one key may be in several files, and only the newest is visible. So a file may be pruned by its values only together with
all files that may hold the same keys: else a superseded row would become visible. A condition on keys holds for all rows of a
key or for none, and prunes single files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.format.manifest.manifest_columns import columns_to_entries
from lakelet.lsm.changelog_producer import check_whole_rows, looks_up
from lakelet.lsm.engine.merge_engine import Shortcuts
from lakelet.lsm.sections import Section, needs_merge, sections
from lakelet.model.bucket_mode import POSTPONE_BUCKET
from lakelet.model.data_file import DataFile
from lakelet.model.manifest import ManifestEntry
from lakelet.model.row_arrays import Mask
from lakelet.model.schema import TableSchema
from lakelet.model.split import DeletionVector, Split
from lakelet.options import (
    DELETION_VECTORS_ENABLED,
    FIRST_ROW,
    MERGE_ENGINE,
    ROWKIND_FIELD,
    TableOptions,
)
from lakelet.scan.splits import SplitPacker


def visible(entries: pa.Table, options: TableOptions) -> pa.Table:
    """Drop the files that no scan reads: postponed rows, and level 0 where it is hidden until compaction."""
    if looks_up(options):
        _check_levels(entries, options)
    hidden = pc.equal(entries.column("_BUCKET"), POSTPONE_BUCKET)
    if hides_level0(options):
        hidden = pc.or_(hidden, pc.equal(entries.column("_LEVEL"), 0))
    return entries.filter(pc.invert(hidden))


def _check_levels(entries: pa.Table, options: TableOptions) -> None:
    levels = entries.group_by(["_PARTITION", "_BUCKET"], use_threads=False).aggregate([("_LEVEL", "distinct")])
    for found in levels.column("_LEVEL_distinct").to_pylist():
        check_whole_rows(options, found)


def hides_level0(options: TableOptions) -> bool:
    """Whether rows of level 0 become visible only by compaction."""
    return bool(options.get(DELETION_VECTORS_ENABLED)) or options.get(MERGE_ENGINE) == FIRST_ROW


def takes_level0(options: TableOptions) -> bool:
    """Whether every compaction of a bucket takes all of level 0, since readers wait for it: for the rows or for the changelog."""
    return hides_level0(options) or looks_up(options)


@dataclass(frozen=True, slots=True)
class Tree:
    """Files with the section that each belongs to, bucket by bucket, sections in key order, their files run by run.

    `places` are the rows of the files in the table of entries. `section` numbers the sections of all
    buckets; `merged` says of each file whether its section needs merging.
    """

    files: tuple[ManifestEntry, ...]
    places: npt.NDArray[np.int64]
    section: npt.NDArray[np.int64]
    merged: Mask

    @staticmethod
    def of(entries: pa.Table, schema: TableSchema) -> Tree:
        """The tree of these live entries, which hold the key ranges."""
        options = TableOptions(schema.options)
        key_types = [field.type for field in schema.trimmed_key_fields]
        files: list[ManifestEntry] = []
        places: list[int] = []
        section_numbers: list[int] = []
        merged: list[bool] = []
        found = 0
        numbered = sorted(enumerate(columns_to_entries(entries)), key=lambda pair: _bucket(pair[1]))
        for _, group in groupby(numbered, key=lambda pair: _bucket(pair[1])):
            bucket = list(group)
            data = [entry.file for _, entry in bucket]
            for section in sections(data, key_types):
                merges = _merges(data, section, options)
                for place in section.places:
                    number, entry = bucket[place]
                    places.append(number)
                    files.append(entry)
                    section_numbers.append(found)
                    merged.append(merges)
                found += 1
        return Tree(
            tuple(files), np.array(places, np.int64), np.array(section_numbers, np.int64), np.array(merged, np.bool_)
        )

    def pruned(self, may_match: Mask, shortcuts: Shortcuts) -> Tree:
        """Prune what cannot hold a matching row; the mask runs parallel to the table of entries.

        Sections that need merging are pruned only where the merge engine changes no values: otherwise rows of which none matches
        may be merged into one that does.
        """
        may = may_match[self.places]
        if not shortcuts.value_pruning:
            return self.keep(self.merged | may)
        some = np.zeros(len(may), np.bool_)
        # Sections are fewer than files, so the array of files is long enough to hold a flag for each.
        some[self.section[may]] = True
        return self.keep(np.where(self.merged, some[self.section], may)) if len(may) else self

    def keep(self, mask: Mask) -> Tree:
        """Only the files that the mask, parallel to `files`, marks."""
        if mask.all():
            return self
        files = tuple(file for file, kept in zip(self.files, mask.tolist(), strict=True) if kept)
        return Tree(files, self.places[mask], self.section[mask], self.merged[mask])

    def pack(self, snapshot_id: int, packer: SplitPacker, vectors: Mapping[str, DeletionVector]) -> tuple[Split, ...]:
        """Splits of one kind each, up to the target size. No section that needs merging is cut in two."""
        splits: list[Split] = []
        rows = zip(self.files, self.section.tolist(), self.merged.tolist(), strict=True)
        for _, group in groupby(rows, key=lambda row: _bucket(row[0])):
            for stretch in _stretches(list(group), packer):
                splits.extend(packer.pack_groups(snapshot_id, stretch.groups, vectors, needs_merge=stretch.merges))
        return tuple(splits)


@dataclass(slots=True)
class _Stretch:
    """Neighbours of one kind in a bucket: sections that need merging, or files to read as they are, a group each."""

    merges: bool
    groups: list[list[ManifestEntry]]


def _stretches(rows: list[tuple[ManifestEntry, int, bool]], packer: SplitPacker) -> list[_Stretch]:
    """Cut a bucket where the kind changes; small parts that need no merging join their neighbours that do."""
    found: list[_Stretch] = []
    for (_, merges), group in groupby(rows, key=lambda row: (row[1], row[2])):
        entries = [entry for entry, _, _ in group]
        # Files that overlap stay together also where nothing is merged, so that their rows can be sorted by key.
        if found and found[-1].merges == merges:
            found[-1].groups.append(entries)
        else:
            found.append(_Stretch(merges, [entries]))
    if len(found) == 1:
        return found
    joined: list[_Stretch] = []
    for stretch in found:
        merges = stretch.merges or packer.is_small(stretch.groups)
        if joined and joined[-1].merges == merges:
            joined[-1].groups.extend(stretch.groups)
        else:
            joined.append(_Stretch(merges, list(stretch.groups)))
    return joined


def _merges(files: list[DataFile], section: Section, options: TableOptions) -> bool:
    """Whether rows of a section must be merged. Where level 0 is hidden a key is live in one file only."""
    if options.get(MERGE_ENGINE) == FIRST_ROW:
        return False
    if hides_level0(options):
        return any(files[place].delete_row_count != 0 for place in section.places)
    return needs_merge(files, section, counts_deletes=options.get(ROWKIND_FIELD) is None)


def _bucket(entry: ManifestEntry) -> tuple[bytes, int]:
    return entry.partition, entry.bucket
