"""The live entries of a snapshot, kept between plans where the table's metadata source keeps values, and indexed by partition.

A plan with a condition on partitions then evaluates it once per partition and takes the entries of those that match: nothing is
decoded, and what it costs depends on what matches. A version whose manifests are those of an earlier one and some that add files
continues its entries. The first other selective plan of a snapshot is made without: it decodes only the
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

from lakelet.commit.metadata.manifests import live_entries, read_entries
from lakelet.commit.metadata.source import metadata
from lakelet.format.manifest.manifest_columns import IDENTITY_COLUMNS
from lakelet.format.rows.binary_row_columns import decode_rows
from lakelet.model.manifest import ManifestFile
from lakelet.model.row_arrays import Mask
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.options import TableOptions
from lakelet.predicate.tree import Predicate, needs_duckdb
from lakelet.storage.home import TableHome
from lakelet.storage.metadata_source import KeptValues

Name: TypeAlias = tuple[object, ...]
Rows = npt.NDArray[np.int64]
# An entry takes about this much when it is decoded for reading; with statistics it is more, and then measured.
_ENTRY_BYTES = 400
# The memory of a file in the splits of a plan.
_FILE_BYTES = 900
_PLAN_BYTES = 2000
_MARKER_BYTES = 200
_NAME_BYTES = 120
# Versions that continue one another by more than this are indexed anew.
_MOST_PARTS = 16
_VERSION_PARTS = 4
# A condition of more bytes than this is not looked up.
_LONGEST_CONDITION = 4000


@dataclass(frozen=True, slots=True)
class _Part:
    """Entries, and for each partition the rows of its entries."""

    entries: pa.Table
    values: tuple[pa.Array, ...]
    order: Rows
    starts: Rows

    @staticmethod
    def of(entries: pa.Table, schema: TableSchema) -> _Part:
        entries = entries.combine_chunks()
        if not schema.partition_keys or not entries.num_rows:
            return _Part(entries, (), np.empty(0, np.int64), np.zeros(1, np.int64))
        encoded = entries.column("_PARTITION").combine_chunks().dictionary_encode()
        codes = encoded.indices.to_numpy()
        order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[order], np.arange(len(encoded.dictionary) + 1))
        return _Part(entries, tuple(decode_rows(encoded.dictionary, schema.partition_types)), order, starts)

    def matching(self, match: Callable[[Sequence[pa.Array], int], Mask]) -> pa.Table:
        if not self.values:
            return self.entries
        chosen = np.flatnonzero(match(self.values, len(self.values[0])))
        if len(chosen) == len(self.values[0]):
            return self.entries
        parts = [self.order[self.starts[code] : self.starts[code + 1]] for code in chosen.tolist()]
        rows = np.sort(np.concatenate(parts)) if parts else np.empty(0, np.int64)
        return self.entries.take(pa.array(rows))

    @property
    def nbytes(self) -> int:
        inside = sum(int(column.nbytes) for column in self.values)
        return int(self.entries.nbytes) + inside + int(self.order.nbytes + self.starts.nbytes) + _MARKER_BYTES


@dataclass(frozen=True, slots=True)
class KeptEntries:
    """Live entries in the order in which they were added, indexed by partition: those of an earlier version, which it shares
    with that, and those that were added since."""

    parts: tuple[_Part, ...]

    @staticmethod
    def of(entries: pa.Table, schema: TableSchema) -> KeptEntries:
        """Index these entries."""
        return KeptEntries((_Part.of(entries, schema),))

    def plus(self, added: pa.Table, schema: TableSchema) -> KeptEntries:
        """The same with entries that were added later."""
        if not added.num_rows:
            return self
        if len(self.parts) == _MOST_PARTS:
            return KeptEntries.of(pa.concat_tables([self.entries, added]), schema)
        return KeptEntries((*self.parts, _Part.of(added, schema)))

    @property
    def entries(self) -> pa.Table:
        """All entries."""
        return self.parts[0].entries if len(self.parts) == 1 else pa.concat_tables(one.entries for one in self.parts)

    @property
    def nbytes(self) -> int:
        """The size in memory, also of what it shares."""
        return sum(part.nbytes for part in self.parts)

    def matching(self, match: Callable[[Sequence[pa.Array], int], Mask]) -> pa.Table:
        """The entries of the partitions that match: `match` is given the values of the partition columns, a row a partition."""
        found = [part.matching(match) for part in self.parts]
        return found[0] if len(found) == 1 else pa.concat_tables(found)


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
    """The live entries of a snapshot with these columns, kept, continued from those of an earlier one, or made; None where they
    are not worth keeping."""
    kept = metadata(home).kept(home)
    if kept is None:
        return None
    name = ("live entries", *_version(snapshot), tuple(columns), schema.partition_keys)
    found: KeptEntries | None = kept.get(name)
    if found is not None:
        return found
    if sum(one.added_files + one.deleted_files for one in manifests) * _ENTRY_BYTES > kept.max_bytes:
        return None
    newest = ("newest live entries", home.paths.branch_root, tuple(columns), schema.partition_keys)
    found = _continued(home, kept, newest, manifests, schema, columns)
    if found is None and selective:
        asked = ("asked for", *name)
        if kept.get(asked) is None:
            kept.put(asked, True, _MARKER_BYTES)
            return None
    if found is None:
        found = KeptEntries.of(live_entries(home, manifests, columns=columns, threads=threads), schema)
    kept.put(name, found, found.nbytes)
    names = tuple(one.name for one in manifests)
    kept.put(newest, (names, name), _MARKER_BYTES + _NAME_BYTES * len(names))
    return found


def _continued(
    home: TableHome,
    kept: KeptValues,
    newest: Name,
    manifests: Sequence[ManifestFile],
    schema: TableSchema,
    columns: Sequence[str],
) -> KeptEntries | None:
    """The entries that were kept last with those of manifests that follow; None where these do more than add files."""
    before: tuple[tuple[str, ...], Name] | None = kept.get(newest)
    earlier: KeptEntries | None = None if before is None else kept.get(before[1])
    if before is None or earlier is None:
        return None
    added = appended_entries(home, before[0], manifests, [*IDENTITY_COLUMNS, *columns])
    return None if added is None else earlier.plus(added, schema)


def appended_entries(
    home: TableHome, before: tuple[str, ...], manifests: Sequence[ManifestFile], columns: Sequence[str]
) -> pa.Table | None:
    """The entries of the manifests that follow those named, all of which add files; None where the others are not those, or a
    file is removed. Manifests never change under their name."""
    count = len(before)
    if count > len(manifests) or any(one.name != name for one, name in zip(manifests, before, strict=False)):
        return None
    entries = read_entries(home, manifests[count:], columns=list(dict.fromkeys(columns)))
    return None if entries.column("_KIND").to_numpy().any() else entries


@dataclass(frozen=True, slots=True)
class PlanName:
    """What determines a plan."""

    home: TableHome
    name: Name
    index_manifest: str | None

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
        name = ("plan", *_version(snapshot), read_in, settings, condition, rest)
        return PlanName(home, name, snapshot.index_manifest)

    def find(self) -> object | None:
        """The plan, if it is kept."""
        kept = metadata(self.home).kept(self.home)
        return None if kept is None else kept.get(self.name)

    def earlier(self, deletes_rows: Callable[[], bool]) -> tuple[object, tuple[str, ...]] | None:
        """The plan of the version that was kept last, and the names of its manifests; None where it may have other deletion
        vectors. `deletes_rows` says whether this version has any."""
        kept = metadata(self.home).kept(self.home)
        newest: _NewestPlan | None = None if kept is None else kept.get(self._newest)
        if kept is None or newest is None:
            return None
        if newest.index_manifest != self.index_manifest and (newest.deletes_rows or deletes_rows()):
            return None
        plan = kept.get(newest.name, to_continue=True)
        return None if plan is None else (plan, newest.manifests)

    def keep(self, plan: object, files: int, manifests: Sequence[ManifestFile], *, deletes_rows: bool) -> None:
        """Keep a plan of this many files, and whether there are deletion vectors."""
        kept = metadata(self.home).kept(self.home)
        if kept is not None:
            kept.put(self.name, plan, _PLAN_BYTES + _FILE_BYTES * files)
            names = tuple(one.name for one in manifests)
            newest = _NewestPlan(self.name, self.index_manifest, deletes_rows, names)
            kept.put(self._newest, newest, _MARKER_BYTES + _NAME_BYTES * len(names))

    @property
    def _newest(self) -> Name:
        return ("newest plan", self.home.paths.branch_root, *self.name[_VERSION_PARTS + 1 :])


@dataclass(frozen=True, slots=True)
class _NewestPlan:
    name: Name
    index_manifest: str | None
    deletes_rows: bool
    manifests: tuple[str, ...]


def _version(snapshot: Snapshot) -> Name:
    """A snapshot, known by more than its id: ids are reused."""
    return (snapshot.id, snapshot.delta_manifest_list, snapshot.base_manifest_list, snapshot.index_manifest)
