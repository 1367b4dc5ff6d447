"""Check a table: every file of every version exists, decodes and agrees with what names it.

    snapshots, tags, branches ─ metadata_check ─ entries of all live files ─ read/file_check, in threads ─ CheckReport
                                            └ files of one level of a bucket hold keys of their own

Nothing is changed. A version that is expired meanwhile is no damage.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import pyarrow as pa

from lakelet.commit.conflict.conflicts import comparable_key
from lakelet.commit.metadata.expired_file import is_named
from lakelet.commit.metadata.manifests import read_manifest_list
from lakelet.commit.metadata.metadata_check import CheckedVersion, MetadataCheck
from lakelet.commit.metadata.schemas import SchemaVersions, latest_schema
from lakelet.commit.metadata.snapshots import read_snapshot, try_snapshot
from lakelet.commit.metadata.version_ids import listed_ids, snapshot_ids, tag_names
from lakelet.commit.retention.file_references import branch_homes
from lakelet.commit.retention.unused_files import distinct_files
from lakelet.commit.versions.branches import branch_home
from lakelet.commit.versions.tags import read_tag
from lakelet.errors import CorruptionError, InvalidError, LakeletError, NotFoundError
from lakelet.format.manifest.manifest_columns import ENTRY_SCHEMA, columns_to_entries
from lakelet.format.partition_folders import PartitionFolders
from lakelet.format.rows.binary_row_columns import decode_rows
from lakelet.model.damage import CheckProgress, CheckReport, Damage
from lakelet.model.manifest import ManifestEntry
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.read.file_check import FileCheck
from lakelet.read.split_files import SplitFile
from lakelet.storage.home import TableHome

Progress = Callable[[CheckProgress], None]
_THREADS = 4
# Asking what still names a file reads all metadata: with more missing files than this, expiry is no explanation.
_ASKED = 20


@dataclass(frozen=True, slots=True)
class TableCheck:
    """A check of a table's versions and their files."""

    home: TableHome

    def check(
        self,
        *,
        version: int | None = None,
        tag: str | None = None,
        branch: str | None = None,
        quick: bool = False,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> CheckReport:
        """Check all versions of all branches, or the one of a snapshot id or tag, or those of a branch."""
        if version is not None and tag is not None:
            raise InvalidError("a check is of one version: both a version and a tag were given")
        if threads is not None and (isinstance(threads, bool) or threads < 1):
            raise InvalidError(f"threads {threads!r}: expected a whole number from 1 on")
        # The check reads the store, whatever is cached.
        home = (self.home if branch is None else branch_home(self.home, branch)).uncached()
        schema = latest_schema(home)
        run = _Run(home, schema, quick, threads or _THREADS, progress)
        one = version is not None or tag is not None
        homes = [home] if one or branch is not None else branch_homes(home)
        return run.report(_one_version(home, version, tag) if one else run.versions(homes))


def _one_version(home: TableHome, version: int | None, tag: str | None) -> Iterator[CheckedVersion]:
    if tag is not None:
        yield CheckedVersion(home, home.paths.tag(tag), read_tag(home, tag), is_head=True)
    elif version is not None:
        yield CheckedVersion(home, home.paths.snapshot(version), read_snapshot(home, version), is_head=True)


class _Run:
    """One run of a check."""

    def __init__(
        self, home: TableHome, schema: TableSchema, quick: bool, threads: int, progress: Progress | None
    ) -> None:
        self._home, self._schema, self._quick, self._threads = home, schema, quick, threads
        self._progress = progress
        self._folders = PartitionFolders(home.paths, schema)
        self._metadata = MetadataCheck(home, self._folders, quick)
        self._schema_of = SchemaVersions(home, {schema.id: schema})
        self._lock = threading.Lock()
        self._done = CheckProgress(0, 0, 0, 0)

    def versions(self, homes: Sequence[TableHome]) -> Iterator[CheckedVersion]:
        """The snapshots and tags of branches; a snapshot or tag that cannot be read is reported and left out."""
        for home in homes:
            ids = snapshot_ids(home)
            self._check_chain(home, ids)
            for number in ids:
                path = home.paths.snapshot(number)
                # Files of the oldest snapshot were added before it, so that it is checked as a whole like the newest.
                is_head = number in (ids[0], ids[-1])
                yield from self._version(home, path, partial(read_snapshot, home, number), is_head)
            for name in tag_names(home):
                yield from self._version(home, home.paths.tag(name), partial(read_tag, home, name), True)

    def _check_chain(self, home: TableHome, ids: range) -> None:
        """Report a snapshot that is missing in the middle: it cuts off those before it from those made of them."""
        older = sorted(number for number in listed_ids(home) if ids and number < ids[0])
        before, after = (try_snapshot(home, number) for number in (older[-1], ids[0])) if older else (None, None)
        if before is None or after is None:
            return
        try:
            own = {manifest.name for manifest in read_manifest_list(home, before.delta_manifest_list)}
            base = {manifest.name for manifest in read_manifest_list(home, after.base_manifest_list)}
        except LakeletError:
            return
        if own & base:
            path = home.paths.snapshot(ids[0] - 1)
            self._metadata.note(
                "snapshot", path, f"is missing: snapshots up to {before.id} cannot be reached without it"
            )

    def _version(
        self, home: TableHome, path: str, read: Callable[[], Snapshot], is_head: bool
    ) -> Iterator[CheckedVersion]:
        try:
            yield CheckedVersion(home, path, read(), is_head)
        except NotFoundError:
            # It was expired, or the tag deleted, since they were listed.
            return
        except CorruptionError as error:
            self._metadata.note("tag" if "/tag/" in path else "snapshot", path, f"cannot be read: {error}")

    def report(self, versions: Iterator[CheckedVersion]) -> CheckReport:
        """Check the versions and their files."""
        count, tables = 0, [ENTRY_SCHEMA.empty_table()]
        for version in versions:
            count += 1
            live = self._metadata.check(version)
            tables.append(live)
            if version.is_head and self._schema.primary_keys:
                self._check_levels(live)
        entries = list(columns_to_entries(distinct_files(pa.concat_tables(tables).combine_chunks())))
        entries = [entry for entry in entries if entry.file.external_path is None]
        self._done = CheckProgress(0, len(entries), 0, sum(entry.file.size for entry in entries))
        with ThreadPoolExecutor(self._threads) as pool:
            found = [damage for damage in pool.map(self._check_file, entries) if damage is not None]
        damages = [*self._metadata.damages, *found]
        return CheckReport(
            count,
            self._metadata.read + count,
            len(entries),
            sum(entry.file.row_count for entry in entries),
            sum(entry.file.size for entry in entries),
            self._quick,
            tuple(damage for place, damage in enumerate(_distinct(damages)) if self._is_damage(damage, place)),
        )

    def _is_damage(self, damage: Damage, place: int) -> bool:
        """Whether a missing file is still named, and was not just expired."""
        if damage.kind in ("schema", "snapshot", "tag") or "is missing" not in damage.problem:
            return True
        return place >= _ASKED or is_named(self._home, damage.path)

    def _check_file(self, entry: ManifestEntry) -> Damage | None:
        path = f"{self._folders.bucket_folder(entry.partition, entry.bucket)}/{entry.file.name}"
        file = SplitFile(entry.file, path, None, 0, entry.partition)
        problem = FileCheck(self._home, self._schema_of).problem(file, entry.bucket, quick=self._quick)
        with self._lock:
            done = self._done
            self._done = CheckProgress(done.files_done + 1, done.files, done.bytes_done + entry.file.size, done.bytes)
            if self._progress is not None:
                self._progress(self._done)
        return None if problem is None else self._damage(entry, path, problem)

    def _damage(self, entry: ManifestEntry, path: str, problem: str) -> Damage:
        added = self._metadata.added_by(entry.file.name)
        return Damage(
            "data file",
            path,
            problem,
            partition=self._folders.partition_path(entry.partition),
            bucket=entry.bucket,
            keys=self._keys(entry),
            rows=entry.file.row_count,
            snapshot=added,
        )

    def _keys(self, entry: ManifestEntry) -> str | None:
        fields = self._schema.trimmed_key_fields
        if not fields:
            return None
        try:
            low, high = (
                [column[0].as_py() for column in decode_rows(pa.array([key], pa.binary()), [f.type for f in fields])]
                for key in (entry.file.min_key, entry.file.max_key)
            )
        except (LakeletError, ValueError):
            return None
        names = ", ".join(field.name for field in fields)
        return f"({names}) from ({', '.join(map(str, low))}) to ({', '.join(map(str, high))})"

    def _check_levels(self, live: pa.Table) -> None:
        """Check that files of one level of a bucket above level 0 do not overlap in keys: readers rely on it."""
        types = [field.type for field in self._schema.trimmed_key_fields]
        levels: dict[tuple[bytes, int, int], list[ManifestEntry]] = {}
        for entry in columns_to_entries(live):
            if entry.file.level > 0:
                levels.setdefault((entry.partition, entry.bucket, entry.file.level), []).append(entry)
        for several in levels.values():
            ordered = sorted(several, key=lambda entry: comparable_key(entry.file.min_key, types))
            for one, other in pairwise(ordered):
                if comparable_key(other.file.min_key, types) <= comparable_key(one.file.max_key, types):
                    path = f"{self._folders.bucket_folder(other.partition, other.bucket)}/{other.file.name}"
                    problem = f"holds keys that {one.file.name} holds on the same level {other.file.level}"
                    self._metadata.damages.append(self._damage(other, path, problem))


def _distinct(damages: Sequence[Damage]) -> list[Damage]:
    """One damage for each file, the first that was found."""
    return list({(damage.kind, damage.path): damage for damage in reversed(damages)}.values())[::-1]
