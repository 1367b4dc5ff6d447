"""The live entries of a snapshot, kept between plans where the table's metadata source keeps values, and indexed by partition.

A plan with a condition on partitions then evaluates it once per partition and takes the entries of those that match: nothing is
decoded, and what it costs depends on what matches. The first selective plan of a snapshot is made without: it decodes only the
blocks that it needs, and a snapshot that is planned once is not worth the decoding of everything. A plan itself is kept, too: a
snapshot, a schema and a condition determine it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.metadata.manifests import live_entries
from lakelet.commit.metadata.source import metadata
from lakelet.format.rows.binary_row_columns import decode_rows
from lakelet.model.manifest import ManifestFile
from lakelet.model.row_arrays import Mask
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.options import TableOptions
from lakelet.predicate.tree import Predicate, needs_duckdb
from lakelet.storage.home import TableHome

Name: TypeAlias = tuple[object, ...]
Rows = npt.NDArray[np.int64]
# An entry takes about this much when it is decoded for reading; with statistics it is more, and then measured.
_ENTRY_BYTES = 400
# The memory of a file in the splits of a plan.
_FILE_BYTES = 900
_PLAN_BYTES = 2000
_MARKER_BYTES = 200
# A condition of more bytes than this is not looked up.
_LONGEST_CONDITION = 4000


@dataclass(frozen=True, slots=True)
class KeptEntries:
    """Live entries in the order in which they were added, and for each partition the rows of its entries."""

    entries: pa.Table
    values: tuple[pa.Array, ...]
    order: Rows
    starts: Rows

    @staticmethod
    def of(entries: pa.Table, schema: TableSchema) -> KeptEntries:
        """Index these entries."""
        entries = entries.combine_chunks()
        if not schema.partition_keys or not entries.num_rows:
            return KeptEntries(entries, (), np.empty(0, np.int64), np.zeros(1, np.int64))
        encoded = entries.column("_PARTITION").combine_chunks().dictionary_encode()
        codes = encoded.indices.to_numpy()
        order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[order], np.arange(len(encoded.dictionary) + 1))
        return KeptEntries(entries, tuple(decode_rows(encoded.dictionary, schema.partition_types)), order, starts)

    @property
    def nbytes(self) -> int:
        """The size in memory."""
        inside = sum(int(column.nbytes) for column in self.values)
        return int(self.entries.nbytes) + inside + int(self.order.nbytes + self.starts.nbytes) + _MARKER_BYTES

    def matching(self, match: Callable[[Sequence[pa.Array], int], Mask]) -> pa.Table:
        """The entries of the partitions that match: `match` is given the values of the partition columns, a row a partition."""
        if not self.values:
            return self.entries
        chosen = np.flatnonzero(match(self.values, len(self.values[0])))
        if len(chosen) == len(self.values[0]):
            return self.entries
        parts = [self.order[self.starts[code] : self.starts[code + 1]] for code in chosen.tolist()]
        rows = np.sort(np.concatenate(parts)) if parts else np.empty(0, np.int64)
        return self.entries.take(pa.array(rows))


def kept_entries(
    home: TableHome,
    snapshot: Snapshot,
    manifests: Sequence[ManifestFile],
    schema: TableSchema,
    columns: Sequence[str],
    *,
    selective: bool,
    threads: int,
) -> KeptEntries | None:
    """The live entries of a snapshot with these columns, kept or made; None where they are not worth keeping."""
    kept = metadata(home).kept(home)
    if kept is None:
        return None
    name = ("live entries", *_version(snapshot), tuple(columns), schema.partition_keys)
    found: KeptEntries | None = kept.get(name)
    if found is not None:
        return found
    if sum(one.added_files + one.deleted_files for one in manifests) * _ENTRY_BYTES > kept.max_bytes:
        return None
    if selective:
        asked = ("asked for", *name)
        if kept.get(asked) is None:
            kept.put(asked, True, _MARKER_BYTES)
            return None
    found = KeptEntries.of(live_entries(home, manifests, columns=columns, threads=threads), schema)
    kept.put(name, found, found.nbytes)
    return found


@dataclass(frozen=True, slots=True)
class PlanName:
    """What determines a plan."""

    home: TableHome
    name: Name

    @staticmethod
    def of(
        home: TableHome,
        snapshot: Snapshot,
        schema: TableSchema,
        options: TableOptions,
        where: Predicate | pc.Expression | None,
        rest: Name,
    ) -> PlanName | None:
        """The name of a plan; None where it cannot be kept."""
        if metadata(home).kept(home) is None or isinstance(where, pc.Expression):
            return None
        if where is not None and needs_duckdb(where):
            # What DuckDB decides may mean something else at every moment: `now()`, `random()`.
            return None
        # By all of its bytes, never by its text, which leaves out the middle of a long list of values; and not by equality:
        # values that are equal, such as 1 and 1.0, need not prune alike.
        condition = b"" if where is None else pickle.dumps(where)
        if len(condition) > _LONGEST_CONDITION:
            return None
        # The columns too: a branch that replaces another has schemas of its own under the same ids.
        read_in = (schema.id, schema.fields, schema.primary_keys, schema.partition_keys)
        settings = (tuple(sorted(schema.options.items())), tuple(sorted(options.raw.items())))
        return PlanName(home, ("plan", *_version(snapshot), read_in, settings, condition, rest))

    def find(self) -> object | None:
        """The plan, if it is kept."""
        kept = metadata(self.home).kept(self.home)
        return None if kept is None else kept.get(self.name)

    def keep(self, plan: object, files: int) -> None:
        """Keep a plan of this many files."""
        kept = metadata(self.home).kept(self.home)
        if kept is not None:
            kept.put(self.name, plan, _PLAN_BYTES + _FILE_BYTES * files)


def _version(snapshot: Snapshot) -> Name:
    """A snapshot, known by more than its id: ids are reused."""
    return (snapshot.id, snapshot.delta_manifest_list, snapshot.base_manifest_list, snapshot.index_manifest)
