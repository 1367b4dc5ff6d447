"""A cache of the plans of the latest queries: a version of a table is immutable, and so is its plan.

The key of a plan is the snapshot with its manifest lists, for ids are reused after a rollback, and the schema that it is read in.
Which rows of merged files are superseded is kept by the merge itself (`read/merge/surviving_masks`), whatever the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lakelet.cache.lru_cache import LruCache
from lakelet.model.snapshot import Snapshot
from lakelet.sql.query.conditions import pruning_predicate
from lakelet.sql.query.table_view import TableView, outdated_rows, split_name, table_view
from lakelet.table.read.table_scan import TableScan

_KEPT_BYTES = 128 << 20
# About the memory of a plan without its files, and of a file.
_VIEW_BYTES = 20_000
_FILE_BYTES = 2_000
_KEPT_SPLITS_BYTES = 16 << 20
_SPLIT_BYTES = 300


class Plans:
    """The latest plans, within a limit of bytes."""

    def __init__(self) -> None:
        self._views: LruCache[TableView] = LruCache()
        self._splits: LruCache[tuple[tuple[str, int], ...]] = LruCache()

    def view(
        self, scan: TableScan, texts: Sequence[str], location: str | None, splits: frozenset[str] | None = None
    ) -> TableView:
        """The view of a table pruned by these conditions, one of which every needed row satisfies; with `splits`, of those
        alone, by their names (`split_name`)."""
        version = scan.snapshot
        if version is None:
            return table_view(scan, texts, location, None, splits)
        key = (*_version(scan, version), scan.limit, tuple(texts), splits)
        found = self._views.get(key)
        if found is not None:
            return found
        # With a limit, merging a few rows is faster than finding the positions of all superseded ones.
        view = table_view(scan, texts, location, outdated_rows(scan) if scan.limit is None else None, splits)
        self._views.put(key, view, _size(view), limit=_KEPT_BYTES)
        return view

    def splits(self, scan: TableScan, texts: Sequence[str]) -> tuple[tuple[str, int], ...]:
        """The names and the bytes of the splits of that view."""
        version = scan.snapshot
        if version is None:
            return ()
        key = (*_version(scan, version), tuple(texts))
        found = self._splits.get(key)
        if found is None:
            predicate = pruning_predicate(texts, scan.schema.fields)
            pruned = scan if predicate is None else replace(scan, where=predicate)
            planned = (one for one in pruned.plan().splits if one.branch is None)
            found = tuple((split_name(one), one.size) for one in planned)
            self._splits.put(key, found, _VIEW_BYTES + _SPLIT_BYTES * len(found), limit=_KEPT_SPLITS_BYTES)
        return found


def _version(scan: TableScan, version: Snapshot) -> tuple[object, ...]:
    """What a version of a table, as a scan reads it, is known by."""
    return (
        scan.home.where(scan.home.paths.branch_root),
        (version.id, version.delta_manifest_list, version.base_manifest_list, version.index_manifest),
        # The columns and options too: a branch that replaces another has schemas of its own under the same
        # ids, and some options decide how files are read together.
        (scan.schema.id, scan.schema.fields, tuple(sorted(scan.schema.options.items()))),
        (scan.columns, scan.ordered, scan.level),
    )


def _size(view: TableView) -> int:
    positions = sum(int(rows.nbytes) for rows in view.assigned.gone.values())
    return _VIEW_BYTES + _FILE_BYTES * view.plan.files + positions
