"""What a snapshot has gained and lost since the one that the mirror holds, from the manifests that only one of both names.

    mirrored snapshot    m1 m2 m3 m4          kept in the backup, with its lists
    newest snapshot      m1 m2 m7 m8          m3 and m4 were merged into m7, m8 is new
                               ▲
                         entries of m7 and m8 count, those of m3 and m4 count against them

Additions and removals of a file add up to 1 where it is live and to 0 where it is not, in whatever manifests they are, so that
manifests of both sides need not be read. A pass after a flush reads the flush's manifest, however large the table is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.metadata.manifests import read_entries
from lakelet.errors import CorruptionError, NotFoundError
from lakelet.format.manifest.manifest_columns import ENTRY_SCHEMA
from lakelet.format.manifest.manifest_file import decode_manifest, decode_manifest_list
from lakelet.format.metadata.snapshot_json import decode_snapshot
from lakelet.model.manifest import EntryKind, ManifestFile
from lakelet.model.snapshot import Snapshot
from lakelet.service.backup.layout import COMPLETE, SOURCE_DELTA, SOURCE_SNAPSHOT, kept_path
from lakelet.service.backup.snapshot_files import file_identities
from lakelet.storage.home import TableHome


@dataclass(frozen=True, slots=True)
class PassChanges:
    """The entries that are to be added to the mirror and removed from it, and the source's manifests that it has no copy of."""

    added: pa.Table
    removed: pa.Table
    manifests: tuple[ManifestFile, ...]


def changes_since(
    source: TableHome, snapshot: Snapshot, manifests: Sequence[ManifestFile], target: TableHome, base: Snapshot | None
) -> PassChanges | None:
    """The changes of a snapshot of the source, which names these manifests, since the one that `base` of the mirror holds as a
    whole; None where that cannot be told from what is kept of it."""
    told = {} if base is None else base.properties or {}
    if base is None or told.get(COMPLETE) != "true":
        return None
    try:
        before = _kept_manifests(target, told)
        known, named = {one.name for one in before}, {one.name for one in manifests}
        new = tuple(one for one in manifests if one.name not in known)
        entries = read_entries(source, new)
        undone = [_kept_entries(target, one) for one in before if one.name not in named]
    except (NotFoundError, CorruptionError, KeyError, ValueError):
        return None
    found = _net(entries, pa.concat_tables([ENTRY_SCHEMA.empty_table(), *undone]))
    if found is None or not _adds_up(snapshot, base, *found):
        return None
    return PassChanges(*found, new)


def _kept_manifests(target: TableHome, told: Mapping[str, str]) -> list[ManifestFile]:
    """The manifests of the mirrored snapshot of the source, from the copies of its lists."""
    path = kept_path(target, f"snapshot/snapshot-{int(told[SOURCE_SNAPSHOT])}")
    snapshot = decode_snapshot(target.store.get(path), path=target.where(path))
    if snapshot.delta_manifest_list != told[SOURCE_DELTA]:
        # The copy of another snapshot of this number, before a rollback.
        raise NotFoundError(f"{target.where(path)} is not the snapshot that is mirrored")
    found: list[ManifestFile] = []
    for name in (snapshot.base_manifest_list, snapshot.delta_manifest_list):
        kept = kept_path(target, f"manifest/{name}")
        found.extend(decode_manifest_list(target.store.get(kept), path=target.where(kept)))
    return found


def _kept_entries(target: TableHome, manifest: ManifestFile) -> pa.Table:
    path = kept_path(target, f"manifest/{manifest.name}")
    return decode_manifest(target.store.get(path), path=target.where(path))


def _net(entries: pa.Table, undone: pa.Table) -> tuple[pa.Table, pa.Table] | None:
    """The entries of files that have come and of those that have gone; None where they do not add up."""
    joined = pa.concat_tables([entries, undone])
    signs = np.where(joined.column("_KIND").to_numpy() == int(EntryKind.ADD), 1, -1)
    signs[entries.num_rows :] *= -1
    rows = pa.table(
        {"file": file_identities(joined), "sign": pa.array(signs), "row": pa.array(np.arange(joined.num_rows))}
    )
    sums = rows.group_by("file", use_threads=False).aggregate([("sign", "sum"), ("row", "min")])
    total, places = sums.column("sign_sum").to_numpy(), sums.column("row_min").to_numpy()
    if len(total) and np.abs(total).max() > 1:
        return None
    added, removed = (joined.take(pa.array(np.sort(places[total == sign]))) for sign in (1, -1))
    return _as_additions(added), _as_additions(removed)


def _as_additions(entries: pa.Table) -> pa.Table:
    kinds = pa.array(np.full(entries.num_rows, int(EntryKind.ADD), np.int32))
    return entries.set_column(entries.schema.get_field_index("_KIND"), entries.schema.field("_KIND"), kinds)


def _adds_up(snapshot: Snapshot, base: Snapshot, added: pa.Table, removed: pa.Table) -> bool:
    """Whether the mirror will have as many rows as the source, where both count theirs."""
    if snapshot.total_record_count is None or base.total_record_count is None:
        return True
    gained, lost = (int(pc.sum(entries.column("_ROW_COUNT")).as_py() or 0) for entries in (added, removed))
    return base.total_record_count + gained - lost == snapshot.total_record_count
